"""Named refusals. Each carries a sentence for the person who meets it, and the field it is about where there is one."""

from collections.abc import Mapping


class SonderError(Exception):
    """Base of every refusal: `detail` is the sentence, `errors` names fields and what to do about each."""

    title = "The request was refused"

    def __init__(self, detail: str, errors: Mapping[str, list[str]] | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = dict(errors or {})


class Invalid(SonderError):
    """A value is missing, malformed or not allowed; the caller can correct it."""

    title = "The request is not valid"

    @classmethod
    def field(cls, name: str, message: str) -> "Invalid":
        return cls(f"{name}: {message}", {name: [message]})


class NotFound(SonderError):
    """The thing does not exist in the caller's scope; another account's things do not exist either."""

    title = "Not found"


class Conflict(SonderError):
    """The thing changed since the caller read it, or the same key came with another body."""

    title = "Conflict"


class Forbidden(SonderError):
    """The credential is valid but may not do this."""

    title = "Not allowed"


class EmbeddingUnavailable(SonderError):
    """No usable embedding right now; retrieval goes on with words alone and says so."""

    title = "Embeddings are unavailable"
