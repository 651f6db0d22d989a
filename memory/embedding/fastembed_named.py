"""Any text model that fastembed knows, downloaded once from where fastembed finds it."""

import hashlib
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from memory.embedding.base import Vectors, probe, unit_rows
from memory.embedding.onnx import OnnxModel
from memory.errors import EmbeddingUnavailable


class FastembedProvider:
    """The model `name` of `fastembed.TextEmbedding.list_supported_models()`, kept in `cache_dir`.

    The first use downloads it, unless HF_HUB_OFFLINE=1 says that what is there must do. Revision and dimension are
    those of the model that was loaded, so asking for them loads it.
    """

    def __init__(self, name: str, *, cache_dir: Path) -> None:
        self.model = name
        self._onnx = OnnxModel(name, lambda: {"cache_dir": str(cache_dir / "fastembed")})

    @cached_property
    def revision(self) -> str:
        """fastembed's version, since it decides pooling and prefixes, and the digest of the files that were loaded."""
        digest = hashlib.sha256()
        try:
            for path in self._files():
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise EmbeddingUnavailable(f"The files of {self.model} cannot be read: {error.strerror}.") from error
        return f"fastembed-{version('fastembed')}-{digest.hexdigest()[:8]}"

    @cached_property
    def dimension(self) -> int:
        return int(self._onnx.get().embedding_size)

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._rows(texts, query=False)

    def embed_query(self, text: str) -> Vectors:
        row: Vectors = self._rows([text], query=True)[0]
        return row

    def check(self) -> None:
        probe(self)

    def _rows(self, texts: Sequence[str], *, query: bool) -> Vectors:
        rows = self._onnx.embed(texts, query=query)
        return unit_rows(rows, count=len(texts), dimension=self.dimension, source=f"The model {self.model}")

    def _files(self) -> list[Path]:
        """What decides the vectors: the network with its external data, and the tokenizer."""
        loaded: Any = self._onnx.get().model
        folder = Path(loaded._model_dir)  # fastembed has no public name for the folder that it chose
        names = [loaded.model_description.model_file, *loaded.model_description.additional_files, "tokenizer.json"]
        return [path for path in (folder / name for name in sorted(set(names))) if path.is_file()]
