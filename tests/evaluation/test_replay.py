"""Other constants over a log whose course is known by heart."""

import hashlib
import io
import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from evaluation.replay import constants
from evaluation.replay.constants import choose
from evaluation.replay.judges import Standing, TrialJudge
from evaluation.replay.replay import replay
from evaluation.replay.result import ReplayResult, Scope
from evaluation.replay.spans import Spans
from evaluation.report import from_json, markdown
from memory.errors import Invalid
from memory.models import Account, Lesson, LessonStanding, LessonUsage
from memory.models.vocabulary import Exposure, Verdict
from memory.rules.ledger import LedgerConstants, Release
from memory.rules.probation import interaction_fraction, withheld_share
from memory.services.adjudication import decide
from memory.services.caller import Caller
from memory.services.credit import credit
from memory.services.quarantine import lift_by_clock
from tests.services.people import decision, member
from tests.services.play import make_callers, make_lessons, say, serve

EAGER = {"quarantine_odds": "20", "release_odds": "15"}


def again(policy=None, given=None, **scope) -> ReplayResult:
    return replay(policy, given or {}, Scope(**scope), lambda done, total, what: None)


def lose(account: Account, caller: Caller, lesson: Lesson, n: int, *, signal="failed") -> None:
    """Work on so many tasks with a lesson, which is held back as its state has it."""
    for _ in range(n):
        task = f"task number {LessonUsage.objects.count()}"
        kept_out = Lesson.objects.get(pk=lesson.pk).state == "quarantined"
        work = serve(account, task, [] if kept_out else [lesson], [lesson] if kept_out else [])
        say(caller, work.pk, signal)
        credit(work.pk)


def steps(result: ReplayResult, lesson: Lesson) -> tuple[list, ...]:
    """What was decided and what is replayed: the way, and after which credit."""
    course = result.courses[lesson.pk]
    return tuple([(d.kind, d.credit_seq) for d in part] for part in (course.decided, course.replayed))


