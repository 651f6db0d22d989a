import logging
import time
import traceback

import numpy as np
import pytest

from memory.embedding import EmbeddingUnavailable
from memory.embedding.base import MAX_CHARACTERS, EmbeddingRefused
from memory.embedding.openai_compatible import OpenAICompatibleProvider
from tests.embedding.server import KEY, embedding_server, good, vector


@pytest.fixture
def server():
    with embedding_server() as running:
        yield running


@pytest.fixture
def provider(server):
    made = OpenAICompatibleProvider(base_url=server.url, model="m", api_key=KEY, timeout=5, max_retries=0, batch_size=2)
    yield made
    made.close()


def directions(texts):
    rows = np.array([vector(text) for text in texts])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_texts_become_unit_rows_in_their_order(provider):
    vectors = provider.embed(["a", "bb", "aaa"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, directions(["a", "bb", "aaa"]), atol=1e-6)


def test_a_query_is_one_vector(provider):
    np.testing.assert_allclose(provider.embed_query("ab"), directions(["ab"])[0], atol=1e-6)


def test_the_model_the_key_and_the_path_are_sent(provider, server):
    provider.embed_query("ab")
    assert server.requests == [
        {
            "path": "/v1/embeddings",
            "key": f"Bearer {KEY}",
            "model": "m",
            "input": ["ab"],
            "encoding_format": "float",
        }
    ]


def test_many_texts_are_sent_in_batches(provider, server):
    provider.embed(["a", "b", "c", "d", "e"])
    assert [request["input"] for request in server.requests] == [["a", "b"], ["c", "d"], ["e"]]


def test_answers_out_of_order_are_put_in_order_by_index(provider, server):
    server.body = lambda texts: {"data": list(reversed(good(texts)["data"]))}
    np.testing.assert_allclose(provider.embed(["a", "bbbb"]), directions(["a", "bbbb"]), atol=1e-6)


def test_the_dimension_is_learned_by_one_probe(provider, server):
    assert provider.dimension == 3
    assert provider.dimension == 3
    assert len(server.requests) == 1


def test_a_given_dimension_asks_nobody(server):
    provider = OpenAICompatibleProvider(base_url=server.url, model="m", dimension=7)
    assert provider.dimension == 7
    assert server.requests == []
    provider.close()


def test_no_texts_are_no_rows(provider):
    assert provider.embed([]).shape == (0, 3)


def test_a_vector_of_any_length_keeps_its_direction(provider, server):
    server.body = lambda _: {"data": [{"index": 0, "embedding": [3e300, 0.0, -4e300]}]}
    np.testing.assert_allclose(provider.embed_query("a"), [0.6, 0.0, -0.8], atol=1e-6)


def test_a_lone_surrogate_is_sent_as_a_question_mark(provider, server):
    provider.embed(["a\ud800"])
    assert server.requests[0]["input"] == ["a?"]


def test_check_passes_on_a_good_server(provider):
    provider.check()


@pytest.mark.parametrize(
    "item",
    [
        {"index": 0},
        {"embedding": [1.0, 2.0, 3.0]},
        {"index": 1, "embedding": [1.0, 2.0, 3.0]},
        {"index": 0, "embedding": None},
        {"index": 0, "embedding": "AACAPw=="},
        {"index": 0, "embedding": []},
        {"index": 0, "embedding": [[1.0], [2.0]]},
        {"index": 0, "embedding": [1.0, None, 3.0]},
        {"index": 0, "embedding": [1.0, "x", 3.0]},
        {"index": 0, "embedding": [1.0, float("nan"), 3.0]},
        {"index": 0, "embedding": [1.0, float("inf"), 3.0]},
        {"index": 0, "embedding": [0.0, 0.0, 0.0]},
        {"index": 0, "embedding": [10**400, 1, 1]},
        {"index": [0], "embedding": [1.0, 2.0, 3.0]},
        "text",
        None,
    ],
)
def test_a_vector_that_is_none_is_refused(provider, server, item):
    server.body = lambda _: {"data": [item]}
    with pytest.raises(EmbeddingUnavailable):
        provider.embed_query("a")


@pytest.mark.parametrize("body", [{}, [], None, 3, {"data": None}, {"data": {}}, {"data": []}, {"error": "no"}])
def test_an_answer_without_vectors_is_refused(provider, server, body):
    server.body = lambda _: body
    with pytest.raises(EmbeddingUnavailable, match="one vector for each of 1 texts"):
        provider.embed_query("a")


@pytest.mark.parametrize("count", [1, 3])
def test_another_number_of_vectors_than_texts_is_refused(provider, server, count):
    server.body = lambda _: good(["a"] * count)
    with pytest.raises(EmbeddingUnavailable, match="each of 2 texts"):
        provider.embed(["a", "b"])


@pytest.mark.parametrize("raw", [b"", b"<html>busy</html>", b"\xff\xfe", b"[" * 100_000])
def test_an_answer_that_is_not_json_is_refused(provider, server, raw):
    server.raw = raw
    with pytest.raises(EmbeddingUnavailable, match="not JSON"):
        provider.embed_query("a")


def test_a_model_that_changes_its_dimension_is_refused(provider, server):
    assert provider.dimension == 3
    server.body = lambda texts: {"data": [{"index": 0, "embedding": [1.0, 2.0]} for _ in texts]}
    with pytest.raises(EmbeddingUnavailable, match="another embedding space"):
        provider.embed_query("a")


def test_rows_of_different_length_are_refused(provider, server):
    server.body = lambda _: {"data": [{"index": 0, "embedding": [1.0, 2.0]}, {"index": 1, "embedding": [1.0]}]}
    with pytest.raises(EmbeddingUnavailable):
        provider.embed(["a", "b"])


def test_a_bad_first_answer_teaches_no_dimension(provider, server):
    server.body = lambda _: {"data": [{"index": 0, "embedding": [0.0, 0.0]}]}
    with pytest.raises(EmbeddingUnavailable):
        provider.embed_query("a")
    server.body = good
    assert provider.dimension == 3


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(400, "log"), (401, "SONDER_EMBEDDING_KEY"), (404, "SONDER_EMBEDDING_URL"), (429, "limits"), (500, "log")],
)
def test_an_http_error_says_its_code_and_the_remedy(provider, server, status, remedy):
    server.status = status
    with pytest.raises(EmbeddingUnavailable, match=rf"HTTP {status}\..*{remedy}"):
        provider.embed_query("a")


