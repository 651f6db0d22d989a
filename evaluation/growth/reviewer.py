"""A person at the review pages, over HTTP: logs in, looks, decides, and takes a moment between two pages."""

import re
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import httpx

from evaluation.performance.forms import fields

PATIENCE_SECONDS: Final = 60
MOMENT_SECONDS: Final = 0.5  # between two pages; a person takes longer, and one of many would come sooner
PAGES: Final = ("dashboard", "inbox", "lesson", "decision")


class Reviewer:
    """Round after round: dashboard, inbox, the evidence of the first lesson there, and that it is approved."""

    def __init__(self, address: str, username: str, password: str) -> None:
        self._client = httpx.Client(base_url=f"http://{address}", timeout=PATIENCE_SECONDS, trust_env=False)
        self._login = {"username": username, "password": password}
        self.seconds: dict[str, list[float]] = defaultdict(list)  # of each look at a page, by its name in PAGES
        self.errors: list[str] = []
        self.decided = 0

    def log_in(self) -> None:
        """Raises httpx.HTTPError or ValueError if the site does not let them in."""
        self._client.get("/login/").raise_for_status()
        answer = self._client.post("/login/", data=self._login, headers=self._token())
        if answer.status_code != httpx.codes.FOUND:
            raise ValueError(f"the login was answered {answer.status_code}")

    def round(self, end: threading.Event) -> None:
        """Looks at each page once and decides."""
        self._look("dashboard", "/review/")
        end.wait(MOMENT_SECONDS)
        inbox = self._look("inbox", "/review/inbox/")
        sent = fields(inbox, "approve") | {"idempotency_key": uuid.uuid4().hex}
        end.wait(MOMENT_SECONDS)
        self._look("lesson", f"/review/lessons/{sent['subject']}/")
        end.wait(MOMENT_SECONDS)
        began = time.perf_counter()
        answer = self._client.post("/review/decide/", data=sent, headers=self._token(), follow_redirects=True)
        self.seconds["decision"].append(time.perf_counter() - began)
        answer.raise_for_status()
        self.decided += bool(answer.history)
        end.wait(MOMENT_SECONDS)

    def work(self, end: threading.Event) -> None:
        """Rounds until the end; what goes wrong is noted."""
        while not end.is_set():
            try:
                self.round(end)
            except (httpx.HTTPError, LookupError) as fault:
                self.errors.append(f"{type(fault).__name__}: {fault}")
                end.wait(MOMENT_SECONDS)

    def _look(self, name: str, url: str) -> str:
        began = time.perf_counter()
        answer = self._client.get(url)
        self.seconds[name].append(time.perf_counter() - began)
        answer.raise_for_status()
        return answer.text

    def _token(self) -> dict[str, str]:
        return {"X-CSRFToken": self._client.cookies["csrftoken"]}

    def close(self) -> None:
        self._client.close()


@contextmanager
def reviewing(reviewer: Reviewer) -> Iterator[None]:
    """Meanwhile they review, in a thread of their own."""
    end = threading.Event()
    working = threading.Thread(target=reviewer.work, args=[end])
    reviewer.log_in()
    working.start()
    try:
        yield
    finally:
        end.set()
        working.join()
        reviewer.close()


def address_of(url: str) -> str:
    """Host and port of an address as `manage.py up` tells it."""
    return re.sub(r"^http://|/$", "", url)
