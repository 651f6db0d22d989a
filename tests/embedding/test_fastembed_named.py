import re

import numpy as np
import pytest

from memory.embedding import EmbeddingUnavailable
from memory.embedding.fastembed_named import FastembedProvider
from memory.embedding.local import LocalProvider, assemble, installed_weights

NAME = "sentence-transformers/all-MiniLM-L6-v2"
REPOSITORY = "models--Qdrant--all-MiniLM-L6-v2-onnx"


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture
def downloaded(tmp_path):
    """The cache as a download leaves it: one snapshot, and a reference that names it."""
    repository = tmp_path / "fastembed" / REPOSITORY
    assemble(repository / "snapshots" / "c0ffee", installed_weights())
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("c0ffee")
    return tmp_path


def test_a_downloaded_model_embeds_like_the_bundled_copy_of_it(downloaded, tmp_path):
    provider = FastembedProvider(NAME, cache_dir=downloaded)
    provider.check()
    assert provider.dimension == 384
    np.testing.assert_allclose(
        provider.embed(["Close the file."]), LocalProvider(cache_dir=tmp_path).embed(["Close the file."]), atol=1e-6
    )
    assert provider.embed_query("Close the file.").shape == (384,)


def test_the_revision_names_the_version_and_the_files_that_were_loaded(downloaded):
    first = FastembedProvider(NAME, cache_dir=downloaded).revision
    assert re.fullmatch(r"fastembed-\d+\.\d+\.\d+-[0-9a-f]{8}", first)
    assert FastembedProvider(NAME, cache_dir=downloaded).revision == first
    tokenizer = downloaded / "fastembed" / REPOSITORY / "snapshots" / "c0ffee" / "tokenizer.json"
    changed = tokenizer.read_text() + "\n"
    tokenizer.unlink()
    tokenizer.write_text(changed)
    assert FastembedProvider(NAME, cache_dir=downloaded).revision != first


def test_a_damaged_download_is_unavailable(downloaded):
    weights = downloaded / "fastembed" / REPOSITORY / "snapshots" / "c0ffee" / "model.onnx"
    weights.unlink()
    weights.write_bytes(b"not a model")
    with pytest.raises(EmbeddingUnavailable, match=f"The embedding model {NAME} does not work here"):
        FastembedProvider(NAME, cache_dir=downloaded).check()


@pytest.mark.parametrize("content", ["", "not JSON", "[]"])
@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "config.json", "special_tokens_map.json"])
def test_a_damaged_file_beside_the_model_is_unavailable(downloaded, name, content):
    damaged = downloaded / "fastembed" / REPOSITORY / "snapshots" / "c0ffee" / name
    damaged.unlink()
    damaged.write_text(content)
    with pytest.raises(EmbeddingUnavailable, match=f"The embedding model {NAME} does not work here"):
        FastembedProvider(NAME, cache_dir=downloaded).check()


def test_a_model_that_is_not_there_is_unavailable_offline(tmp_path):
    with pytest.raises(EmbeddingUnavailable, match="does not work here"):
        FastembedProvider("BAAI/bge-small-en-v1.5", cache_dir=tmp_path).check()


def test_a_name_that_fastembed_does_not_know_is_unavailable(tmp_path):
    with pytest.raises(EmbeddingUnavailable, match="not supported"):
        FastembedProvider("nobody/nothing", cache_dir=tmp_path).check()
