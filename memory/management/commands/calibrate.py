"""Fitting the active space's thresholds."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from memory.errors import SonderError
from memory.management.output import as_json, progress
from memory.rules.calibration import Expected
from memory.services import calibration
from memory.services.calibration import Proposal, Values
from memory.services.labelled import Evidence, of_files, of_store

SYSTEM = "system"
NAMES = {"tasks": "a task with a lesson that fits it", "off_domain": "a question that none fits, with any"}


class Command(BaseCommand):
    help = (
        "Proposes thresholds of relevance for the active embedding space: from the tasks that lessons were learned "
        "from or won, or from labelled questions in files. Shows the scores, the present thresholds and the proposed "
        "ones with what each finds and lets through. Changes nothing without --apply."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--queries", type=Path, help='JSON lines {"query", "lesson_id"}: which lesson fits a task')
        parser.add_argument("--off-domain", type=Path, help='JSON lines {"query"}: questions that no lesson fits')
        parser.add_argument("--apply", action="store_true", help="set what is proposed; without it nothing is changed")
        parser.add_argument("--reason", default="Applied from the command line.", help="kept in the journal")
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        try:
            proposal = self._propose(_evidence(options["queries"], options["off_domain"]))
            applied = options["apply"] and self._apply(proposal, options["reason"])
        except SonderError as refusal:
            raise CommandError(refusal.detail) from None
        if options["json"]:
            as_json(self, {**proposal.to_json(), "applied": bool(applied)})
        else:
            self._tell(proposal, applied=bool(applied))

    def _propose(self, evidence: Evidence) -> Proposal:
        with progress() as bar:
            shown = bar.add_task("questions", total=None)
            return calibration.propose(evidence, lambda done, total: bar.update(shown, completed=done, total=total))

    def _apply(self, proposal: Proposal, reason: str) -> bool:
        if proposal.proposed is None or proposal.proposed == proposal.present:
            return False
        calibration.apply(
            UUID(proposal.space),
            proposal.proposed,
            expected=proposal.version,
            actor=SYSTEM,
            reason=reason,
            data_digest=proposal.data_digest,
        )
        return True

    def _tell(self, proposal: Proposal, *, applied: bool) -> None:
        known = ", ".join(f"{n} {name}" for name, n in sorted(proposal.basis.items()))
        self.stdout.write(
            f"Questions: {known or 'none'}; {proposal.other_topics} tasks beside lessons of other topics."
        )
        for each in proposal.distributions:
            if each.name in NAMES and each.n:
                self.stdout.write(f"Similarity of {NAMES[each.name]} (n = {each.n}):")
                for edge, share in zip(each.edges, each.shares, strict=True):
                    self.stdout.write(f"  {edge:>6.2f} {'#' * round(60 * share)}")
        self._tell_gate("in force", proposal.present, proposal.present_does)
        if proposal.proposed is None:
            tasks, strangers = proposal.missing
            more = f" {tasks} tasks and {strangers} off-domain questions are missing." if tasks or strangers else ""
            self.stdout.write(f"Nothing is proposed. {proposal.why_not}{more}")
            return
        self._tell_gate("proposed", proposal.proposed, proposal.proposed_does)
        same = proposal.proposed == proposal.present
        last = "Nothing to change." if same else "Nothing was changed: use --apply."
        self.stdout.write("The proposed thresholds are in force." if applied else last)

    def _tell_gate(self, name: str, values: Values, does: Expected | None) -> None:
        gate = values["gate"]
        alone, corroborated = values["uncorroborated_min_similarity"], values["min_similarity"]
        told = f"{name}: similarity {alone:.3f} alone, {corroborated:.3f} with two shared words"
        if gate:
            told += f", {gate['min_similarity']:.3f} from a support of {gate['min_support']:.3f}"
        self.stdout.write(told)
        if does:
            recall, low, high = does.recall
            noise, least, most = does.noise
            self.stdout.write(
                f"  finds {recall:.1%} of {does.tasks} [{low:.1%}, {high:.1%}], "
                f"lets through {noise:.1%} of {does.off_domain} [{least:.1%}, {most:.1%}]"
            )


def _evidence(queries: Path | None, off_domain: Path | None) -> Evidence:
    return of_store() if queries is None and off_domain is None else of_files(queries, off_domain)