def test_a_slow_server_is_given_up(server):
    server.delay = 1.0
    provider = OpenAICompatibleProvider(base_url=server.url, model="m", timeout=0.1, max_retries=0)
    with pytest.raises(EmbeddingUnavailable, match="in time"):
        provider.embed_query("a")
    provider.close()


def test_a_server_whose_answer_drips_is_given_up(server):
    server.drip = 0.05
    provider = OpenAICompatibleProvider(base_url=server.url, model="m", timeout=0.2, max_retries=0)
    started = time.monotonic()
    with pytest.raises(EmbeddingUnavailable, match="in time"):
        provider.embed_query("a")
    assert time.monotonic() - started < 1.0
    provider.close()


def test_an_answer_that_breaks_off_is_unavailable(provider, server):
    server.missing = 5
    with pytest.raises(EmbeddingUnavailable, match="cannot be reached"):
        provider.embed_query("a")


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_text_that_the_server_will_not_take_is_refused(provider, server, status):
    server.status = status
    with pytest.raises(EmbeddingRefused, match=str(status)):
        provider.embed_query("a")


def test_of_a_text_without_end_the_beginning_is_sent(provider, server):
    provider.embed_query("a" * 1_000_000)
    assert len(server.requests[0]["input"][0]) == MAX_CHARACTERS


def test_check_asks_once_and_does_not_try_again(server):
    provider = OpenAICompatibleProvider(base_url=server.url, model="m", max_retries=2)
    server.status = 500
    with pytest.raises(EmbeddingUnavailable):
        provider.check()
    assert len(server.requests) == 1
    provider.close()


def test_a_server_that_is_not_there_is_unavailable():
    with embedding_server() as gone:
        url = gone.url
    provider = OpenAICompatibleProvider(base_url=url, model="m", max_retries=0)
    with pytest.raises(EmbeddingUnavailable, match="cannot be reached"):
        provider.check()
    provider.close()


def test_lessons_are_tried_again_and_queries_are_not(server):
    provider = OpenAICompatibleProvider(base_url=server.url, model="m", max_retries=1)
    server.failures_first = 1
    assert provider.embed(["a"]).shape == (1, 3)
    server.requests.clear()
    with pytest.raises(EmbeddingUnavailable):
        provider.embed_query("a")
    assert len(server.requests) == 1
    provider.close()


def test_the_key_appears_in_no_error_and_no_log(provider, server, caplog):
    caplog.set_level(logging.DEBUG)
    for name in ("httpx", "httpx2", "httpcore", "httpcore2", "openai"):  # which the site's settings silence
        caplog.set_level(logging.DEBUG, logger=name)
    for status in (401, 500):
        server.status = status
        with pytest.raises(EmbeddingUnavailable) as caught:
            provider.embed_query("a")
        shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + caught.value.detail
        assert KEY not in shown
    assert caplog.records
    assert KEY not in caplog.text
    assert KEY not in repr(provider)


def test_credentials_in_the_address_are_not_repeated():
    provider = OpenAICompatibleProvider(base_url="http://me:secret@127.0.0.1:1/v1?key=secret", model="m", max_retries=0)
    with pytest.raises(EmbeddingUnavailable, match=r"http://127\.0\.0\.1:1/v1 cannot") as caught:
        provider.embed_query("a")
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    provider.close()
