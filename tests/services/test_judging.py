"""Which work is asked about: what a verdict would change most, what judges differ on, and nothing that is answered."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.test import override_settings

from memory.errors import Forbidden, NotFound
from memory.models import Account, Comment, Interaction, JobRun, Lesson, LessonStanding, Outcome, ReviewItem
from memory.models.vocabulary import Verdict
from memory.rules.information import Change, information
from memory.services import judging
from memory.services.adjudication import decide
from memory.services.credit import sweep
from memory.services.weighing import weigh
from memory.tasks import maintenance_judging
from tests.services.people import decision, member
from tests.services.play import make_callers, make_lessons, say, serve

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def trial(settings: Any) -> None:
    settings.SONDER_TRUST_POLICY = "trial"


@pytest.fixture
def callers(account: Account) -> dict[str, Any]:
    return make_callers(account)


@pytest.fixture
def work(account: Account, callers: dict[str, Any]) -> Callable[..., Interaction]:
    """A piece of work that was answered, and what is said of it."""

    def make(task: str, lessons: list[Lesson], *, response: str | None = "Done.", **said: str) -> Interaction:
        made = serve(account, task, lessons)
        Interaction.objects.filter(pk=made.pk).update(response=response)
        for source, signal in said.items():
            say(callers[source], made.pk, signal)
        sweep()
        return made

    return make


def asked(kind: str = "outcome_needed") -> list[UUID]:
    """Open questions, the most valuable first."""
    items = ReviewItem.objects.filter(kind=kind, status="open")
    return [i.subject for i in sorted(items, key=lambda i: (-i.priority_parts["severity"], i.created_at))]


class TestWhatIsAskedFirst:
    def test_the_verdict_that_would_put_a_lesson_on_trial_comes_before_one_that_would_not(self, work) -> None:
        quiet, suspected = make_lessons(2)
        for n in range(8):
            work(f"easy task {n}", [quiet], caller="accepted")
        for n in range(2):
            work(f"hard task {n}", [suspected], caller="failed")
        assert 1.3 < LessonStanding.objects.get(pk=suspected.pk).s < 2.3
        calm, critical = work("calm", [quiet]), work("critical", [suspected])
        judging.run()
        assert asked() == [critical.pk, calm.pk]
        found = weigh([critical.pk])[critical.pk][0]
        assert (found.lesson, found.information.loss) == (suspected.pk, Change.TRIAL)

    def test_of_several_lessons_the_one_on_which_most_hangs_counts(self, work) -> None:
        quiet, suspected = make_lessons(2)
        for n in range(2):
            work(f"hard task {n}", [suspected], caller="failed")
        both = work("both", [quiet, suspected])
        assert [w.lesson for w in weigh([both.pk])[both.pk]] == [suspected.pk, quiet.pk]

    def test_what_a_caller_judged_has_no_answer_or_no_lesson_is_not_asked_about(self, work) -> None:
        (one,) = make_lessons(1)
        work("judged", [one], caller="accepted")
        work("text gone", [one], response=None)
        work("without a lesson", [])
        graded = work("graded by the machine", [one], machine="failed")
        judging.run()
        assert asked() == [graded.pk]

    def test_a_machines_word_is_replaced_and_not_added_to(self, work) -> None:
        (one,) = make_lessons(1)
        graded = work("graded", [one], machine="failed")
        (found,) = weigh([graded.pk])[graded.pk]
        assert found.prospect.if_won == 0.0, "the machine's loss would go"
        assert found.prospect.if_lost < found.prospect.now + 0.5, "and a caller's loss adds three tenths of a step"

    def test_weighed_blind_the_machines_word_does_not_show(self, work) -> None:
        (one,) = make_lessons(1)
        won, lost = work("one", [one], machine="tests_passed"), work("two", [one], machine="failed")
        blind = weigh([won.pk, lost.pk], blind=[won.pk, lost.pk])
        (a,), (b,) = blind[won.pk], blind[lost.pk]
        assert (a.prospect, a.information) == (b.prospect, b.information)
        seen = weigh([won.pk, lost.pk])
        assert seen[won.pk][0].prospect != seen[lost.pk][0].prospect

    def test_under_the_reference_the_fifth_loss_is_asked_for_first(self, work, settings) -> None:
        settings.SONDER_TRUST_POLICY = "reference"
        quiet, suspected = make_lessons(2)
        for n in range(4):
            work(f"task {n}", [suspected], caller="failed")
        for n in range(6):
            work(f"won {n}", [quiet], caller="accepted")
        calm, critical = work("calm", [quiet]), work("critical", [suspected])
        judging.run()
        assert asked()[0] == critical.pk
        loss = {pk: found[0].information.loss for pk, found in weigh([calm.pk, critical.pk]).items()}
        assert loss[calm.pk] is None

    def test_a_verdict_on_what_came_before_a_release_tells_nothing(self, work, account) -> None:
        (one,) = make_lessons(1)
        graded = work("graded", [one], machine="failed")
        ana = member(account, "reviewer", "ana")
        decide(decision(ana, Verdict.QUARANTINE, one.pk))
        decide(decision(ana, Verdict.RELEASE, one.pk))
        assert weigh([graded.pk]) == {}


class TestAsking:
    def test_asking_again_asks_nothing_twice_and_weighs_anew(self, work) -> None:
        one, other = make_lessons(2)
        for n in range(8):
            work(f"easy task {n}", [other], caller="accepted")
        first = work("first", [one])
        judging.run()
        before = ReviewItem.objects.get(subject=first.pk)
        for n in range(2):
            work(f"lost {n}", [one], caller="failed")
        figures = judging.run()
        after = ReviewItem.objects.get(subject=first.pk)
        assert figures["needed"] == {"asked": 0, "withdrawn": 0}
        assert after.priority_parts["severity"] > 0.5 > before.priority_parts["severity"]
        assert after.version == before.version, "a person who looks at it has not been overtaken"

    def test_an_answer_from_elsewhere_withdraws_the_question_and_a_retraction_asks_it_again(
        self, work, callers
    ) -> None:
        (one,) = make_lessons(1)
        made = work("one", [one])
        judging.run()
        say(callers["caller"], made.pk, "accepted")
        sweep()
        assert judging.run()["needed"]["withdrawn"] == 1
        say(callers["caller"], made.pk, "retracted")
        sweep()
        judging.run()
        assert asked() == [made.pk]

    def test_a_judged_question_is_not_asked_again(self, work, account) -> None:
        (one,) = make_lessons(1)
        made = work("one", [one])
        judging.run()
        jo = member(account, "judge", "jo")
        item = ReviewItem.objects.get(subject=made.pk)
        decide(decision(jo, Verdict.JUDGE_OUTCOME, made.pk, item, data={"signal": "rejected"}))
        sweep()
        assert judging.run()["needed"] == {"asked": 0, "withdrawn": 0}
        assert asked() == []

    def test_only_the_best_of_an_account_are_open_and_what_is_outdone_goes(self, work, monkeypatch) -> None:
        monkeypatch.setattr(judging, "BEST", 1)
        quiet, suspected = make_lessons(2)
        work("calm", [quiet])
        judging.run()
        for n in range(2):
            work(f"hard {n}", [suspected], caller="failed")
        critical = work("critical", [suspected])
        assert judging.run()["needed"] == {"asked": 1, "withdrawn": 1}
        assert asked() == [critical.pk]

    def test_what_somebody_skipped_stays_with_their_name(self, work, account, monkeypatch) -> None:
        (one,) = make_lessons(1)
        made = work("one", [one])
        judging.run()
        jo, item = member(account, "judge", "jo"), ReviewItem.objects.get(subject=made.pk)
        judging.skip(item.pk, jo)
        judging.skip(item.pk, jo)
        monkeypatch.setattr(judging, "BEST", 0)
        judging.run()
        item.refresh_from_db()
        assert (item.status, item.priority_parts["skipped_by"], item.version) == ("open", [jo.user_id], 1)

    def test_a_viewer_and_a_stranger_may_not_skip(self, work, account, rival_account) -> None:
        (one,) = make_lessons(1)
        made = work("one", [one])
        judging.run()
        item = ReviewItem.objects.get(subject=made.pk)
        for who in (member(account, "viewer", "vi"), member(rival_account, "maintainer", "max")):
            with pytest.raises(Forbidden):
                judging.skip(item.pk, who)
        with pytest.raises(NotFound):
            judging.skip(made.pk, member(account, "judge", "jo"))

    def test_a_large_store_is_looked_through_in_steps(self, work, monkeypatch) -> None:
        monkeypatch.setattr(judging, "NEWEST", 0)
        lessons = sorted(make_lessons(101), key=lambda lesson: lesson.pk)
        made = [work(f"task {n}", [lesson], machine="failed") for n, lesson in enumerate([lessons[0], lessons[-1]])]
        for lesson in lessons[1:-1]:
            LessonStanding.objects.create(
                lesson=lesson, policy="trial", wins=0, losses=0, s=0.0, on_trial=False, version=1
            )
        with override_settings(SONDER_JOB_PROBES=100):
            maintenance_judging()
            assert asked() == [made[0].pk]
            maintenance_judging()
            assert set(asked()) == {work.pk for work in made}
        runs = JobRun.objects.filter(job="judging").order_by("started_at")
        assert [run.figures["cursor"] for run in runs] == [str(lessons[99].pk), str(UUID(int=0))]


class TestDisagreement:
    def test_caller_and_machine_of_opposite_signs_are_asked_about_and_no_others(self, work) -> None:
        (one,) = make_lessons(1)
        differ = work("differ", [one], caller="rejected", machine="tests_passed")
        work("agree", [one], caller="accepted", machine="compiled")
        work("hearsay", [one], caller="accepted", unknown="failed")
        judging.run()
        assert asked("outcome_conflict") == [differ.pk]

    def test_it_is_withdrawn_when_they_agree_and_settled_by_a_person(self, work, callers, account) -> None:
        (one,) = make_lessons(1)
        first = work("first", [one], caller="rejected", machine="tests_passed")
        second = work("second", [one], caller="rejected", machine="tests_passed")
        judging.run()
        say(callers["machine"], first.pk, "failed")
        sweep()
        assert judging.run()["disputed"]["withdrawn"] == 1
        item = ReviewItem.objects.get(subject=second.pk)
        jo = member(account, "judge", "jo")
        decide(decision(jo, Verdict.JUDGE_OUTCOME, second.pk, item, data={"signal": "rejected"}))
        sweep()
        judging.run()
        assert asked("outcome_conflict") == [], "the caller's word was confirmed"
        assert Outcome.objects.filter(interaction=second.pk, source="caller").count() == 1


class TestPrivateData:
    def test_a_flag_is_a_comment_that_an_erasure_takes_along(self, work, account) -> None:
        (one,) = make_lessons(1)
        made = work("one", [one])
        jo = member(account, "judge", "jo")
        judging.flag_private(made.pk, jo, " a phone number ")
        assert Comment.objects.get(subject=made.pk).text == "Private data: a phone number"
        with pytest.raises(Forbidden):
            judging.flag_private(made.pk, member(account, "viewer", "vi"), "")


def test_a_run_takes_the_same_number_of_reads_whatever_the_size(work, django_assert_max_num_queries) -> None:
    (one,) = make_lessons(1)
    for n in range(12):
        work(f"task {n}", [one])
    with django_assert_max_num_queries(24):
        judging.run()
    assert information(weigh([asked()[0]])[asked()[0]][0].prospect).value > 0
