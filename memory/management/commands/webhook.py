"""Webhooks: endpoints made, listed, tried out and switched off and on."""

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.db.models import Count, Q

from memory.errors import SonderError
from memory.management.output import as_json
from memory.management.scope import existing_account
from memory.models import WebhookEndpoint
from memory.models.vocabulary import DeliveryState, DisabledBecause
from memory.models.webhook import CHOSEN_EVENTS
from memory.services.webhooks import endpoints
from memory.services.webhooks.sending import try_out

ACTIONS = ("add", "list", "test", "disable", "enable")


class Command(BaseCommand):
    help = "Who is told of quarantines, contradictions and a review queue that waits. The secret is shown once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=ACTIONS)
        parser.add_argument("target", nargs="?", default="", help="of add: the address; of the others but list: the id")
        parser.add_argument("--account", help="slug of the account; without one it hears of the whole installation")
        parser.add_argument("--events", default=",".join(CHOSEN_EVENTS), help="comma-separated; all unless given")
        parser.add_argument("--description", default="", help="what the endpoint is for")
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        action, target = options["action"], options["target"]
        if bool(target) == (action == "list"):
            raise CommandError("Say `webhook add URL`, `webhook list`, or `webhook test|disable|enable ID`.")
        try:
            told, lines = getattr(self, f"_{action}")(target, options)
        except SonderError as refusal:
            raise CommandError(refusal.detail) from None
        if options["json"]:
            as_json(self, told)
        else:
            self.stdout.write("\n".join(lines))
        if action == "test" and told["state"] != DeliveryState.DELIVERED:
            raise CommandError("The test was not delivered.")

    @transaction.atomic
    def _add(self, url: str, options: dict[str, Any]) -> tuple[Any, list[str]]:
        account = existing_account(options["account"]) if options["account"] else None
        made = endpoints.add(
            account_id=account.pk if account else None,
            url=url,
            events=[event.strip() for event in options["events"].split(",")],
            description=options["description"],
        )
        told = {**_about(made.endpoint), "secret": made.secret}
        return told, [made.secret, f"{made.endpoint.pk} is on. Keep its secret now: it is never shown again."]

    def _list(self, _: str, options: dict[str, Any]) -> tuple[Any, list[str]]:
        found = WebhookEndpoint.objects.select_related("account").annotate(
            waiting=Count(
                "webhookdelivery", filter=Q(webhookdelivery__completed_at=None, webhookdelivery__isnull=False)
            )
        )
        if options["account"]:
            found = found.filter(account=existing_account(options["account"]))
        told = [{**_about(row), "waiting": row.waiting} for row in found.order_by("pk")]
        return told, list(_as_lines(told)) or ["There is no endpoint."]

    def _test(self, target: str, _: dict[str, Any]) -> tuple[Any, list[str]]:
        endpoint = endpoints.find(_id(target))
        if endpoint.disabled_at is not None:
            raise CommandError("This endpoint is off. `webhook enable` switches it on.")
        row = try_out(endpoint)
        told = {"delivery": row.pk, "state": row.state, "status": row.last_status, "error": row.last_error}
        return told, [f"{row.state}: HTTP {row.last_status}" if row.last_status else f"{row.state}: {row.last_error}"]

    def _disable(self, target: str, _: dict[str, Any]) -> tuple[Any, list[str]]:
        endpoint = endpoints.find(_id(target))
        changed = endpoints.disable(endpoint.pk, DisabledBecause.OPERATOR)
        return {"id": endpoint.pk, "changed": changed}, ["It is off, and what waited for it is cancelled."]

    def _enable(self, target: str, _: dict[str, Any]) -> tuple[Any, list[str]]:
        endpoint = endpoints.find(_id(target))
        return {"id": endpoint.pk, "changed": endpoints.enable(endpoint.pk)}, ["It is on."]


def _id(word: str) -> UUID:
    try:
        return UUID(word)
    except ValueError:
        raise CommandError(f"{word!r} is no id; `webhook list` shows them.") from None


def _about(row: WebhookEndpoint) -> dict[str, Any]:
    return {
        "id": row.pk,
        "account": row.account.slug if row.account else None,
        "url": row.url,
        "events": row.events,
        "description": row.description,
        "failing_since": row.failing_since,
        "delivered_at": row.delivered_at,
        "disabled_because": row.disabled_because,
    }


def _as_lines(told: list[dict[str, Any]]) -> Iterator[str]:
    for each in told:
        state = (
            f"off ({each['disabled_because']})"
            if each["disabled_because"]
            else "failing"
            if each["failing_since"]
            else "on"
        )
        yield f"{each['id']}  {state}  {each['account'] or 'the whole installation'}  {each['url']}"
        yield f"  {', '.join(each['events'])}; {each['waiting']} waiting"
