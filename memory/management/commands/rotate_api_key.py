"""A new secret for an API key, shown once."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from memory.errors import SonderError
from memory.management.commands.create_api_key import MAX_DAYS
from memory.management.output import as_json
from memory.models import ApiKey
from memory.services.keys import MAX_GRACE, rotate

MAX_HOURS = int(MAX_GRACE.total_seconds()) // 3600


class Command(BaseCommand):
    help = "Replaces an API key by one with the same account, name, source and scopes, under a secret of its own."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("prefix", help="prefix of the key: the 12 characters after sonder_")
        parser.add_argument(
            "--grace-hours", type=int, default=0, help="hours for which the old one still works; revoked at once if 0"
        )
        parser.add_argument("--expires-days", type=int, help="days until the new one stops; as the old one if left out")
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        days, hours = options["expires_days"], options["grace_hours"]
        if days is not None and not 1 <= days <= MAX_DAYS:
            raise CommandError(f"--expires-days is from 1 to {MAX_DAYS}.")
        if not 0 <= hours <= MAX_HOURS:
            raise CommandError(f"--grace-hours is from 0 to {MAX_HOURS}.")
        key = ApiKey.objects.filter(prefix=options["prefix"]).first()
        if key is None:
            raise CommandError(f"There is no key with the prefix {options['prefix']!r}.")
        expires_at = timezone.now() + timedelta(days=days) if days else None
        try:
            made = rotate(key.pk, by="system", grace=timedelta(hours=hours), expires_at=expires_at)
        except SonderError as refusal:
            raise CommandError(refusal.detail) from None
        key.refresh_from_db()
        ends = key.revoked_at or key.expires_at
        told = {
            "key": made.secret,
            "prefix": made.key.prefix,
            "expires_at": made.key.expires_at,
            "replaces": key.prefix,
            "replaced_ends_at": ends,
        }
        if options["json"]:
            as_json(self, told)
        else:
            self.stdout.write(
                f"{made.secret}\nKeep it now: only its hash is stored, and it is never shown again. "
                f"The key {key.prefix} {'has ended' if key.revoked_at else f'works until {ends:%Y-%m-%d %H:%M} UTC'}."
            )
