"""One request from its first attempt to its answer: what is sent, when again, and what an answer means."""

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import httpx

from sonder_client import errors
from sonder_client.call import PAGE, Call, Listing
from sonder_client.reading import read
from sonder_client.retries import PASSING, Retries, asked_by

T = TypeVar("T")
MAX_DETAIL: Final = 2_000  # characters: enough to recognise a failure by


@dataclass(frozen=True, kw_only=True)
class Page(Generic[T]):
    """A part of a list."""

    rows: tuple[T, ...]
    cursor: str | None  # names the next page; None at the end


class Exchange(Generic[T]):
    """Counts the attempts. All of them carry one request id, and a write one idempotency key: it is done once."""

    def __init__(self, call: Call[T], retries: Retries) -> None:
        self._call, self._retries = call, retries
        self._attempt = 0
        self.request_id = str(uuid4())
        self.idempotency_key = (call.idempotency_key or str(uuid4())) if call.writes else None

    @property
    def request(self) -> dict[str, Any]:
        """Arguments of httpx's `request`, but for the authorization."""
        headers = {"X-Request-ID": self.request_id, "Accept": "application/json"}
        if self.idempotency_key is not None:
            headers["Idempotency-Key"] = self.idempotency_key
        call = self._call
        carried = {"json": call.body} if call.body is not None else {}
        return {"method": call.method, "url": call.path, "params": call.query, "headers": headers, **carried}

    def failed(self, error: httpx.TransportError) -> float:
        """Seconds to wait after an attempt without an answer. Raises Unreachable after the last."""
        self._attempt += 1
        pause = self._retries.pause(self._attempt)
        if pause is None:
            said = f"no answer after {self._attempt} attempts ({type(error).__name__}: {error})"
            raise errors.Unreachable(said, request_id=self.request_id, idempotency_key=self.idempotency_key) from error
        return pause

    def pause(self, answer: httpx.Response) -> float | None:
        """Seconds to wait after an answer that may pass; None for one that counts."""
        self._attempt += 1
        if answer.status_code not in PASSING:
            return None
        return self._retries.pause(self._attempt, asked_by(answer))

    def value(self, answer: httpx.Response) -> T:
        """What the answer says. Raises Refused, or Unexpected for what is no answer of this API."""
        if not answer.is_success:
            raise _refusal(answer, self.request_id)
        try:
            return read(self._call.answer, answer.json())
        except (ValueError, TypeError, KeyError) as error:
            raise errors.Unexpected(
                f"{answer.request.url.path} answered what this client cannot read: {error}"
            ) from error


def failure_of(error: Exception) -> str:
    """What an exception says, as the detail of an outcome."""
    return f"{type(error).__name__}: {error}"[:MAX_DETAIL]


def page_call(listing: Listing[T], cursor: str | None) -> Call[dict[str, Any]]:
    """The request for one page of a list."""
    query = {**listing.query, "page_size": str(PAGE), **({"cursor": cursor} if cursor is not None else {})}
    return Call(method="GET", path=listing.path, answer=dict, query=query)


def page_of(listing: Listing[T], body: dict[str, Any]) -> Page[T]:
    """The rows of a page. Of the address of the next one only the cursor is taken: the key goes nowhere else."""
    try:
        rows = tuple(read(listing.row, row) for row in body["results"])
        cursors = parse_qs(urlsplit(body["next"] or "").query).get("cursor", [])
    except (ValueError, TypeError, KeyError) as error:
        raise errors.Unexpected(f"{listing.path} answered what this client cannot read: {error}") from error
    return Page(rows=rows, cursor=cursors[0] if cursors else None)


def _refusal(answer: httpx.Response, request_id: str) -> errors.SonderError:
    if answer.is_redirect:
        target = answer.headers.get("Location", "elsewhere")
        return errors.Unexpected(f"{answer.request.url} redirects to {target}. Use that server's address.")
    try:
        problem = answer.json()
    except ValueError:
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    named = problem.get("errors")
    refusal = errors.BY_STATUS.get(answer.status_code, errors.Refused)(
        status=answer.status_code,
        title=str(problem.get("title", answer.reason_phrase)),
        detail=str(problem.get("detail", "The answer says nothing more.")),
        errors={str(k): tuple(map(str, v)) for k, v in named.items()} if isinstance(named, dict) else {},
        request_id=answer.headers.get("X-Request-ID", request_id),
    )
    if isinstance(refusal, errors.Throttled):
        refusal.retry_after = asked_by(answer)
    return refusal
