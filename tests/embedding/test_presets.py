import pytest

from memory.embedding import preset_for
from memory.embedding.presets import CAUTIOUS, HASHING, MINILM, NOMIC
from memory.rules.relevance import Thresholds


@pytest.mark.parametrize(
    ("model", "preset"),
    [
        ("sentence-transformers/all-MiniLM-L6-v2", MINILM),
        ("nomic-embed-text", NOMIC),
        ("nomic-embed-text:latest", NOMIC),
        ("nomic-ai/nomic-embed-text-v1.5", NOMIC),
        ("hashing", HASHING),
        ("some/other-model", CAUTIOUS),
        ("", CAUTIOUS),
    ],
)
def test_a_model_is_known_by_its_name_with_or_without_organisation_and_tag(model, preset):
    assert preset_for(model) is preset


def test_the_reference_thresholds_of_nomic():
    assert NOMIC.thresholds == Thresholds(min_similarity=0.62, uncorroborated_min_similarity=0.70)
    assert (NOMIC.duplicate_similarity, NOMIC.prune_similarity) == (0.92, 0.93)
    assert (NOMIC.tombstone_similarity, NOMIC.contradiction_similarity) == (0.92, 0.80)


@pytest.mark.parametrize("preset", [MINILM, NOMIC, HASHING, CAUTIOUS])
def test_merging_asks_for_more_similarity_than_flagging_and_flagging_for_more_than_recall(preset):
    assert preset.thresholds.uncorroborated_min_similarity < preset.contradiction_similarity
    assert preset.contradiction_similarity < preset.duplicate_similarity <= preset.prune_similarity <= 1
    assert preset.contradiction_similarity < preset.tombstone_similarity <= 1


def test_an_unknown_model_is_trusted_less_than_any_known_one():
    assert CAUTIOUS.min_similarity >= max(p.min_similarity for p in (MINILM, NOMIC))
    assert CAUTIOUS.prune_similarity >= max(p.prune_similarity for p in (MINILM, NOMIC))
    assert not CAUTIOUS.measured
