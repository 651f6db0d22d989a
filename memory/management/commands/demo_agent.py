"""A scripted agent that works with a running server until everything that the store can do has happened once."""

from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from kombu.exceptions import OperationalError

from memory import tasks
from memory.errors import SonderError
from memory.management.agent.client import Client
from memory.management.agent.play import LEAST, Player, Told
from memory.management.agent.script import Script
from memory.management.output import as_json, progress
from memory.models import Account, ApiKey
from memory.models.vocabulary import OutcomeSource, ReviewPolicy
from memory.services.keys import create_key
from memory.services.setup import DEMO

NAME = "demo agent"  # of the keys that this command makes
SCOPES = ("loop", "read", "govern")
MESSAGE_SECONDS = 600


class Command(BaseCommand):
    help = (
        "Plays an agent over HTTP against a running server with its worker: it learns lessons new and old, vague and "
        "secret, is misled by one until that is quarantined, and finds it useful again. Ends with an error if anything "
        "that should have come of it has not. Run seed_demo first: one of its lessons is there twice, and something is "
        "then to be merged. With SONDER_TRUST_POLICY=reference and SONDER_PROBATION_AFTER_HOURS=0 the server lets a "
        "sample of the quarantined lesson through at once, and a win on it brings the lesson back; with other settings "
        "the judge takes back what was said. Requests wait for the server's limits (SONDER_THROTTLE_LOOP)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--url", default="http://127.0.0.1:8000", help="of the server; %(default)s unless given")
        parser.add_argument(
            "--key", help=f"an API key with the scopes {', '.join(SCOPES)}; one for this run unless given"
        )
        parser.add_argument("--interactions", type=int, default=500, help=f"how many, at least {LEAST}")
        parser.add_argument("--run", type=int, help="number of the run: each has lessons of its own")
        parser.add_argument("--wait", type=float, default=60.0, help="seconds for each thing that must come of it")
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        if options["interactions"] < LEAST:
            raise CommandError(
                f"{options['interactions']} interactions are too few for the story; use {LEAST} or more."
            )
        try:
            with key_for_this_run(options["key"]) as (key, run), Client(options["url"], key) as client:
                script = Script(n=options["run"] or run)
                player = Player(client, script, interactions=options["interactions"], patience=options["wait"])
                told = self._play(player, options["interactions"])
        except SonderError as refusal:
            raise CommandError(refusal.detail) from None
        except KeyboardInterrupt:
            raise CommandError("Interrupted. What was played stays.", returncode=130) from None
        if options["json"]:
            as_json(self, vars(told))
        else:
            self._tell(told)
        if told.missing:
            raise CommandError(f"Not seen within {options['wait']:g} s: {', '.join(told.missing)}. Does a worker run?")

    def _play(self, player: Player, interactions: int) -> Told:
        with progress() as bar:
            shown = bar.add_task("interactions", total=interactions)
            for done in player.play():
                bar.update(shown, completed=done)
            self._look_for_contradictions()
            bar.add_task("waiting for the worker", total=None)
            return player.look()

    def _look_for_contradictions(self) -> None:
        """Asks the worker to look now for what it would look for within the hour."""
        try:
            tasks.maintenance_contradictions.apply_async(expires=MESSAGE_SECONDS)
        except (OperationalError, OSError) as error:
            self.stderr.write(
                f"The broker does not answer ({type(error).__name__}); the schedule will look within the hour."
            )

    def _tell(self, told: Told) -> None:
        said = ", ".join(f"{n} {signal}" for signal, n in told.outcomes.most_common())
        self.stdout.write(f"{told.interactions} interactions; outcomes: {said}.")
        for reason, n in sorted(told.distillations.items()):
            self.stdout.write(f"  {n:>5}  {reason}")
        self.stdout.write(f"The harmful lesson: {', '.join(told.events) or 'nothing happened to it'}.")
        self.stdout.write(f"{told.contradictions} contradictions wait for a person.")
        self.stdout.write(f"{told.prune_clusters} groups of lessons say the same: see 'manage.py prune'.")


@contextmanager
def key_for_this_run(given: str | None) -> Iterator[tuple[str, int]]:
    """The key to play with, and the number of the run; a key that is made here is revoked at the end."""
    if given is not None:
        yield given, 1
        return
    defaults = {"name": "Demo", "review_policy": ReviewPolicy.AUTO.value}
    account, _ = Account.objects.get_or_create(slug=DEMO, defaults=defaults)
    earlier = ApiKey.objects.filter(name=NAME).count()
    made = create_key(account, name=NAME, source=OutcomeSource.CALLER.value, scopes=SCOPES)
    try:
        yield made.secret, earlier + 1
    finally:
        ApiKey.objects.filter(pk=made.key.pk).update(revoked_at=timezone.now())
