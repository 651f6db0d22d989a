"""Filling an embedding space: one text that the model will not take costs the others nothing."""

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from memory.embedding import EmbeddingUnavailable, Vectors
from memory.embedding.base import EmbeddingRefused, embed_each
from memory.embedding.hashing import HashingProvider
from memory.models import EmbeddingSpace, JobRun, Lesson, LessonEmbedding, LessonTombstone
from memory.models.vocabulary import Origin, TombstoneReason
from memory.services import space as spaces
from memory.services import tombstone
from memory.services.doctor import examine
from memory.services.importing import import_lines, read_lines, start_run
from memory.services.lesson import NewLesson, store
from memory.services.repair import REPAIRS
from tests.embedding.server import Server, embedding_server

POISON = "poison"
TEXTS = [
    "Call `shutil.copyfile(source, target)` for files, since `shutil.copy()` copies permissions too.",
    "Set `timeout=10` on `requests.get()`, or a silent server holds the poison worker for ever.",
    "Use `secrets.token_urlsafe(32)` for tokens, because `random.choice()` can be predicted.",
]


class Picky(HashingProvider):
    """Fails with `trouble` for batches that hold a poisoned text; `down` fails for all."""

    def __init__(self, trouble: type[EmbeddingUnavailable] = EmbeddingRefused) -> None:
        super().__init__(dimension=8)
        self.trouble = trouble
        self.down = False
        self.sent: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.sent.append(list(texts))
        if self.down:
            raise EmbeddingUnavailable("down")
        if any(POISON in text for text in texts):
            raise self.trouble("HTTP 400")
        return super().embed(texts)


class TestEachTextForItself:
    @pytest.mark.parametrize("trouble", [EmbeddingRefused, EmbeddingUnavailable])
    def test_what_the_model_cannot_embed_is_none_and_the_rest_are_vectors(
        self, trouble: type[EmbeddingUnavailable]
    ) -> None:
        vectors = embed_each(Picky(trouble), ["a", POISON, "b", POISON])
        assert [vector is None for vector in vectors] == [False, True, False, True]

    def test_a_batch_that_is_well_is_one_request(self) -> None:
        model = Picky()
        assert len(embed_each(model, ["a", "b"])) == 2
        assert model.sent == [["a", "b"]]

    def test_a_model_that_is_away_is_not_asked_for_each(self) -> None:
        model = Picky()
        model.down = True
        with pytest.raises(EmbeddingUnavailable, match="down"):
            embed_each(model, ["a"] * 50)
        assert len(model.sent) == 2

    def test_no_texts_are_no_vectors(self) -> None:
        assert embed_each(Picky(), []) == []


@pytest.fixture
def poisoned() -> Iterator[Server]:
    """A server that answers 400 to whatever holds the poison."""
    with embedding_server() as server:
        server.refuses = POISON
        yield server


@pytest.fixture
def theirs(poisoned: Server, settings: Any, space: EmbeddingSpace) -> EmbeddingSpace:
    """The space of that server, active."""
    point_at(poisoned, settings)
    made = spaces.configured_space()
    spaces.activate(made)
    return made


def point_at(server: Server, settings: Any) -> None:
    settings.SONDER_EMBEDDING, settings.SONDER_EMBEDDING_MODEL = "openai", "m"
    settings.SONDER_EMBEDDING_URL = server.url


def bare() -> list[Lesson]:
    """The three lessons, without vectors; the second is poisoned."""
    return [made for text in TEXTS if (made := store(imported(text)).lesson) is not None]


def imported(text: str) -> NewLesson:
    return NewLesson(text=text, origin=Origin.IMPORTED, path="test", actor="system")


def reembed() -> dict[str, Any]:
    out = StringIO()
    call_command("reembed", "--json", stdout=out)
    return dict(json.loads(out.getvalue()))


def embedded(space: EmbeddingSpace) -> set[str]:
    return set(LessonEmbedding.objects.filter(space=space).values_list("lesson__text", flat=True))


def told(check: str) -> Any:
    return next(finding for finding in examine() if finding.check == check)


