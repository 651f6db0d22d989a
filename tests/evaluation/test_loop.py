"""The world of the loop, the agent in it, and the figures; `tests/system/test_loop.py` plays it with a real worker."""

import math
from dataclasses import fields
from typing import Any

import pytest

from evaluation.loop import world as worlds
from evaluation.loop.agent import ACCOUNT, Agent, Played, prepare, stock
from evaluation.loop.arms import ARMS, LOOP, NEITHER, NEVER, RETRIEVAL
from evaluation.loop.findings import curves, figures, tables, windows
from evaluation.loop.run import evaluate
from evaluation.loop.world import World
from memory import conf
from memory.distillers.extractive import candidates
from memory.errors import Invalid
from memory.models import Account, Credit, Interaction, Lesson, LessonUsage, Outcome, TrustEvent
from memory.services import credit, distilling, space
from memory.services.caller import Caller
from memory.services.gates import quality_gates, text_gates
from tests.evaluation.test_replay import lose
from tests.services.play import make_callers, make_lessons

COUNT = 60


def settle() -> None:
    """Everything that a worker would do, in this process."""
    credit.sweep()
    distilling.sweep()
    space.embed_pending()


def play(world: World, *, retrieves: bool) -> Played:
    agent = Agent(world, retrieves=retrieves, settle=settle)
    return agent.play(list(world.jobs(COUNT)), lambda done: None)


def arm_settings(settings: Any, arm: str) -> None:
    """The settings of an arm's processes, as they would read them."""
    values = conf.from_environment({"SONDER_TRUST_POLICY": "trial", **ARMS[arm].environment}, worlds.PHRASES.parent)
    for name in {"SONDER_TRUST_POLICY", *ARMS[arm].environment}:
        setattr(settings, name, values[name])


class TestWorld:
    def test_the_product_takes_each_text_as_a_lesson_and_learns_nearly_all_of_them(self) -> None:
        texts = [text for _, text in worlds.texts()]
        assert len(texts) == len(set(texts)) == 320
        refused = [text for text in texts if text_gates(text).refusal or quality_gates(text, "").flags]
        assert refused == []
        said = [[c.text for c in candidates(f"It works now.\n\nLesson: {text}\n")] for text in texts]
        assert sum(found == [text] for text, found in zip(texts, said, strict=True)) > 0.98 * len(texts)

    def test_a_seed_always_makes_the_same_world_and_another_seed_another(self) -> None:
        assert World(3, 0.12).lessons == World(3, 0.12).lessons != World(4, 0.12).lessons
        assert list(World(3, 0.12).jobs(50)) == list(World(3, 0.12).jobs(80))[:50] != list(World(4, 0.12).jobs(50))

    def test_shares_are_what_they_are_said_to_be(self) -> None:
        lessons = [advice for seed in range(20) for advice in World(seed, 0.12).lessons]
        share = {effect: sum(a.effect == effect for a in lessons) / len(lessons) for effect in (-2.0, 0.0, 0.6)}
        assert share == pytest.approx({-2.0: 0.12, 0.0: 0.48, 0.6: 0.40}, abs=0.03)
        jobs = list(World(1, 0.12).jobs(4000))
        assert sum(job.judge == "caller" for job in jobs) / 4000 == pytest.approx(worlds.CALLER_SHARE, abs=0.04)
        assert sum(job.errs for job in jobs) / 4000 == pytest.approx(worlds.ERRS, abs=0.02)

    def test_work_succeeds_as_often_as_its_log_odds_say_and_never_less_for_a_better_lesson(self) -> None:
        jobs = list(World(2, 0.12).jobs(4000))
        expected = sum(1 / (1 + math.exp(-job.ease)) for job in jobs)
        assert sum(job.succeeds(0) for job in jobs) == pytest.approx(expected, abs=120)
        assert [job for job in jobs if job.succeeds(-2) and not job.succeeds(0.6)] == []


