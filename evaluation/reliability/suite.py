"""The rows of the suite: what each shows, the tests that play it, and how often it is played in full."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

SYSTEM: Final = "tests/system"
OUTAGES: Final = f"{SYSTEM}/test_outages.py::test_"

#: How often, in full. An environment variable of the same name says otherwise, and a smaller number meets no bar.
FULL: Final[Mapping[str, int]] = {"KILLS": 200, "STORES_KILLED": 20, "OUTCOMES": 10_000}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the report."""

    key: str  # that its tests tell their figures under
    what: str
    counted: str  # name of the figure that says how many, or `passed`
    unit: str  # of that number
    least: int  # of it, for the bar
    tests: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Run:
    """Tests that are played together, since they share what they start."""

    rows: tuple[Row, ...]
    varying: tuple[str, ...] = ()  # the settings of FULL that its tests take
    rounds: int = 1  # how often each test is played; what depends on chance is repeated


def settings(run: Run) -> dict[str, str]:
    return {name: os.environ.get(name, str(FULL[name])) for name in run.varying}


SUITE: Final = (
    Run(
        rows=(
            Row(
                key="upgrade", what="a filled store of the previous release, migrated forward",
                counted="rows", unit="rows", least=100, tests=(f"{SYSTEM}/test_upgrade.py",),
            ),
            Row(
                key="backup", what="a backup restored after an erasure",
                counted="erased", unit="erasure", least=1, tests=(f"{SYSTEM}/test_backup.py",),
            ),
        ),
    ),
    Run(
        rounds=10,
        rows=(
            Row(
                key="one wins", what="two reviewers with one item, ten appliers with one version: one wins",
                counted="passed", unit="contests", least=50,
                tests=(
                    "tests/services/test_adjudication.py"
                    "::test_of_two_reviewers_with_one_item_exactly_one_decides",
                    "tests/services/test_review_queue.py"
                    "::test_of_several_people_who_reach_for_one_question_exactly_one_has_it",
                    "tests/services/test_calibration.py::test_of_two_who_apply_at_once_one_wins",
                    "tests/http/test_preferences.py::test_of_ten_appliers_with_one_version_exactly_one_wins",
                    "tests/review/test_preferences.py::test_of_ten_restores_with_one_expected_version_exactly_one_wins",
                ),
            ),
        ),
    ),
    Run(
        varying=("STORES_KILLED", "OUTCOMES"),
        rows=(
            Row(
                key="redis", what="kill -9 of Redis while agents work", counted="kills", unit="kills", least=20,
                tests=(f"{OUTAGES}a_redis_that_hangs_dies_or_stays_away_loses_no_report_and_holds_up_nobody",),
            ),
            Row(
                key="postgresql", what="kill -9 of PostgreSQL while agents work",
                counted="kills", unit="kills", least=20,
                tests=(
                    f"{OUTAGES}a_postgresql_that_is_killed_loses_nothing_it_has_acknowledged_and_does_nothing_twice",
                ),
            ),
            Row(
                key="clients", what="32 clients at once, with repetitions and corrections",
                counted="outcomes", unit="outcomes", least=10_000,
                tests=(
                    f"{OUTAGES}many_clients_with_repetitions_and_corrections_end_in_the_same_credit_as_one_after_the_"
                    "other",
                ),
            ),
        ),
    ),
    Run(
        varying=("KILLS",),
        rows=(
            Row(
                key="worker, distilling", what="kill -9 of the worker amid distillation",
                counted="kills", unit="kills", least=200, tests=(f"{SYSTEM}/test_distilling_killed.py",),
            ),
        ),
    ),
    Run(
        varying=("KILLS",),
        rows=(
            Row(
                key="worker, crediting", what="kill -9 of the worker amid credit",
                counted="kills", unit="kills", least=200, tests=(f"{SYSTEM}/test_worker.py",),
            ),
        ),
    ),
)  # fmt: skip
