import pytest

from memory.embedding import provider_from_spec
from memory.embedding.fastembed_named import FastembedProvider
from memory.embedding.hashing import HashingProvider
from memory.embedding.local import LocalProvider
from memory.embedding.openai_compatible import OpenAICompatibleProvider


def test_local_is_the_bundled_model(tmp_path):
    provider = provider_from_spec("local", cache_dir=tmp_path)
    assert isinstance(provider, LocalProvider)
    assert (provider.model, provider.revision) == ("sentence-transformers/all-MiniLM-L6-v2", "int8-8199be6f")
    assert provider.dimension == 384


def test_hashing_is_the_test_provider(tmp_path):
    assert isinstance(provider_from_spec("hashing", cache_dir=tmp_path), HashingProvider)


def test_fastembed_takes_the_name_after_the_colon(tmp_path):
    provider = provider_from_spec("fastembed:BAAI/bge-small-en-v1.5", cache_dir=tmp_path)
    assert isinstance(provider, FastembedProvider)
    assert provider.model == "BAAI/bge-small-en-v1.5"


def test_openai_takes_url_model_and_revision(tmp_path):
    provider = provider_from_spec("openai", cache_dir=tmp_path, url="http://127.0.0.1:1/v1", model="m", revision="2")
    assert isinstance(provider, OpenAICompatibleProvider)
    assert (provider.model, provider.revision) == ("m", "2")


def test_nothing_is_loaded_or_written_before_the_first_use(tmp_path):
    for spec in ("local", "hashing", "fastembed:BAAI/bge-small-en-v1.5"):
        provider_from_spec(spec, cache_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("spec", ["", "Local", "fastembed", "fastembed:", "ollama"])
def test_an_unknown_provider_is_refused_with_the_choices(tmp_path, spec):
    with pytest.raises(ValueError, match=r"choose `local`, `fastembed:<model name>`, `openai` or `hashing`"):
        provider_from_spec(spec, cache_dir=tmp_path)


@pytest.mark.parametrize(
    "url", ["localhost:11434/v1", "ftp://x/v1", "http://", "http://[::1/v1", "http://x:99999/v1", "http://x/\n", "x"]
)
def test_openai_with_an_address_that_is_none_names_the_setting(tmp_path, url):
    with pytest.raises(ValueError, match="SONDER_EMBEDDING_URL"):
        provider_from_spec("openai", cache_dir=tmp_path, url=url, model="m")


def test_openai_with_a_key_that_no_header_carries_names_the_setting(tmp_path):
    with pytest.raises(ValueError, match="SONDER_EMBEDDING_KEY"):
        provider_from_spec("openai", cache_dir=tmp_path, url="http://x/v1", model="m", api_key="ключ")


@pytest.mark.parametrize(
    ("given", "missing"),
    [({"model": "m"}, "SONDER_EMBEDDING_URL"), ({"url": "http://x/v1"}, "SONDER_EMBEDDING_MODEL")],
)
def test_openai_without_url_or_model_names_the_setting(tmp_path, given, missing):
    with pytest.raises(ValueError, match=missing):
        provider_from_spec("openai", cache_dir=tmp_path, **given)
