"""A new API key, shown once."""

import re
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils import timezone

from memory.errors import SonderError
from memory.management.output import as_json
from memory.management.scope import existing_account
from memory.models import Account
from memory.models.scope import SLUG, SLUG_WORDS
from memory.models.vocabulary import OutcomeSource, ReviewPolicy
from memory.services.keys import SCOPES, create_key

MAX_DAYS = 36_500  # a hundred years; beyond that somebody means for ever


class Command(BaseCommand):
    help = "Creates an API key. The account is what the key may see; the source is who judges when it reports outcomes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("account", help=f"slug of the account ({SLUG_WORDS})")
        parser.add_argument("--source", required=True, choices=OutcomeSource.values, help="who judges with this key")
        parser.add_argument("--scopes", default="loop", help=f"comma-separated, from {', '.join(SCOPES)}")
        parser.add_argument("--name", default="", help="what the key is for")
        parser.add_argument("--expires-days", type=int, help="days until the key stops working; never if left out")
        parser.add_argument("--create-account", action="store_true", help="make the account if it does not exist")
        parser.add_argument(
            "--review-policy",
            choices=ReviewPolicy.values,
            help=f"of a new account: whether new lessons wait for a reviewer; {ReviewPolicy.AUTO.value} unless given",
        )
        parser.add_argument("--json", action="store_true")

    @transaction.atomic
    def handle(self, **options: Any) -> None:
        days = options["expires_days"]
        if days is not None and not 1 <= days <= MAX_DAYS:
            raise CommandError(f"--expires-days is from 1 to {MAX_DAYS}; leave it out for a key that does not expire.")
        account = self._account(options)
        try:
            made = create_key(
                account,
                name=options["name"] or f"{options['source']} key",
                source=options["source"],
                scopes=[scope.strip() for scope in options["scopes"].split(",")],
                expires_at=timezone.now() + timedelta(days=days) if days else None,
                by="system",
            )
        except SonderError as refusal:
            raise CommandError(refusal.detail) from None
        told = {
            "key": made.secret,
            "prefix": made.key.prefix,
            "account": account.slug,
            "source": made.key.outcome_source,
            "scopes": made.key.scopes,
        }
        if options["json"]:
            as_json(self, told)
        else:
            self.stdout.write(f"{made.secret}\nKeep it now: only its hash is stored, and it is never shown again.")

    def _account(self, options: dict[str, Any]) -> Account:
        slug, policy = options["account"], options["review_policy"]
        if not options["create_account"]:
            return self._as_asked(existing_account(slug, "Add --create-account to make it."), policy)
        if not re.fullmatch(SLUG, slug):
            raise CommandError(f"{slug!r} is no slug: use {SLUG_WORDS}.")
        new = {"name": slug, "review_policy": policy or ReviewPolicy.AUTO.value}
        account, made = Account.objects.get_or_create(slug=slug, defaults=new)
        return account if made else self._as_asked(account, policy)

    def _as_asked(self, account: Account, policy: str | None) -> Account:
        """The account that there was; it is not changed by the way."""
        if policy is not None and policy != account.review_policy:
            raise CommandError(
                f"--review-policy is of a new account; '{account.slug}' exists already and is {account.review_policy}. "
                "Leave the option out, and change the account in the admin."
            )
        return account
