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
from memory.models import Account
from memory.models.scope import SLUG, SLUG_WORDS
from memory.models.vocabulary import OutcomeSource, ReviewPolicy
from memory.services.keys import SCOPES, create_key


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
            default=ReviewPolicy.AUTO.value,
            help="of a new account: whether new lessons wait for a reviewer",
        )
        parser.add_argument("--json", action="store_true")

    @transaction.atomic
    def handle(self, **options: Any) -> None:
        account = self._account(options)
        days = options["expires_days"]
        if days is not None and days < 1:
            raise CommandError("--expires-days must be at least 1.")
        try:
            made = create_key(
                account,
                name=options["name"] or f"{options['source']} key",
                source=options["source"],
                scopes=[scope.strip() for scope in options["scopes"].split(",")],
                expires_at=timezone.now() + timedelta(days=days) if days else None,
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
        slug = options["account"]
        account = Account.objects.filter(slug=slug).first()
        if account is not None:
            return account
        if not options["create_account"]:
            raise CommandError(f"There is no account '{slug}'. Add --create-account to make it.")
        if not re.match(SLUG, slug):
            raise CommandError(f"'{slug}' is no slug: use {SLUG_WORDS}.")
        return Account.objects.create(slug=slug, name=slug, review_policy=options["review_policy"])
