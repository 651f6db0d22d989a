"""What can go wrong. A refusal carries what the server says to do, the fields to blame, and where its log has it."""

from collections.abc import Mapping


class SonderError(Exception):
    """Base of all that this client raises."""


class Unreachable(SonderError):
    """No answer arrived, however often it was tried. A write may have been done: send it again with the same key."""

    def __init__(self, message: str, *, request_id: str, idempotency_key: str | None) -> None:
        super().__init__(message)
        self.request_id = request_id
        self.idempotency_key = idempotency_key  # of the write; None for a read


class Unexpected(SonderError):
    """The answer is not one of this API: a proxy, another server, or a version that this client does not know."""


class Refused(SonderError):
    """The server refused (RFC 9457). Nothing was stored."""

    def __init__(
        self, *, status: int, title: str, detail: str, errors: Mapping[str, tuple[str, ...]], request_id: str
    ) -> None:
        fields = "".join(f"\n  {name}: {' '.join(sentences)}" for name, sentences in errors.items())
        super().__init__(f"{status} {title}: {detail}{fields}")
        self.status = status
        self.title = title
        self.detail = detail  # what is wrong and what to do
        self.errors = dict(errors)  # sentences by field, empty where no field is to blame
        self.request_id = request_id  # how the server's log names the request


class Invalid(Refused):
    """A field is missing, unknown, of the wrong type or out of range; or the body is too large."""


class Unauthorized(Refused):
    """The key is unknown, revoked or expired."""


class Forbidden(Refused):
    """The key lacks the scope."""


class NotFound(Refused):
    """There is no such thing in the key's account."""


class Conflict(Refused):
    """The thing is not as the request expects it, or the idempotency key was used for another request."""


class Throttled(Refused):
    """Too many requests, also after waiting."""

    retry_after: float | None = None  # seconds that the server asks for


class Unavailable(Refused):
    """The server could not do it now."""


BY_STATUS: Mapping[int, type[Refused]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    411: Invalid,
    413: Invalid,
    415: Invalid,
    429: Throttled,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}
