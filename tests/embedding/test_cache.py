import threading

import numpy as np
import pytest

from memory.embedding import CachedQueries, EmbeddingUnavailable
from memory.embedding.hashing import HashingProvider


class Counting(HashingProvider):
    """Remembers what it was asked, and fails while told to."""

    def __init__(self):
        super().__init__(dimension=16)
        self.asked = []
        self.down = False

    def embed_query(self, text):
        self.asked.append(text)
        if self.down:
            raise EmbeddingUnavailable("down")
        return super().embed_query(text)


@pytest.fixture
def provider():
    return Counting()


def test_a_repeated_query_does_not_pay_again(provider):
    cached = CachedQueries(provider, 8)
    first, second = cached.embed_query("retry"), cached.embed_query("retry")
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, HashingProvider(dimension=16).embed_query("retry"))
    assert provider.asked == ["retry"]


def test_the_least_recently_used_query_is_forgotten(provider):
    cached = CachedQueries(provider, 2)
    for text in ["a1", "b1", "a1", "c1", "a1", "b1"]:
        cached.embed_query(text)
    assert provider.asked == ["a1", "b1", "c1", "b1"]


def test_size_zero_remembers_nothing(provider):
    cached = CachedQueries(provider, 0)
    cached.embed_query("a1")
    cached.embed_query("a1")
    assert provider.asked == ["a1", "a1"]


def test_a_failure_is_not_remembered(provider):
    cached = CachedQueries(provider, 8)
    provider.down = True
    with pytest.raises(EmbeddingUnavailable):
        cached.embed_query("a1")
    provider.down = False
    assert cached.embed_query("a1").shape == (16,)


def test_a_caller_cannot_change_what_the_next_one_gets(provider):
    vector = CachedQueries(provider, 8).embed_query("a1")
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 9.0


def test_it_stands_in_for_the_provider(provider):
    cached = CachedQueries(provider, 8)
    assert (cached.model, cached.revision, cached.dimension) == ("hashing", "1", 16)
    np.testing.assert_array_equal(cached.embed(["a1", "b1"]), provider.embed(["a1", "b1"]))
    provider.down = True
    with pytest.raises(EmbeddingUnavailable):
        cached.check()


def test_a_negative_size_is_refused(provider):
    with pytest.raises(ValueError, match="negative"):
        CachedQueries(provider, -1)


def test_a_lone_surrogate_is_a_query_like_another(provider):
    assert CachedQueries(provider, 8).embed_query("\ud800").shape == (16,)


def test_threads_share_it_and_all_get_the_right_vectors(provider):
    cached = CachedQueries(provider, 3)
    texts = [f"word{i}" for i in range(6)]
    right = {text: HashingProvider(dimension=16).embed_query(text) for text in texts}
    wrong = []

    def work(start):
        for i in range(120):
            text = texts[(start + i) % len(texts)]
            if not np.array_equal(cached.embed_query(text), right[text]):
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(provider.asked) >= len(texts)