@pytest.mark.django_db
class TestAgent:
    @pytest.fixture(autouse=True)
    def prepared(self, space: object) -> None:
        prepare()

    def test_it_is_handed_lessons_and_each_outcome_is_credited_and_some_work_is_learned_from(self, settings) -> None:
        arm_settings(settings, LOOP)
        world = World(1, 0.12)
        stock(world)
        stored = Lesson.objects.count()
        assert stored == sum(advice.written for advice in world.lessons)
        played = play(world, retrieves=True)
        assert (
            len(played.won) == Interaction.objects.count() == Outcome.objects.count() == Credit.objects.count() == COUNT
        )
        assert sum(played.handed_out) == LessonUsage.objects.filter(exposure="served").count() > COUNT
        assert LessonUsage.objects.filter(credited_outcome__isnull=True).count() == 0
        assert played.learned == Lesson.objects.filter(origin="distilled").count() > 0
        assert played.lessons == stored + played.learned
        assert played.served_good + sum(played.harmful) == sum(played.handed_out)

    def test_without_lessons_it_succeeds_as_the_tasks_alone_have_it(self, settings) -> None:
        arm_settings(settings, NEITHER)
        world = World(1, 0.12)
        played = play(world, retrieves=False)
        assert played.won == [int(job.succeeds(0)) for job in world.jobs(COUNT)]
        assert LessonUsage.objects.count() == 0

    def test_what_lessons_do_decides_and_nothing_else(self, settings) -> None:
        arm_settings(settings, RETRIEVAL)
        world = World(1, 0.5)
        stock(world)
        effects = {lesson.pk: world.effects[lesson.text] for lesson in Lesson.objects.all()}
        agent = Agent(world, retrieves=True, settle=lambda: None)
        jobs = list(world.jobs(30))
        agent.play(jobs, lambda done: None)
        for job, work, won in zip(jobs, Interaction.objects.order_by("created_at"), agent.played.won, strict=True):
            handed_out = LessonUsage.objects.filter(interaction=work, exposure="served").values_list(
                "lesson", flat=True
            )
            assert won == job.succeeds(sum(effects[lesson] for lesson in handed_out))
            said = Outcome.objects.get(interaction=work)
            assert (said.reward > 0) == (won != job.errs)
            assert said.source == job.judge

    @pytest.mark.parametrize(("arm", "state"), [(LOOP, "quarantined"), (RETRIEVAL, "active")])
    def test_without_trust_no_record_is_bad_enough(self, settings, arm, state) -> None:
        arm_settings(settings, arm)
        account = Account.objects.get(slug=ACCOUNT)
        caller: Caller = make_callers(account)["caller"]
        (lesson,) = make_lessons(1)
        lose(account, caller, lesson, 7)
        lesson.refresh_from_db()
        assert lesson.state == state
        assert TrustEvent.objects.exists() == (arm == LOOP)


def test_no_record_of_a_full_window_reaches_the_thresholds_of_the_arm_without_trust() -> None:
    window, ratio = int(NEVER["SONDER_LEDGER_WINDOW"]), float(NEVER["SONDER_ODDS_RATIO"])
    assert ratio**window < 1e-60 * float(NEVER["SONDER_TRIAL_ODDS"])


class TestFindings:
    RUNS = (
        {LOOP: Played(won=[1] * 30), RETRIEVAL: Played(won=[1] * 20 + [0] * 10), NEITHER: Played(won=[0, 1] * 15)},
        {LOOP: Played(won=[1] * 30), RETRIEVAL: Played(won=[1] * 24 + [0] * 6), NEITHER: Played(won=[0, 1] * 15)},
    )

    @pytest.fixture
    def runs(self) -> list[dict[str, Played]]:
        for run in self.RUNS:
            for played in run.values():
                played.harmful = [0] * 30
        return list(self.RUNS)

    def test_a_gain_is_a_paired_difference_with_students_interval(self, runs) -> None:
        found = {figure.key: figure for figure in figures(runs)}
        last = found["gain.last_third"]  # 100 and 60 points: mean 80, standard error 20, t of one degree 12.706
        assert (last.value, last.low, last.high) == pytest.approx((80, 80 - 12.706 * 20, 80 + 12.706 * 20))
        assert last.met is False
        overall = found["gain.overall"]
        assert overall.value == pytest.approx((100 / 3 + 20) / 2)
        none = found["gain.over_none"]  # 50 points with both seeds: no spread
        assert (none.value, none.low, none.met) == (50, 50, True)
        assert (found["precision"].value, found["loop.success"].value) == (None, 100)

    def test_with_one_seed_there_is_no_interval_and_no_verdict(self, runs) -> None:
        found = figures(runs[:1])
        assert {(figure.low, figure.met) for figure in found} == {(None, None)}

    def test_windows_cover_everything_once(self) -> None:
        for n in (3, 10, 37, 1200):
            parts = windows(list(range(n)))
            assert [value for part in parts for value in part] == list(range(n))
            assert len(parts) == min(10, n)

    def test_curves_and_tables_show_each_window(self, runs) -> None:
        success, harm = curves(runs)
        assert [series.label for series in success.series] == [arm.label for arm in ARMS.values()]
        assert success.series[0].x == tuple(range(3, 31, 3))
        assert success.series[1].y[-1] == 0
        assert len(harm.series) == 2
        by_window, stores = tables(runs, range(1, 3))
        assert len(by_window.rows) == 10
        assert all(len(row) == len(by_window.columns) for row in by_window.rows)
        assert [row[0] for row in stores.rows] == ["1", "2"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"seeds": -1}, "--seeds: use a number from 1 to 100"),
        ({"interactions": 20}, "--interactions: use a number from 30"),
        ({"harmful": 0.7}, "--harmful: use a share from 0 to 0.5"),
    ],
)
def test_sizes_that_cannot_be_played_are_refused_before_anything_is_made(options, told) -> None:
    with pytest.raises(Invalid) as refused:
        evaluate(options, lambda done, total, what: None)
    assert told in refused.value.detail


def test_everything_that_an_arm_tells_can_be_told_as_json() -> None:
    assert set(Played().to_json()) == {field.name for field in fields(Played)}