@pytest.mark.django_db
class TestReplay:
    @pytest.fixture(autouse=True)
    def trial_policy(self, settings: Any) -> None:
        settings.SONDER_TRUST_POLICY = "trial"

    @pytest.fixture
    def caller(self, account: Account) -> Caller:
        return make_callers(account)["caller"]

    def test_lower_odds_quarantine_earlier_and_say_which_servings_that_would_have_held_back(
        self, account, caller
    ) -> None:
        bad, good = make_lessons(2)
        lose(account, caller, bad, 7)
        lose(account, caller, good, 5, signal="used")
        found = again(given=EAGER)
        assert steps(found, bad) == ([("entered", 7)], [("entered", 4)])
        assert list(found.courses) == [bad.pk]
        withheld = found.courses[bad.pk].withheld
        assert (withheld.n, withheld.lost, withheld.won) == (3, 3, 0)
        assert not found.is_own

    def test_higher_odds_spare_a_lesson_and_say_where_it_would_have_been_handed_out(self, account, caller) -> None:
        (lesson,) = make_lessons(1)
        lose(account, caller, lesson, 7)
        lose(account, caller, lesson, 3, signal="used")
        found = again(given={"quarantine_odds": 1e9, "trial_odds": 1e8})
        assert steps(found, lesson) == ([("entered", 7)], [])
        served = found.courses[lesson.pk].served
        assert (served.n, served.won) == (3, 3)

    def test_the_coin_of_a_trial_holds_back_the_servings_that_it_would_have(self, account, caller) -> None:
        (lesson,) = make_lessons(1)
        lose(account, caller, lesson, 4)  # on trial from here on; these servings happen whatever the coin says
        works = [serve(account, f"unjudged {n}", [lesson]).pk for n in range(40)]
        fractions = [
            int.from_bytes(hashlib.sha256(lesson.pk.bytes + work.bytes).digest()[:8], "big") / 2**64 for work in works
        ]
        share = withheld_share(LessonStanding.objects.get(pk=lesson.pk).s)
        assert 0.3 < share < 0.9
        withheld = again().courses[lesson.pk].withheld
        assert withheld.unjudged == withheld.n == sum(fraction < share for fraction in fractions)

    def test_the_other_policy_judges_the_same_log(self, account, caller) -> None:
        """Six losses alone in their cohorts quarantine by the reference's rule: 0.1370 ** 6 is far below 0.01."""
        (lesson,) = make_lessons(1)
        lose(account, caller, lesson, 7)
        assert steps(again("reference"), lesson) == ([("entered", 7)], [("entered", 5)])
        assert steps(again("reference", {"losses": 7}), lesson)[1] == [("entered", 7)]

    def test_a_sample_of_probation_is_one_in_the_replay_too_and_no_serving_to_hold_back(self, account, caller) -> None:
        (lesson,) = make_lessons(1)
        lose(account, caller, lesson, 7)
        before = again().courses[lesson.pk]  # coins may have held back what was handed out here all the same
        work = serve(account, "a sample", [lesson], exposure=Exposure.PROBATION.value)
        say(caller, work.pk, "failed")
        credit(work.pk)
        assert again().courses[lesson.pk] == before

    def test_what_the_clock_lifts_is_lifted_in_the_replay_too(self, account, caller) -> None:
        (lesson,) = make_lessons(1)
        lose(account, caller, lesson, 7)
        assert lift_by_clock(timezone.now() + timedelta(hours=2), 1) == 1
        lose(account, caller, lesson, 1)
        found = again()
        assert steps(found, lesson) == ([("entered", 7), ("entered", 8)], [("entered", 7), ("entered", 8)])
        assert found.given == 1

    def test_a_release_to_trial_is_a_release_to_a_policy_that_knows_no_trial(self, account, caller) -> None:
        (lesson,) = make_lessons(1)
        lose(account, caller, lesson, 7)
        person = member(account, "reviewer", "Rita")
        decide(decision(person, Verdict.RELEASE_TO_TRIAL, lesson.pk))
        entered = []
        for n in range(5):  # handed out although the store's own policy quarantines it again
            work = serve(account, f"after the release {n}", [lesson])
            say(caller, work.pk, "failed")
            credit(work.pk)
            entered.append([seq for _, seq in steps(again("reference"), lesson)[1]])
        assert entered == [[5], [5], [5], [5], [5, 12]]  # five losses since the release

    def test_from_a_date_on_only_what_comes_later_is_decided_anew(self, account, caller) -> None:
        first, second, good = make_lessons(3)
        lose(account, caller, good, 40, signal="used")
        lose(account, caller, first, 7)
        since = timezone.now()
        lose(account, caller, second, 7)
        found = again(given=EAGER, since=since)
        assert list(found.courses) == [second.pk]
        assert [kind for kind, _ in steps(found, second)[1]] == ["entered"]
        assert found.replayed[0].credit_seq < found.decided[0].credit_seq

    def test_what_is_credited_after_the_replay_began_is_not_in_it(self, account, caller) -> None:
        (lesson,) = make_lessons(1)
        lose(account, caller, lesson, 7)
        LessonUsage.objects.filter(exposure=Exposure.SERVED).update(created_at=timezone.now() + timedelta(days=1))
        assert again(given=EAGER).courses[lesson.pk].withheld.n == 0

    def test_each_account_has_its_own_log_where_lessons_are_not_shared(
        self, account, rival_account, caller, settings
    ) -> None:
        settings.SONDER_LESSON_SCOPE = "account"
        lessons = make_lessons(2)
        for lesson, owner in zip(lessons, (account, rival_account), strict=True):
            Lesson.objects.filter(pk=lesson.pk).update(account=owner)
            lose(owner, make_callers(owner)["caller"] if owner == rival_account else caller, lesson, 7)
        found = again(given=EAGER, account_id=rival_account.pk)
        assert list(found.courses) == [lessons[1].pk]
        assert (found.credits, found.lessons) == (7, 1)

    def test_the_command_writes_a_report_that_names_lessons_and_quotes_none(
        self, account, caller, settings, tmp_path
    ) -> None:
        settings.SONDER_VAR = str(tmp_path)
        (lesson,) = make_lessons(1)
        lose(account, caller, lesson, 7)
        out = io.StringIO()
        call_command(
            "evaluate", "replay", "--set", "quarantine_odds=20", "--set", "release_odds=15", "--json", stdout=out
        )
        report = from_json(json.loads(out.getvalue()))
        figures = {figure.key: figure.value for figure in report.figures}
        assert (figures["decided"], figures["replayed"], figures["same"], figures["withheld_lost"]) == (1, 1, 0, 3)
        assert (figures["both"], figures["earlier"], figures["later"]) == (1, 1, 0)
        assert report.tables[0].rows[0][0] == str(lesson.pk)
        assert "(#4)" in str(report.tables[0].rows[0][2])
        assert report.command.endswith("evaluate replay --set quarantine_odds=20 --set release_odds=15")
        page = (tmp_path / "reports" / "replay.md").read_text()
        assert page == markdown(from_json(json.loads((tmp_path / "reports" / "replay.json").read_text())))
        assert lesson.text not in page

    def test_with_what_is_in_force_the_report_says_whether_all_came_again(
        self, account, caller, settings, tmp_path
    ) -> None:
        settings.SONDER_VAR = str(tmp_path)
        (lesson,) = make_lessons(1)
        lose(account, caller, lesson, 7)
        out = io.StringIO()
        call_command("evaluate", "replay", "--set", "quarantine_odds=200", "--json", stdout=out)
        report = from_json(json.loads(out.getvalue()))
        assert (report.figures[0].value, report.figures[0].met) == (1, True)
        assert "reproduces all 1 decision" in report.answer

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (["--account", "acme"], "SONDER_LESSON_SCOPE"),
            (["--since", "yesterday"], "2026-05-31"),
            (["--set", "quarantine_odds"], "name=value"),
            (["--policy", "oracle"], "trial, reference"),
        ],
    )
    def test_an_option_that_cannot_be_used_is_refused_with_what_to_do(self, account, words, told) -> None:
        with pytest.raises(CommandError, match=told):
            call_command("evaluate", "replay", *words)

    def test_an_account_that_is_not_there_is_refused(self, account, settings) -> None:
        settings.SONDER_LESSON_SCOPE = "account"
        with pytest.raises(CommandError, match="no account 'nobody'"):
            call_command("evaluate", "replay", "--account", "nobody")


