"""fastembed's models, loaded when first used and shared between threads."""

import ctypes
import os
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

from memory.embedding.base import MAX_CHARACTERS, encodable
from memory.errors import EmbeddingUnavailable

if TYPE_CHECKING:
    from fastembed import TextEmbedding

T = TypeVar("T")

#: Texts from this length on (about 100 tokens) leave freed memory behind that is worth returning, 3 ms a time.
LONG_CHARACTERS: Final = 500


class OnnxModel:
    """A fastembed model, loaded on first use (about half a second) and shared between threads.

    `options` gives fastembed's arguments when they are first needed; it may raise EmbeddingUnavailable itself.
    """

    def __init__(self, name: str, options: Callable[[], dict[str, Any]]) -> None:
        self.name = name
        self._options = options
        self._model: TextEmbedding | None = None
        self._loading = Lock()
        self._running = Lock()

    def get(self) -> "TextEmbedding":
        """The loaded model. Raises EmbeddingUnavailable if it cannot be loaded; the next call tries again."""
        if self._model is None:
            with self._loading:
                if self._model is None:
                    self._model = self._load()
        return self._model

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Any]:
        """One row a text, as the model gives them. Raises EmbeddingUnavailable if the model fails."""
        model = self.get()
        run = model.query_embed if query else model.passage_embed
        return [self._run(run, encodable(text[:MAX_CHARACTERS])) for text in texts]

    def _run(self, run: Callable[[list[str]], Iterable[Any]], text: str) -> Any:
        # One text a run: a batch is padded to its longest text, which costs memory (1.6 GB for 16 long ones at
        # fastembed's default size) and saves no time on one thread. One run at a time: a long text takes 70 MB, and
        # eight at once gain nothing over one after another while the interpreter's other work needs the cores.
        with self._running:
            (row,) = self._guarded(lambda: list(run([text])))
            if len(text) >= LONG_CHARACTERS:
                _return_freed_memory()
        return row

    def _load(self) -> "TextEmbedding":
        options = self._options()
        # Set before the tokenizer's first use: its thread pool gains nothing on single texts and warns after a fork.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        model = self._guarded(lambda: _fastembed(self.name, options))
        _return_freed_memory()
        return model

    def _guarded(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except Exception as error:
            if not _is_the_models(error):
                raise
            raise EmbeddingUnavailable(f"The embedding model {self.name} does not work here: {error}") from error


def _fastembed(name: str, options: dict[str, Any]) -> "TextEmbedding":
    from fastembed import TextEmbedding

    # onnxruntime's own arena would keep the memory of the longest text for good.
    return TextEmbedding(name, threads=1, enable_cpu_mem_arena=False, **options)


def _is_the_models(error: Exception) -> bool:
    """Whether the model, its files or its libraries are to blame: what loading and running a damaged one raises.

    The tokenizers' library raises Exception itself, and onnxruntime's exceptions share no other base class. Files of
    another shape than fastembed expects end in its lookups.
    """
    known = (ArithmeticError, AttributeError, ImportError, LookupError, OSError, RuntimeError, TypeError, ValueError)
    theirs = type(error).__module__.startswith("onnxruntime.")
    return type(error) is Exception or theirs or isinstance(error, known)


def _return_freed_memory() -> None:
    """Gives freed pages, which glibc would keep, back to the system: 60 MB after loading, more after long texts."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)
