"""`evaluate replay`: what a policy with other constants would have decided over this store's own log."""

import time
from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from evaluation.report import Progress, Report
from memory.errors import Invalid, NotFound

if TYPE_CHECKING:
    from evaluation.replay.result import ReplayResult


def add_arguments(parser: ArgumentParser) -> None:
    """Options of the evaluation."""
    parser.add_argument("--policy", help="`trial` or `reference`; the one in force unless given")
    parser.add_argument(
        "--set", action="append", default=[], metavar="CONSTANT=VALUE",
        help="a constant of the policy, as in quarantine_odds=100; may be given more than once",
    )  # fmt: skip
    parser.add_argument(
        "--since", metavar="DATE", help="the replayed policy takes over from this day on, as 2026-05-31"
    )
    parser.add_argument("--account", metavar="SLUG", help="whose lessons, where accounts share none")


def evaluate(options: Mapping[str, Any], tell: Progress) -> Report:
    """Replays each scope of the store. Raises Invalid or NotFound naming the option that cannot be used."""
    from evaluation.replay.constants import parse
    from evaluation.replay.replay import replay
    from evaluation.replay.result import Scope
    from evaluation.replay.telling import report

    began = time.monotonic()
    constants = parse(options.get("set") or [])
    since = _day(options.get("since"))
    scopes = [Scope(account_id=account, since=since) for account in _accounts(options.get("account"))]
    found: list[ReplayResult] = [replay(options.get("policy"), constants, scope, tell) for scope in scopes]
    return report(
        found,
        command=_command(options),
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        took_s=time.monotonic() - began,
    )


def _day(since: str | None) -> datetime | None:
    """Midnight, UTC, of a day as people write it."""
    if since is None:
        return None
    try:
        found = datetime.fromisoformat(since)
    except ValueError:
        raise Invalid.field("--since", f"{since!r} is no day; write it as 2026-05-31.") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _accounts(slug: str | None) -> list[UUID | None]:
    """Whose lessons are replayed: everybody's at once where they are shared, else each account's or the named one's."""
    from memory import conf
    from memory.models import Account

    if conf.current().lesson_scope != "account":
        if slug is not None:
            raise Invalid.field(
                "--account", "lessons are shared by all accounts here (SONDER_LESSON_SCOPE=global); leave it out."
            )
        return [None]
    if slug is None:
        accounts: list[UUID | None] = list(Account.objects.order_by("slug").values_list("pk", flat=True))
        if not accounts:
            raise NotFound("This store has no account yet, so there is nothing to replay.")
        return accounts
    account = Account.objects.filter(slug=slug).first()
    if account is None:
        raise NotFound(f"There is no account {slug!r}; the admin lists those that there are.")
    return [account.pk]


def _command(options: Mapping[str, Any]) -> str:
    words = ["python manage.py evaluate replay"]
    words += [f"--{name} {options[name]}" for name in ("policy", "since", "account") if options.get(name)]
    words += [f"--set {word}" for word in options.get("set") or []]
    return " ".join(words)
