import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.embedding.hashing import HashingProvider

provider = HashingProvider()


@given(st.lists(st.text(max_size=40), max_size=4))
def test_every_text_gets_a_unit_vector(texts):
    rows = provider.embed(texts)
    assert rows.shape == (len(texts), 384)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "components"), [("retry", {132: -1.0}), ("cache invalidation", {363: -(0.5**0.5), 382: 0.5**0.5})]
)
def test_a_text_has_the_same_vector_on_every_machine(text, components):
    vector = provider.embed_query(text)
    assert {int(i): float(vector[i]) for i in np.flatnonzero(vector)} == pytest.approx(components)


def test_shared_words_make_texts_similar_and_inflection_does_not_matter():
    query = provider.embed_query("preventing sql injections")
    near, far = provider.embed(["Prevent SQL injection with bound parameters.", "Boil an egg for six minutes."])
    assert query @ near > 0.6
    assert abs(query @ far) < 0.1


def test_function_words_say_nothing():
    assert provider.embed_query("how to use the cache") @ provider.embed_query("cache") == pytest.approx(1.0)


def test_texts_without_words_differ_from_each_other():
    assert abs(provider.embed_query("???") @ provider.embed_query("!!!")) < 0.5


def test_check_passes():
    provider.check()
