"""Finished work on its way to a lesson: interactions with responses, and their distillations in any state."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.test import override_settings
from django.utils import timezone

from memory.distillers import active as distillers
from memory.models import (
    Account,
    ApiKey,
    Interaction,
    Lesson,
    LessonDistillation,
    LessonEmbedding,
    WriteRefusal,
)
from memory.models.base import new_id
from memory.models.vocabulary import TombstoneReason
from memory.services import distilling, tombstone
from memory.services.caller import Caller
from memory.services.keys import caller_of, create_key
from tests.distillers.server import KEY, Server, chat_server
from tests.services.play import say, serve

TASK = "Fetch the monthly report from the billing service."
RESPONSE = "I fetched it. It hung at first, and with a timeout it does not."
OPEN, TERMINAL = ("pending", "claimed", "retryable"), ("stored", "no_lesson", "cancelled", "failed")


def caller(account: Account, source: str = "caller") -> Caller:
    """The account's caller of a kind, with the same key each time."""
    known = ApiKey.objects.filter(account=account, outcome_source=source).first()
    return caller_of(known or create_key(account, name=source, source=source, scopes=["loop"]).key)


def work(account: Account, response: str | None = RESPONSE, task: str = TASK, lessons: Sequence[Lesson] = ()) -> UUID:
    """An interaction that was handed these lessons, with the agent's answer; nobody has judged it."""
    caller(account)
    interaction = serve(account, task, lessons)
    Interaction.objects.filter(pk=interaction.pk).update(response=response)
    return interaction.pk


def judge(account: Account, interaction: UUID, *words: str) -> None:
    """`caller:accepted` and so on, in the order given."""
    for word in words:
        source, signal = word.split(":")
        say(caller(account, source), interaction, signal)


def good_work(account: Account, **about: Any) -> UUID:
    """An interaction that waits for its distillation."""
    interaction = work(account, **about)
    judge(account, interaction, "caller:accepted")
    return interaction


def row(interaction: UUID) -> LessonDistillation:
    return LessonDistillation.objects.get(pk=interaction)


def outcome_of(interaction: UUID) -> tuple[str, str | None]:
    """State and reason."""
    found = row(interaction)
    return found.state, found.result_reason


def put_into(interaction: UUID, state: str, **columns: Any) -> None:
    """Forces a distillation into a state, complete as the table demands."""
    now = timezone.now()
    claim: dict[str, Any] = {"claim_token": None, "owner": None, "claimed_at": None, "lease_expires_at": None}
    if state == "claimed":
        later = now + timedelta(seconds=300)
        claim = {"claim_token": new_id(), "owner": "elsewhere:1:t", "claimed_at": now, "lease_expires_at": later}
    end: dict[str, Any] = {"completed_at": None, "result_reason": None, "lesson": None}
    if state in TERMINAL:
        end = {"completed_at": now, "result_reason": "no_candidate", "lesson": new_id() if state == "stored" else None}
    LessonDistillation.objects.filter(pk=interaction).update(state=state, **(claim | end | columns))


def expire_lease(interaction: UUID) -> None:
    """As if the worker had died long enough ago."""
    LessonDistillation.objects.filter(pk=interaction).update(lease_expires_at=timezone.now() - timedelta(seconds=1))


def make_due(interaction: UUID) -> None:
    """As if it had been waiting for an hour, and the distiller had rested."""
    LessonDistillation.objects.filter(pk=interaction).update(created_at=timezone.now() - timedelta(hours=1))
    distillers.wake()


@contextmanager
def model() -> Iterator[Server]:
    """A model server, and the settings that name it."""
    with (
        chat_server() as server,
        override_settings(SONDER_DISTILLER_URL=server.url, SONDER_DISTILLER_MODEL="m", SONDER_DISTILLER_KEY=KEY),
    ):
        distillers.wake()
        try:
            yield server
        finally:
            distillers.wake()


def distill(account: Account, **about: Any) -> UUID:
    """Good work, distilled."""
    interaction = good_work(account, **about)
    distilling.distill(interaction)
    return interaction


def tables_with(text: str) -> list[str]:
    """Tables that hold a text in any column."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        names = [name for (name,) in cursor.fetchall()]
        holding = []
        for name in names:
            cursor.execute(f'SELECT EXISTS (SELECT 1 FROM "{name}" AS t WHERE t::text LIKE %s)', [f"%{text}%"])
            holding += [name] if cursor.fetchone()[0] else []
    return holding


def refusals() -> list[tuple[str, str, str | None, str]]:
    """Path, reason, digest and actor of each refused write."""
    return list(WriteRefusal.objects.values_list("path", "reason", "digest", "actor"))


def bury(rejected: Lesson) -> None:
    """Leaves nothing of a lesson but its tombstone."""
    tombstone.write(rejected.pk, TombstoneReason.REJECTED_BY_REVIEWER)
    LessonEmbedding.objects.filter(lesson=rejected).delete()
    rejected.delete()
