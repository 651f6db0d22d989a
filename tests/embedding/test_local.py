import errno
import hashlib
import logging
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from memory.embedding import EmbeddingUnavailable, local
from memory.embedding.local import WEIGHTS_SHA256, LocalProvider, assemble, installed_weights

QUERY = "prevent sql injection in a query"
FITTING = (
    "Pass user input as bound parameters (cursor.execute(sql, params)), never by formatting it into the SQL string."
)
OFF_DOMAIN = "Boil a soft egg for six minutes and rinse it with cold water."


@pytest.fixture(scope="module")
def provider(tmp_path_factory):
    return LocalProvider(cache_dir=tmp_path_factory.mktemp("models"))


def content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_vectors_are_float32_units_of_384_components(provider):
    vectors = provider.embed([FITTING, OFF_DOMAIN, ""])
    assert vectors.shape == (3, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_a_fitting_lesson_is_nearer_than_an_off_domain_text(provider):
    query = provider.embed_query(QUERY)
    fitting, other = provider.embed([FITTING, OFF_DOMAIN])
    assert query @ fitting > 0.45
    assert query @ other < 0.2


def test_a_text_has_the_same_vector_whatever_it_is_embedded_with(provider):
    alone = provider.embed([FITTING])[0]
    np.testing.assert_array_equal(provider.embed(["word " * 300, FITTING])[1], alone)
    np.testing.assert_array_equal(provider.embed_query(FITTING), alone)


def test_what_lies_beyond_256_tokens_is_not_read(provider):
    long = "retry " * 254
    np.testing.assert_array_equal(provider.embed_query(long + "egg " * 50), provider.embed_query(long))
    assert not np.array_equal(provider.embed_query("egg " + long), provider.embed_query(long))


@pytest.mark.parametrize("text", ["\ud800", "\x00", "\u202e\u200b", "\U0001f600" * 2000, "x" * 1_000_000])
def test_any_text_has_a_vector(provider, text):
    assert np.linalg.norm(provider.embed_query(text)) == pytest.approx(1.0, abs=1e-5)


def test_no_texts_are_no_rows(provider):
    assert provider.embed([]).shape == (0, 384)


def test_check_passes(provider):
    provider.check()


def test_threads_share_one_model_and_agree(tmp_path, provider, monkeypatch):
    loads = []
    fresh = LocalProvider(cache_dir=tmp_path)
    original = fresh._onnx._load

    def counted():
        loads.append(1)
        return original()

    monkeypatch.setattr(fresh._onnx, "_load", counted)
    expected = provider.embed_query(QUERY)
    results = []
    threads = [threading.Thread(target=lambda: results.append(fresh.embed_query(QUERY))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loads == [1]
    assert len(results) == 4
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_no_connection_is_opened(tmp_path, monkeypatch):
    def refuse(*_):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    LocalProvider(cache_dir=tmp_path).check()


def test_the_folder_holds_verified_links(tmp_path):
    folder = assemble(tmp_path / "m", installed_weights())
    assert content(folder / "model.onnx") == WEIGHTS_SHA256
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json",
        "model.onnx",
        "special_tokens_map.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert all(path.is_symlink() for path in folder.iterdir())


def test_assembling_again_touches_nothing(tmp_path):
    folder = assemble(tmp_path, installed_weights())
    before = {path.name: path.lstat().st_ino for path in folder.iterdir()}
    assemble(folder, installed_weights())
    assert {path.name: path.lstat().st_ino for path in folder.iterdir()} == before


def test_without_links_the_files_are_copied(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "symlink", refuse)
    folder = assemble(tmp_path, installed_weights())
    assert content(folder / "model.onnx") == WEIGHTS_SHA256
    assert not (folder / "model.onnx").is_symlink()


def test_a_folder_whose_package_moved_mends_itself(tmp_path):
    old = tmp_path / "old.onnx"
    shutil.copyfile(installed_weights(), old)
    folder = assemble(tmp_path / "m", old)
    old.unlink()
    assert not (folder / "model.onnx").exists()
    assemble(folder, installed_weights())
    assert content(folder / "model.onnx") == WEIGHTS_SHA256


def test_a_damaged_file_in_the_folder_is_replaced(tmp_path):
    folder = assemble(tmp_path / "m", installed_weights())
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").write_text("{}")
    assemble(folder, installed_weights())
    LocalProvider(cache_dir=tmp_path).check()
    assert (folder / "tokenizer.json").stat().st_size > 100_000


def test_a_corrupted_model_is_refused_by_its_digest(tmp_path):
    damaged = tmp_path / "model.onnx"
    whole = installed_weights().read_bytes()
    damaged.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    provider = LocalProvider(cache_dir=tmp_path / "models", weights=damaged)
    with pytest.raises(EmbeddingUnavailable, match=f"instead of {WEIGHTS_SHA256}.*pip install"):
        provider.embed_query(QUERY)
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize("name", ["config.json", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("damage", [lambda whole: b"", lambda whole: whole[:-9], lambda whole: b"{}"])
def test_a_damaged_carried_file_is_refused_by_its_digest(tmp_path, monkeypatch, name, damage):
    carried = tmp_path / "minilm"
    shutil.copytree(local._CARRIED, carried)
    (carried / name).write_bytes(damage((carried / name).read_bytes()))
    monkeypatch.setattr(local, "_CARRIED", carried)
    with pytest.raises(EmbeddingUnavailable, match=f"local model's {name} has SHA-256 .*Restore it"):
        LocalProvider(cache_dir=tmp_path / "models").embed_query(QUERY)


def test_a_missing_carried_file_is_refused_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "_CARRIED", tmp_path / "nowhere")
    with pytest.raises(EmbeddingUnavailable, match=r"cannot be read: No such file.*Restore it"):
        LocalProvider(cache_dir=tmp_path / "models").check()


def test_a_missing_model_file_is_refused_with_the_remedy(tmp_path):
    provider = LocalProvider(cache_dir=tmp_path, weights=tmp_path / "nowhere.onnx")
    with pytest.raises(EmbeddingUnavailable, match=r"cannot be read: No such file.*pip install"):
        provider.check()


def test_a_missing_package_is_refused_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "PACKAGE", "a_package_that_nobody_installed")
    with pytest.raises(EmbeddingUnavailable, match=r"missing.*pip install"):
        LocalProvider(cache_dir=tmp_path).check()


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "models").write_text("a file where the folder should be")
    with pytest.raises(EmbeddingUnavailable, match="Make the folder writable"):
        LocalProvider(cache_dir=tmp_path / "models").check()


def test_a_provider_that_failed_works_once_the_cause_is_gone(tmp_path):
    weights = tmp_path / "late.onnx"
    provider = LocalProvider(cache_dir=tmp_path, weights=weights)
    with pytest.raises(EmbeddingUnavailable):
        provider.check()
    shutil.copyfile(installed_weights(), weights)
    provider.check()


def test_processes_that_assemble_at_once_all_get_a_whole_folder(tmp_path):
    code = (
        "import hashlib, sys; from pathlib import Path; from memory.embedding.local import *\n"
        "sys.stdin.readline()\n"
        "for _ in range(5):\n"
        "    folder = assemble(Path(sys.argv[1]), installed_weights())\n"
        "    assert hashlib.sha256((folder / 'model.onnx').read_bytes()).hexdigest() == WEIGHTS_SHA256\n"
    )
    workers = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "m")], stdin=subprocess.PIPE) for _ in range(3)
    ]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(b"go\n")
        worker.stdin.close()
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0, 0]
    assert len(list((tmp_path / "m").iterdir())) == 5


def test_nothing_of_a_text_is_logged(provider, caplog):
    caplog.set_level(logging.DEBUG)
    provider.embed_query("a secret text")
    assert "secret" not in caplog.text