class TestWithheld:
    def test_the_share_follows_the_last_look_and_after_a_release_what_came_since(self) -> None:
        judge = TrialJudge(LedgerConstants())
        assert judge.withheld(Standing(s=math.log(50), on_trial=True)) == pytest.approx(25 / 29)
        released = Release(credit_seq=1, s=math.log(50))
        assert judge.withheld(Standing(s=math.log(50), released=released)) == pytest.approx(0.2)
        assert judge.withheld(Standing(s=math.log(100), released=released)) == pytest.approx(0.5)
        assert judge.withheld(Standing(on_trial=True)) == pytest.approx(0.2), "on trial by the journal alone"


class TestSpans:
    NOON = datetime(2026, 5, 31, 12, tzinfo=UTC)
    LESSON, WORK = UUID(int=1), UUID(int=2)

    def test_a_lesson_is_in_service_until_something_is_noted_and_a_change_counts_from_the_next_moment_on(self) -> None:
        spans = Spans()
        spans.note(self.LESSON, self.NOON, "active")
        assert spans.lessons() == []
        spans.note(self.LESSON, self.NOON, "quarantined")
        later = self.NOON + timedelta(seconds=1)
        assert [spans.stage(self.LESSON, at) for at in (self.NOON, later)] == ["active", "quarantined"]
        spans.note(self.LESSON, later, "active")
        assert spans.withholds(self.LESSON, self.WORK, later)
        assert not spans.withholds(self.LESSON, self.WORK, later + timedelta(seconds=1))
        assert spans.lessons() == [self.LESSON]

    def test_the_share_that_a_trial_withholds_is_the_one_noted_last_before_the_work(self) -> None:
        spans, fraction = Spans(), interaction_fraction(self.LESSON, self.WORK)
        moments = [self.NOON + timedelta(seconds=n) for n in range(4)]
        for at, share in zip(moments, (fraction + 0.01, fraction - 0.01, fraction + 0.02), strict=False):
            spans.note(self.LESSON, at, "trial", share)
        assert [spans.withholds(self.LESSON, self.WORK, at) for at in moments] == [False, True, False, True]
        assert spans.stage(self.LESSON, moments[-1]) == "trial"

    def test_a_lesson_that_a_person_took_out_holds_nothing_back(self) -> None:
        spans = Spans()
        spans.note(self.LESSON, self.NOON, "out")
        assert not spans.withholds(self.LESSON, self.WORK, self.NOON + timedelta(days=1))
        assert spans.lessons() == []


