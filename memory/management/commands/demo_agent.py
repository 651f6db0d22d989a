"""A scripted agent that works with a running server until everything that the store can do has happened once."""

from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from kombu.exceptions import OperationalError

from memory import conf, tasks
from memory.errors import Conflict, SonderError
from memory.management.agent.client import PROJECT, Client
from memory.management.agent.model import Model
from memory.management.agent.play import LEAST, Player
from memory.management.agent.script import Script
from memory.management.agent.told import MODEL_REASONS, PRUNE_PLAN, Told
from memory.management.output import as_json, progress
from memory.models import Account, ApiKey, Interaction, Lesson, Project
from memory.models.vocabulary import Origin, OutcomeSource, ReviewPolicy
from memory.services.keys import create_key
from memory.services.setup import DEMO

NAME = "demo agent"  # of the keys that this command makes
SCOPES = ("loop", "read", "govern")
MESSAGE_SECONDS = 600
HINTS = {
    PRUNE_PLAN: "Run seed_demo first: it has a lesson twice.",
    **dict.fromkeys(
        MODEL_REASONS, "The server must ask the model here (SONDER_DISTILLER_URL) once (SONDER_DISTILL_MAX_ATTEMPTS=1)."
    ),
}


class Command(BaseCommand):
    help = (
        "Plays an agent over HTTP against a running server with its worker: it learns lessons new and old, vague and "
        "secret, is misled by one until that is quarantined, and finds it useful again. Ends with an error if anything "
        "that should have come of it has not. Run seed_demo first: one of its lessons is there twice, and something is "
        "then to be merged. With SONDER_TRUST_POLICY=reference and SONDER_PROBATION_AFTER_HOURS=0 the server lets a "
        "sample of the quarantined lesson through at once, and a win on it brings the lesson back; with other settings "
        "the judge takes back what was said. Requests wait for the server's limits (SONDER_THROTTLE_LOOP). It works in "
        "the account 'demo', and refuses a store with lessons or work that is not the demonstration's."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--url", default="http://127.0.0.1:8000", help="of the server; %(default)s unless given")
        parser.add_argument(
            "--key", help=f"an API key with the scopes {', '.join(SCOPES)}; one for this run unless given"
        )
        parser.add_argument("--interactions", type=int, default=500, help=f"how many, at least {LEAST}")
        parser.add_argument("--run", type=int, help="number of the run: each has lessons of its own")
        parser.add_argument("--wait", type=float, default=60.0, help="seconds for each thing that must come of it")
        parser.add_argument(
            "--model", type=int, metavar="PORT", help="play the server's language model too, on this port of 127.0.0.1"
        )
        parser.add_argument("--among-others", action="store_true", help="also in a store that others work with")
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        if options["interactions"] < LEAST:
            raise CommandError(
                f"{options['interactions']} interactions are too few for the story; use {LEAST} or more."
            )
        try:
            if options["key"] is None and not options["among_others"]:
                refuse_others()
            told = self._play(options)
        except SonderError as refusal:
            raise CommandError(refusal.detail) from None
        except KeyboardInterrupt:
            raise CommandError("Interrupted. What was played stays.", returncode=130) from None
        if options["json"]:
            as_json(self, vars(told) | {"missing": told.missing})
        else:
            self._tell(told)
        if told.missing:
            hints = dict.fromkeys(HINTS.get(name, "Does a worker run?") for name in told.missing)
            missing = ", ".join(told.missing)
            raise CommandError(f"Not seen within {options['wait']:g} s: {missing}. {' '.join(hints)}")

    def _play(self, options: dict[str, Any]) -> Told:
        total, port = options["interactions"], options["model"]
        with key_for_this_run(options["key"]) as (key, run), Client(options["url"], key) as client, progress() as bar:
            script = Script(n=options["run"] or run)
            with nullcontext() if port is None else Model(script, port) as model:
                player = Player(client, script, interactions=total, patience=options["wait"], model=model)
                shown = bar.add_task("interactions", total=total)
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
        self.stdout.write(
            f"{told.interactions} interactions in {told.seconds:.0f} s, {told.waited:.0f} s of them waiting for the "
            f"worker; outcomes: {said}."
        )
        for name, n in told.shown.items():
            self.stdout.write(f"{'ok' if n else 'missing':<7} {n:>5}  {name}")
        self.stdout.write(f"The harmful lesson: {', '.join(told.events) or 'nothing happened to it'}.")
        project = Project.objects.filter(account__slug=DEMO, slug=PROJECT).values_list("pk", flat=True).first()
        if project is not None:
            self.stdout.write(f"'manage.py erase project {project} --apply' takes away what the agent did and learned.")


def refuse_others() -> None:
    """Raises Conflict where lessons are shared and somebody else has some, or works.

    The agent would be handed the others' lessons and judge them, and they would be handed the agent's.
    """
    if conf.current().lesson_scope == "account":
        return
    own = Interaction.objects.filter(account__slug=DEMO)
    lessons = Lesson.objects.exclude(origin=Origin.SEEDED).exclude(source_interaction__in=own.values("pk"))
    if lessons.exists() or Interaction.objects.exclude(account__slug=DEMO).exists():
        raise Conflict(
            "This store has lessons or work of others, which the agent's would mix with. Play in another store "
            "(SONDER_VAR), or use --among-others."
        )


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
