"""Merging near duplicates."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from memory.errors import SonderError
from memory.management.output import as_json, progress
from memory.management.scope import lesson_scope
from memory.models import PrunePlan
from memory.services import applying, pruning
from memory.services.applying import Outcome
from memory.services.planned import clusters_of, see

SHOWN = 20  # clusters told in full; --json tells all


class Command(BaseCommand):
    help = (
        "Finds lessons that say the same and tells what would be merged. With --apply it merges: of each cluster the "
        "best proven one is kept and gets the others' evidence; their values stay known as rejected. A maintainer can "
        "undo that for 30 days. Can be interrupted and run again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--account", help="slug; needed where lessons belong to accounts")
        parser.add_argument("--apply", action="store_true", help="merge; without it nothing is changed")
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        account_id = lesson_scope(options["account"])
        try:
            plan = self._plan(account_id)
            outcomes = self._apply(plan, account_id) if options["apply"] else []
        except SonderError as refusal:
            raise CommandError(refusal.detail) from None
        if options["json"]:
            told = {"digest": plan.digest, "clusters": plan.clusters, "applied": bool(options["apply"])}
            as_json(self, {**told, "outcomes": [outcome.to_json() for outcome in outcomes]})
        elif options["apply"]:
            self._tell_outcomes(outcomes)
        else:
            self._tell_plan(plan)

    def _plan(self, account_id: UUID | None) -> PrunePlan:
        with progress() as bar:
            shown = bar.add_task("lessons", total=None)
            for step in pruning.making(pruning.scope(account_id), complete=True):
                bar.update(shown, completed=step.done, total=step.total)
        assert step.plan is not None, "the last step has the plan"
        return step.plan

    def _apply(self, plan: PrunePlan, account_id: UUID | None) -> list[Outcome]:
        outcomes = []
        with progress() as bar:
            shown = bar.add_task("clusters", total=len(plan.clusters))
            for outcome in applying.applying(account_id, plan.digest):
                outcomes.append(outcome)
                bar.update(shown, completed=len(outcomes))
        return outcomes

    def _tell_plan(self, plan: PrunePlan) -> None:
        clusters = clusters_of(plan)
        going = sum(len(cluster.members) for cluster in clusters)
        self.stdout.write(f"{going} lessons would be merged into {len(clusters)}. Nothing was changed: use --apply.")
        texts = see(lesson for c in clusters[:SHOWN] for lesson in (c.keeper, *(m.lesson for m in c.members)))
        for cluster in clusters[:SHOWN]:
            self.stdout.write(f"keep  {cluster.keeper}  {texts[cluster.keeper].text}")
            for member in cluster.members:
                self.stdout.write(f"  {member.cosine:.4f}  {member.lesson}  {texts[member.lesson].text}")
        if len(clusters) > SHOWN:
            self.stdout.write(f"  and {len(clusters) - SHOWN} more; --json lists all.")

    def _tell_outcomes(self, outcomes: list[Outcome]) -> None:
        merged = sum(len(outcome.pruned) for outcome in outcomes)
        kept = sum(bool(outcome.pruned) for outcome in outcomes)
        self.stdout.write(f"{merged} lessons were merged into {kept}.")
        for outcome in outcomes:
            for lesson, reason in outcome.skipped.items():
                self.stdout.write(f"  skipped the cluster of {outcome.keeper}: {lesson} is {reason}")
