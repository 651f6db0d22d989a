"""What people do in the browser: a client of Django's that is logged in, and pages that say what may be sent."""

import re
from dataclasses import dataclass
from html import unescape
from typing import Any
from uuid import UUID, uuid4

from django.contrib.auth import get_user_model
from django.test import Client

from memory.models import Account, Contradiction, Lesson, ReviewItem
from memory.rules.reasons import reasons_for
from memory.services.authority import Person
from tests.services.people import member

DECIDE, UNDO, BULK = "/review/decide/", "/review/undo/", "/review/inbox/bulk/"
_VERSION = re.compile(r'expected_version(?:" value="|=)(\d+)')
_ITEM = re.compile(r'(?:name="item" value="|[?;]item=)([0-9a-f-]{36})')


@dataclass(frozen=True, kw_only=True)
class Browser:
    """A person at their browser."""

    who: Person
    client: Client

    def page(self, address: str, **asked: Any) -> str:
        """What a page shows."""
        answer = self.client.get(address, asked)
        assert answer.status_code == 200, (address, answer.status_code)
        return answer.content.decode()

    def decide(self, verdict: str, about: Lesson | Contradiction | UUID, **more: Any) -> Any:
        """Sends the form of a decision, with the version and the question that the page of the subject shows now."""
        shown = self.page(address_of(about))
        version, item = _VERSION.search(shown), _ITEM.search(shown)
        sent = {
            "decision": verdict,
            "subject": getattr(about, "pk", about),
            "expected_version": version[1] if version else 0,
            "item": item[1] if item else "",
            "reason_code": "other" if reasons_for(verdict) else "",
            "note": "as seen in the browser",
            "idempotency_key": uuid4().hex,
            **more,
        }
        return self.client.post(DECIDE, sent)

    def did(self, verdict: str, about: Lesson | Contradiction | UUID, **more: Any) -> None:
        """The same, and it was carried out."""
        answer = self.decide(verdict, about, **more)
        assert answer.status_code == 302, said(answer)

    def undo(self) -> None:
        """Takes the latest decision back."""
        answer = self.client.post(UNDO)
        assert answer.status_code == 302, said(answer)

    def item(self, kind: str, about: Lesson | UUID) -> ReviewItem:
        """The open question of a kind about something."""
        return ReviewItem.objects.get(kind=kind, subject=getattr(about, "pk", about), status="open")


def address_of(about: Lesson | Contradiction | UUID) -> str:
    """The page of a lesson or a pair; a bare id is a piece of work."""
    rooms = {Lesson: "lessons", Contradiction: "contradictions"}
    return f"/review/{rooms.get(type(about), 'interactions')}/{getattr(about, 'pk', about)}/"


def at_browser(account: Account, role: str, name: str) -> Browser:
    """Somebody with a role, logged in."""
    who, client = member(account, role, name), Client()
    client.force_login(get_user_model().objects.get(pk=who.user_id))
    return Browser(who=who, client=client)


def said(answer: Any) -> str:
    """The words of a page."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())
