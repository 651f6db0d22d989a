"""The simulated worlds, what is measured in them, and the command that reports it."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from evaluation.catalogue import COMMITTED, read
from evaluation.report import from_json
from evaluation.trust import run as command
from evaluation.trust.bars import holds
from evaluation.trust.loop import hand_out, run
from evaluation.trust.measures import measure, served
from evaluation.trust.policies import DEFAULTS, NONE, ORACLE, POLICIES, TRIAL, TRIES, WHOLE
from evaluation.trust.policy import Move
from evaluation.trust.simple import Everybody
from evaluation.trust.statistics import Estimate, mean, median_time, ratio
from evaluation.trust.study import Job, by_world, play, play_all
from evaluation.trust.world import HARMFUL, NEUTRAL, build
from evaluation.trust.worlds import WORLDS
from memory.rules.outlook import WRONG

ALL = tuple(POLICIES)
TRIED = [name for name in ALL if name not in TRIES]
SMALL = WORLDS["small"]


def job(seed=0, world="small", policies=ALL) -> Job:
    return Job(world=world, seed=seed, policies=policies, constants=DEFAULTS)


@pytest.fixture(scope="module")
def small():
    return [play(job(seed)) for seed in range(2)]


class TestStatistics:
    def test_a_mean_has_students_interval(self) -> None:
        found = mean([1.0, 2.0, 3.0, math.nan])  # standard error 1/sqrt(3), quantile 4.303 at 2 degrees of freedom
        assert (found.value, found.low, found.high) == pytest.approx((2.0, 2 - 4.303 / 3**0.5, 2 + 4.303 / 3**0.5))

    def test_an_interval_keeps_to_the_possible_and_a_single_seed_has_none(self) -> None:
        assert mean([0.0, 10.0], lowest=0, highest=100).low == 0
        assert mean([5.0]) == Estimate(value=5.0)
        assert mean([math.nan]) == Estimate(value=None)

    def test_a_ratio_is_of_the_sums_and_lies_within_those_of_the_seeds(self) -> None:
        found = ratio([1, 3], [2, 4])
        assert found.value == pytest.approx(4 / 6)
        assert (found.low, found.high) == pytest.approx((0.5, 0.75))
        assert ratio([1], [2]) == Estimate(value=0.5)
        assert ratio([0, 0], [0, 0]) == Estimate(value=None)

    def test_who_has_not_got_there_counts_in_a_median(self) -> None:
        assert median_time([1, 2, 3, 4], [True, True, False, False]) == 2
        assert median_time([1, 2, 3], [True, False, False]) is None
        assert median_time([], []) is None

    @pytest.mark.parametrize(
        ("low", "high", "least", "most", "met"),
        [(30, 41, 40, None, True), (30, 39, 40, None, False), (0.04, 0.2, None, 0.05, True), (1, 2, None, 0.7, False)],
    )
    def test_a_bar_is_missed_only_by_all_of_the_interval(self, low, high, least, most, met) -> None:
        assert holds(Estimate(value=(low + high) / 2, low=low, high=high), least=least, most=most) is met


class Doors(Everybody):
    def __init__(self, doors) -> None:
        self.doors = doors

    def door(self, lesson, at) -> str:
        return self.doors.get(lesson, "served")


class TestHandingOut:
    def out(self, doors, candidates=8, fits=None):
        return hand_out(list(range(candidates)), fits or [True] * candidates, [0] * candidates, Doors(doors), 0)

    def test_five_are_handed_out_and_who_does_not_fit_is_passed_over(self) -> None:
        assert self.out({}, fits=[True, False, *[True] * 6]).cohort == [0, 2, 3, 4, 5]

    def test_a_lesson_that_the_coin_leaves_out_takes_no_place(self) -> None:
        out = self.out({0: "withheld_trial", 7: "withheld_trial"})
        assert (out.cohort, out.withheld, out.reasons) == ([1, 2, 3, 4, 5], [0], ["withheld_trial"])

    def test_quarantined_lessons_are_controls_where_they_would_have_had_a_place(self) -> None:
        out = self.out({0: "withheld_quarantine", 5: "withheld_quarantine"})
        assert (out.cohort, out.withheld) == ([1, 2, 3, 4, 6], [0])

    def test_a_probation_sample_is_handed_out_and_an_oracle_leaves_no_trace(self) -> None:
        out = self.out({0: "probation", 1: "hidden"})
        assert (out.cohort, out.exposures[0], out.withheld) == ([0, 2, 3, 4, 5], "probation", [])


class TestWorlds:
    def test_the_same_seed_gives_the_same_run_and_another_seed_another(self, small) -> None:
        assert repr(play(job(0))) == repr(small[0])
        assert repr(small[0]) != repr(small[1])

    def test_every_policy_meets_the_same_world(self) -> None:
        world = build(SMALL, 0)
        traces = [run(world, POLICIES[name][1](world, DEFAULTS)) for name in (NONE, "five-losses")]
        first = min(move.at for move in traces[1].moves)
        assert np.array_equal(traces[0].cohort[: first + 1], traces[1].cohort[: first + 1])
        assert np.array_equal(traces[0].lost[: first + 1], traces[1].lost[: first + 1])

    def test_lessons_do_as_the_scenario_says(self) -> None:
        world = build(replace(SMALL, harmful=0.1), 3)
        kind, effect = world.lessons.kind, world.lessons.effect
        assert (kind == HARMFUL).sum() == 50
        assert effect[kind == HARMFUL].max() < -0.5
        assert abs(effect[kind == NEUTRAL]).max() < 0.5

    def test_losses_are_as_common_as_the_scenario_says(self, small) -> None:
        assert 1 - small[0][ORACLE].success == pytest.approx(SMALL.loss_rate, abs=0.06)

    def test_no_policy_beats_the_oracle(self, small) -> None:
        success = {name: sum(runs[name].success for runs in small) for name in ALL}
        assert max(success, key=success.__getitem__) == ORACLE
        assert success[ORACLE] >= success[WHOLE] > success[NONE]
        assert [runs[ORACLE].prevented for runs in small] == [1.0, 1.0]

    def test_where_nothing_harms_the_oracle_has_nothing_to_do_and_hardly_a_lesson_is_accused(self) -> None:
        world = build(replace(WORLDS["null"], lessons=200, interactions=3000), 0)
        traces = {name: run(world, POLICIES[name][1](world, DEFAULTS)) for name in (NONE, ORACLE, TRIAL)}
        assert np.array_equal(traces[NONE].lost, traces[ORACLE].lost)
        policy = POLICIES[TRIAL][1](world, DEFAULTS)
        found = measure(world, traces[TRIAL], policy, served(world, traces[NONE]))
        assert found.right == 0
        assert found.evaluations > 4000
        assert found.wrong <= 1
        assert found.false_ever <= 0.02
        assert found.withheld_coin + found.withheld_quarantine <= 0.03


class Scripted(Everybody):
    """Moves two lessons at fixed verdicts."""

    def __init__(self, moves) -> None:
        self.moves, self.out = moves, set()

    def door(self, lesson, at) -> str:
        return "withheld_quarantine" if lesson in self.out else "served"

    def credit(self, verdict):
        now = [move for move in self.moves if move.at == verdict.at]
        for move in now:
            (self.out.add if move.entered else self.out.discard)(move.lesson)
        return now

    def counts(self, source) -> bool:
        return True


def test_a_right_and_a_wrong_quarantine_are_told_apart_and_timed() -> None:
    world = build(replace(SMALL, scored=1.0), 0)
    none = served(world, run(world, Everybody()))
    often = np.argsort(-none.servings)
    bad = next(int(i) for i in often if world.lessons.kind[i] == HARMFUL and world.lessons.born[i] == 0)
    good = next(int(i) for i in often if world.lessons.kind[i] == NEUTRAL)
    moves = [
        Move(lesson=bad, at=1000, entered=True),
        Move(lesson=good, at=1200, entered=True),
        Move(lesson=good, at=1500, entered=False),
    ]
    policy = Scripted(moves)
    trace = run(world, policy)
    found = measure(world, trace, policy, none)
    assert (found.right, found.wrong) == (1, 1)
    days = SMALL.days / SMALL.interactions
    stays = {stay.right: (stay.days, stay.ended) for stay in found.stays}
    assert stays == {False: (pytest.approx(300 * days), True), True: (pytest.approx(1000 * days), False)}
    assert found.false_ever == pytest.approx(1 / ((world.lessons.kind < HARMFUL) & (none.servings >= 5)).sum())
    before = int((trace.cohort[:1001] == bad).sum())
    assert not (trace.cohort[1001:] == bad).any()
    assert (float(before), True) in found.delays
    harm = none.harmful[np.isin(world.lessons.kind, (HARMFUL, 3))].sum()
    assert 0 < found.prevented <= (none.harmful[bad] - before + 5) / harm
    assert [lesson for _, lesson, _ in trace.held].count(good) > 0


def test_several_processes_find_what_one_finds(small) -> None:
    together = by_world(play_all([job(0), job(1)], 2))
    assert repr(together) == repr(by_world((job(i), runs) for i, runs in enumerate(small)))  # NaN is NaN in words only


class TestCommand:
    def test_it_reports_what_was_asked_in_figures_tables_and_plots(self, tmp_path, settings, capsys, small) -> None:
        settings.SONDER_VAR = str(tmp_path)
        call_command("evaluate", "trust", "--worlds", "small", "--seeds", "2", "--jobs", "1", "--json")
        report = from_json(json.loads(capsys.readouterr().out))
        assert report == read("trust", tmp_path / "reports")
        assert report.command == "python manage.py evaluate trust --worlds small --seeds 2"
        detection, outcome = report.tables
        assert [row[0] for row in detection.rows] == [POLICIES[name][0] for name in TRIED]
        gained = [100 * (runs[TRIAL].success - runs[NONE].success) for runs in small]
        shown = {row[0]: row for row in outcome.rows}["trial (the default)"][2]
        assert shown.split()[0] == f"{sum(gained) / 2:.3g}"
        assert report.parameters["quarantine_odds".replace("_", " ")] == 200
        assert (tmp_path / "reports" / "trust.md").read_text().startswith("# Trust")

    def test_bars_come_with_the_worlds_that_they_are_asked_of(self, tmp_path, settings, capsys, monkeypatch) -> None:
        settings.SONDER_VAR = str(tmp_path)
        monkeypatch.setitem(WORLDS_CHANGED, "base", replace(SMALL, name="base"))
        monkeypatch.setattr("evaluation.trust.study.WORLDS", WORLDS_CHANGED)
        call_command("evaluate", "trust", "--quick", "--policies", "reference,trial", "--jobs", "1", "--json")
        report = from_json(json.loads(capsys.readouterr().out))
        keys = {figure.key for figure in report.figures}
        assert {"base.gain", "base.precision", "base.false_rate", "base.withheld", "base.reference.gain"} <= keys
        assert not any(key.startswith(("large", "null")) for key in keys)
        assert {plot.y_label for plot in report.plots} == {"success, %", "ever quarantined, %"}
        assert all(len(plot.series) <= 4 for plot in report.plots)

    @pytest.mark.parametrize(
        ("option", "value"), [("--worlds", "mars"), ("--policies", "trial,luck"), ("--seeds", "0"), ("--jobs", "-1")]
    )
    def test_what_it_does_not_know_is_refused(self, option, value) -> None:
        with pytest.raises(CommandError, match=value.split(",")[-1]):
            call_command("evaluate", "trust", option, value)

    def test_its_help_names_every_world_and_policy_there_is(self) -> None:
        assert set(command.WORLDS) == set(WORLDS)
        assert set(command.POLICIES) == set(POLICIES)


WORLDS_CHANGED = dict(WORLDS)


def shares(words: str) -> float:
    """`1 in 6` as a number."""
    some, _, of = words.partition(" in ")
    return int(some) / int(of)


def test_how_often_a_quarantine_is_said_to_be_wrong_is_what_the_committed_report_found() -> None:
    report = read("trust", COMMITTED)
    assert report is not None
    right = {figure.key: figure.value for figure in report.figures}
    for policy, part in (("trial", ""), ("reference", ".reference")):
        wrong = 1 - (right[f"base{part}.precision"] + right[f"large{part}.precision"]) / 200
        assert shares(WRONG[policy]) == pytest.approx(wrong, abs=0.04), policy
        assert f"{WRONG[policy]} of `{policy}`" in Path("docs/evidence.md").read_text()