class TestConstants:
    @pytest.fixture(autouse=True)
    def trial_policy(self, settings: Any) -> None:
        settings.SONDER_TRUST_POLICY = "trial"

    @pytest.mark.parametrize(
        ("policy", "given", "told"),
        [
            (None, {"quarantine_ods": 9}, "Did you mean quarantine_odds"),
            (None, {"SONDER_TRIAL_ODDS": 9}, "Did you mean trial_odds"),
            ("reference", {"odds_ratio": 2}, "It has losses, losses_one_task"),
            (None, {"odds_ratio": "three"}, "odds_ratio: 'three' is not a number; use one, of 1.1 or more"),
            (None, {"odds_ratio": 1}, "odds_ratio: 1 is out of range; use a value of 1.1 or more"),
            (None, {"odds_ratio": "nan"}, "odds_ratio: nan is out of range"),
            (None, {"ledger_window": 7}, "ledger_window: 7 is out of range; use a value from 8 to 1000"),
            (None, {"ledger_window": 64.5}, "ledger_window: 64.5 is not a whole number"),
            (None, {"trial_odds": 500}, "trial_odds: 500 must be below quarantine_odds"),
            (None, {"quarantine_odds": 40}, "release_odds: 50 must be below quarantine_odds"),
            (None, {"source_weights": "caller=2"}, "source_weights: 'caller=2' is no weight"),
            ("reference", {"mean_reward": 0.5}, "mean_reward: 0.5 is out of range; use a value from -1 to 0"),
            ("reference", {"sources": "caller,friend"}, "sources: 'friend' is no judge"),
        ],
    )  # fmt: skip
    def test_one_that_cannot_be_used_is_named_with_what_it_may_be(self, policy, given, told) -> None:
        with pytest.raises(Invalid) as refused:
            choose(policy, given)
        assert told in refused.value.detail

    def test_what_is_not_named_stays_as_it_is_in_force(self, settings) -> None:
        settings.SONDER_QUARANTINE_ODDS = 300.0
        chosen = choose(None, {"loss_tasks": "3", "source_weights": "caller=1"})
        assert (chosen.ledger.quarantine_odds, chosen.ledger.loss_tasks) == (300, 3)
        assert chosen.values["source_weights"] == "caller=1,machine=0,attributed=0,self_curriculum=0,unknown=0"
        assert not chosen.is_own
        assert choose("trial", {"quarantine_odds": 300}).is_own

    def test_every_constant_of_the_rule_but_its_tolerance_can_be_set(self) -> None:
        fields = {constant.field for constant in constants.KNOWN["trial"].values()}
        assert fields == set(LedgerConstants.__dataclass_fields__) - {"tolerance"}


def test_the_committed_reports_folder_holds_no_replay() -> None:
    """It is about somebody's own store."""
    assert not (Path(constants.__file__).parents[1] / "reports" / "replay.json").exists()