@pytest.mark.django_db
class TestTheBackground:
    def test_a_refused_text_is_parked_and_the_others_go_on(self, theirs: EmbeddingSpace, poisoned: Server) -> None:
        _, bad, _ = bare()
        assert spaces.embed_pending() == 2
        assert embedded(theirs) == {TEXTS[0], TEXTS[2]}
        assert spaces.parked(theirs) == {bad.pk}
        asked = len(poisoned.requests)
        assert spaces.embed_pending() == 0
        assert len(poisoned.requests) == asked, "it is not sent again at every sweep"
        finding = told("vectors")
        assert (finding.ok, str(bad.pk) in finding.detail) == (False, True)
        assert "refused" in finding.detail

    def test_after_a_while_it_is_tried_again(self, theirs: EmbeddingSpace, poisoned: Server) -> None:
        bare()
        spaces.embed_pending()
        poisoned.refuses = ""
        assert spaces.embed_pending() == 0
        JobRun.objects.update(started_at=timezone.now() - spaces.PARKED_FOR - timedelta(seconds=1))
        assert spaces.embed_pending() == 1
        assert told("vectors").ok

    def test_a_server_that_refuses_everything_parks_nothing(self, theirs: EmbeddingSpace, poisoned: Server) -> None:
        bare()
        poisoned.status = 400
        with pytest.raises(EmbeddingUnavailable):
            spaces.embed_pending()
        assert spaces.parked(theirs) == set()

    def test_an_import_embeds_the_other_lines(self, theirs: EmbeddingSpace, tmp_path: Path, poisoned: Server) -> None:
        path = tmp_path / "lessons.jsonl"
        path.write_text("\n".join(json.dumps({"text": text}) for text in TEXTS))
        ((_, report),) = import_lines(iter(list(read_lines(path))), start_run(path))
        assert (report.stored, report.embedded, report.note) == (3, 2, "")
        assert embedded(theirs) == {TEXTS[0], TEXTS[2]}


@pytest.mark.django_db(transaction=True)
class TestReembed:
    @pytest.fixture(autouse=True)
    def _without_indexes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(spaces, "build_indexes", lambda space: None)  # they would outlive the test

    def test_a_refused_text_is_told_and_the_store_moves(
        self, poisoned: Server, space: EmbeddingSpace, settings: Any
    ) -> None:
        _, bad, _ = bare()
        point_at(poisoned, settings)
        report = reembed()
        assert (report["embedded"], report["refused"]) == (2, [str(bad.pk)])
        assert EmbeddingSpace.objects.get(is_active=True).model == "m"
        poisoned.refuses = ""
        report = reembed()
        assert (report["embedded"], report["refused"]) == (1, [])
        assert told("vectors").ok

    def test_a_model_that_is_away_stops_it_with_a_sentence(
        self, poisoned: Server, space: EmbeddingSpace, settings: Any
    ) -> None:
        bare()
        point_at(poisoned, settings)
        spaces.configured_space()
        poisoned.status = 500
        with pytest.raises(CommandError, match="HTTP 500"):
            reembed()
        assert EmbeddingSpace.objects.get(is_active=True) == space

    def test_tombstones_follow_their_lessons_and_the_others_are_counted(
        self, poisoned: Server, space: EmbeddingSpace, settings: Any
    ) -> None:
        stays, goes, unharmed = bare()
        poisoned.refuses = ""
        spaces.embed([stays, goes, unharmed], space)
        for rejected in (stays, goes):
            tombstone.write(rejected.pk, TombstoneReason.REJECTED_BY_REVIEWER)
        goes.lessonembedding_set.all().delete()
        goes.delete()
        point_at(poisoned, settings)
        report = reembed()
        assert (report["tombstones"], report["tombstones_left"]) == (1, 1)
        followed = LessonTombstone.objects.get(source_lesson=stays.pk)
        assert followed.space == EmbeddingSpace.objects.get(is_active=True, model="m")


@pytest.mark.django_db
class TestWhatDoctorSaysOfTombstones:
    @pytest.fixture
    def buried(self, space: EmbeddingSpace) -> LessonTombstone:
        lessons = bare()
        tombstone.write(lessons[0].pk, TombstoneReason.REJECTED_BY_REVIEWER)
        return LessonTombstone.objects.get()

    def test_one_without_a_vector_is_trouble_only_while_it_can_get_one(
        self, buried: LessonTombstone, space: EmbeddingSpace
    ) -> None:
        finding = told("tombstone vectors")
        assert (finding.ok, finding.detail[:2]) == (True, "1 ")
        spaces.embed(list(Lesson.objects.filter(pk=buried.source_lesson)), space)
        assert not told("tombstone vectors").ok
        REPAIRS["tombstone vectors"]()
        finding = told("tombstone vectors")
        assert (finding.ok, finding.detail) == (True, "all have a vector in the active space")

    def test_background_embedding_completes_it(self, buried: LessonTombstone, space: EmbeddingSpace) -> None:
        assert spaces.embed_pending() == 3
        assert tombstone.left_behind(space) == 0

    @pytest.mark.parametrize(
        ("change", "words"),
        [({"mac_key_id": "another"}, "1 are signed by another key"), ({"signature_version": 99}, "1 have a signature")],
    )
    def test_one_that_cannot_be_read_is_counted(
        self, buried: LessonTombstone, change: dict[str, Any], words: str
    ) -> None:
        assert told("tombstones").ok
        LessonTombstone.objects.update(**change)
        finding = told("tombstones")
        assert (finding.ok, words in finding.detail) == (False, True)
