"""The mail that says how much waits: counts and ages, and nothing of what it is about."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from smtplib import SMTPException
from typing import Any, Final

import structlog
from django.conf import settings
from django.core.mail import send_mail
from django.urls import reverse

from memory.rules.health import age
from memory.rules.words import count
from memory.services import authority
from review.keys import KEYS
from review.models import Digest, Look
from review.queries.dashboard import QueueSize, decidable, may_decide, queue_sizes

log = structlog.get_logger(__name__)

JOB: Final = "digest"
#: An hour less than a day and a week: the job that looks who is due runs every hour, and never at the same second.
EVERY: Final = {Digest.DAILY.value: timedelta(hours=23), Digest.WEEKLY.value: timedelta(days=6, hours=23)}
NO_SERVER: Final = "django.core.mail.backends.dummy.EmailBackend"
LABELS: Final = {key.action: key.label for key in KEYS if key.scope == "go"}


def is_on() -> bool:
    """Whether there is a mail server."""
    return bool(settings.EMAIL_BACKEND != NO_SERVER)


def run(now: datetime) -> dict[str, Any]:
    """Sends what is due; returns the figures of the run. A mail that cannot be sent is tried again in the next run.

    Raises ExceptionGroup after the last one if any could not.
    """
    if not is_on():
        return {"off": "EMAIL_URL is not set"}
    figures, faults = {"due": 0, "sent": 0, "nothing_waits": 0}, []
    for look in _due(now):
        figures["due"] += 1
        try:
            figures["sent" if _send(look, now) else "nothing_waits"] += 1
        except (SMTPException, OSError) as fault:
            log.warning("digest_not_sent", user=look.user_id, reason=str(fault))
            faults.append(fault)
    if faults:
        raise ExceptionGroup(f"{len(faults)} of {figures['due']} mails could not be sent", faults)
    return figures


def _due(now: datetime) -> list[Look]:
    """Who wants one, has an address, and had the last one long enough ago."""
    wanting = Look.objects.filter(digest__in=EVERY, user__is_active=True).exclude(user__email="")
    return [
        look
        for look in wanting.select_related("user").order_by("user_id")
        if look.digest_sent_at is None or look.digest_sent_at <= now - EVERY[look.digest]
    ]


def _send(look: Look, now: datetime) -> bool:
    """Whether there was something to say."""
    user = look.user
    person = authority.person(user.pk, user.get_username(), superuser=user.is_superuser)
    sizes = queue_sizes(decidable(person), now) if may_decide(person) else []
    waiting = [size for size in sizes if size.waiting]
    if not waiting:
        return False
    send_mail(_subject(waiting, now), _text(waiting, look.digest, now), None, [user.email])
    Look.objects.filter(pk=look.pk).update(digest_sent_at=now)
    return True


def _subject(waiting: Sequence[QueueSize], now: datetime) -> str:
    n = sum(size.waiting for size in waiting)
    oldest = min(size.oldest for size in waiting if size.oldest)
    return f"Sonder: {count(n, 'question waits', 'questions wait')}, the oldest for {_ago(oldest, now)}"


def _text(waiting: Sequence[QueueSize], often: str, now: datetime) -> str:
    lines = [
        f"{LABELS[size.name]}: {size.waiting:,}, the oldest for {_ago(size.oldest, now)}"
        for size in waiting
        if size.oldest
    ]
    where = next(iter(settings.CSRF_TRUSTED_ORIGINS), "") + reverse("review:dashboard")
    end = (
        f"You chose to hear of it {often}; the settings change that. This mail says nothing of what the questions are."
    )
    return "\n".join(["What your role lets you answer:", "", *lines, "", where, "", end, ""])


def _ago(moment: datetime, now: datetime) -> str:
    return age(max(0.0, (now - moment).total_seconds()) / 3600)
