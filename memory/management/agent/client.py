"""The agents' API as a program without this product's code would call it: HTTP, a key, and patience."""

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import httpx

from memory.errors import SonderError

TIMEOUT_SECONDS: Final = 30.0
MAX_PAUSE_SECONDS: Final = 65.0  # longest wait that a server may ask for: its limits are by the minute
FIRST_LOOK_SECONDS, MAX_LOOK_SECONDS = 0.05, 2.0  # pauses between looks grow: a limit on reading requests is shared
PAGE: Final = 200
PROJECT: Final = "demo-agent"  # what the agent does lies in a project of its own, and can be erased with it


class ServerRefused(SonderError):
    """The server does not answer, or with something else than what the script needs."""

    title = "The server refused"


class Client:
    """One agent with its key. Every call raises ServerRefused if the server does not do what is asked."""

    def __init__(self, url: str, key: str, *, transport: httpx.BaseTransport | None = None) -> None:
        self._http = httpx.Client(
            base_url=url.rstrip("/") + "/api/v1/",
            headers={"Authorization": f"Bearer {key}"},
            timeout=TIMEOUT_SECONDS,
            transport=transport,
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def start(self, task: str, k: int) -> dict[str, Any]:
        """A new interaction with the lessons that it is handed."""
        return self._call("POST", "interactions/", {"task": task, "k": k, "project": PROJECT})

    def respond(self, interaction: str, response: str) -> None:
        self._call("PATCH", f"interactions/{interaction}/", {"response": response})

    def report(self, interaction: str, signal: str) -> None:
        self._call("POST", f"interactions/{interaction}/outcomes/", {"signal": signal})

    def call_off(self, interaction: str) -> None:
        """Cancels the interaction's distillation, unless it has ended already."""
        path = f"distillations/{interaction}/cancel/"
        answer = self._answer("POST", path)
        if answer.status_code != httpx.codes.CONFLICT:
            _accepted(answer, "POST", path)

    def get(self, path: str) -> dict[str, Any]:
        return self._call("GET", path)

    def pages(self, path: str, **filters: str) -> Iterator[dict[str, Any]]:
        """Every row of a list, newest first."""
        query = httpx.QueryParams({**filters, "page_size": str(PAGE)})
        page = self._call("GET", f"{path}?{query}")
        yield from page["results"]
        while page["next"]:
            page = self._call("GET", page["next"])
            yield from page["results"]

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        return _accepted(self._answer(method, path, body), method, path)

    def _answer(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        try:
            answer = self._http.request(method, path, json=body)
            while answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
                time.sleep(_pause(answer.headers.get("Retry-After", "")))
                answer = self._http.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise ServerRefused(f"{self._http.base_url} does not answer ({type(error).__name__}).") from None
        return answer


def _accepted(answer: httpx.Response, method: str, path: str) -> dict[str, Any]:
    if answer.is_error:
        raise ServerRefused(f"{method} {path}: {answer.status_code} {_detail(answer)}")
    return dict(answer.json())


def _pause(asked: str) -> float:
    """Seconds to wait before the next attempt."""
    return min(float(asked), MAX_PAUSE_SECONDS) if asked.isdecimal() else 1.0


def _detail(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return answer.reason_phrase


def until(happened: Callable[[], bool], seconds: float) -> bool:
    """Looks again and again, less and less often, until it has happened; False if it has not within `seconds`."""
    end, pause = time.monotonic() + seconds, FIRST_LOOK_SECONDS
    while not happened():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
        pause = min(1.5 * pause, MAX_LOOK_SECONDS)
    return True
