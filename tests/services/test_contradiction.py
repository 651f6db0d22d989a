"""Lessons that may contradict each other are flagged, and a person decides; a decision stands until a text changes."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.test import override_settings
from django.utils import timezone

from memory.errors import Conflict, EmbeddingUnavailable, Invalid, NotFound
from memory.models import Account, Contradiction, EmbeddingSpace, JobRun, Lesson, ReviewItem, TrustEvent
from memory.models.vocabulary import Verdict
from memory.search import Scope, embed_query, find
from memory.services import contradiction, jobs, rejection
from memory.services.contradiction import Detected
from memory.services.credit import sweep
from memory.tasks import maintenance_contradictions
from tests.services.near import place, state_of
from tests.services.play import make_callers, say, serve

pytestmark = pytest.mark.django_db

ALWAYS = "Always retry `fetch()` when it fails with a timeout."
NEVER = "Never retry `fetch()` when it fails with a timeout."
AGAIN = "Retry `fetch()` whenever it fails with a timeout."


@pytest.fixture
def opposites(lesson: Callable[..., Lesson], space: EmbeddingSpace) -> tuple[Lesson, Lesson]:
    return place(lesson(ALWAYS), space, 0.95), place(lesson(NEVER), space, 0.95)


@pytest.fixture
def judge(account: Account) -> Callable[..., None]:
    callers = make_callers(account)

    def work(lesson: Lesson, signal: str, source: str = "caller") -> None:
        say(callers[source], serve(account, f"task of {lesson.pk}", [lesson]).pk, signal)
        sweep()

    return work


def run() -> Detected:
    """As the task runs it: the next run goes on where this one ended."""
    with jobs.recorded(contradiction.JOB) as figures:
        found = contradiction.detect()
        figures.update(found.figures())
    return found


def pairs() -> list[tuple[set[UUID], str]]:
    return [({row.first, row.second}, row.basis) for row in Contradiction.objects.order_by("pk")]


def open_questions() -> list[UUID]:
    return list(ReviewItem.objects.filter(kind="contradiction", status="open").values_list("subject", flat=True))


class TestDetecting:
    def test_opposites_are_flagged_by_polarity_alone_while_nobody_has_judged_them(self, opposites) -> None:
        found = run()
        assert (found.looked_at, found.pairs, found.raised) == (2, 1, 1)
        assert pairs() == [({lesson.pk for lesson in opposites}, "polarity_only:prohibition")]
        row = Contradiction.objects.get()
        assert open_questions() == [row.pk]
        assert row.similarity == pytest.approx(0.95**2, abs=0.11)
        assert {state_of(lesson.pk) for lesson in opposites} == {"active"}, "a flag decides nothing"

    def test_the_same_claim_with_opposite_outcomes_is_flagged_too(self, lesson, space, judge) -> None:
        good, bad = place(lesson(ALWAYS), space, 0.95), place(lesson(AGAIN), space, 0.95)
        assert run().raised == 0
        judge(good, "accepted")
        judge(bad, "rejected")
        assert run().raised == 1
        assert pairs() == [({good.pk, bad.pk}, "evidence:caller")]

    def test_outcomes_join_a_flag_that_was_raised_without_any(self, opposites, judge) -> None:
        run()
        judge(opposites[0], "accepted")
        judge(opposites[1], "failed")
        assert run().raised == 0
        assert [basis for _, basis in pairs()] == ["both:prohibition,caller"]

    def test_a_flag_by_outcomes_that_agree_by_now_is_withdrawn(self, lesson, space, judge) -> None:
        good, bad = place(lesson(ALWAYS), space, 0.95), place(lesson(AGAIN), space, 0.95)
        judge(good, "accepted")
        judge(bad, "rejected")
        run()
        judge(bad, "tests_passed")
        judge(bad, "tests_passed")
        found = run()
        assert (found.withdrawn, pairs(), open_questions()) == (1, [], [])

    @pytest.mark.parametrize(("cosine", "flags"), [(0.81, 1), (0.79, 0)])
    def test_the_threshold_is_the_spaces(self, lesson, space, cosine, flags) -> None:
        place(lesson(ALWAYS), space, 1.0)
        place(lesson(NEVER), space, cosine)
        run()
        assert len(pairs()) == flags

    def test_lessons_of_two_accounts_do_not_contradict_each_other(self, lesson, space, account, rival_account) -> None:
        place(lesson(ALWAYS, account_id=account.pk), space, 0.95)
        place(lesson(NEVER, account_id=rival_account.pk), space, 0.95)
        assert run().raised == 0
        place(lesson(NEVER, account_id=account.pk), space, 0.95)
        assert run().raised == 1
        assert Contradiction.objects.get().account_id == account.pk
        assert ReviewItem.objects.get().account_id == account.pk

    def test_running_again_asks_nothing_again(self, opposites) -> None:
        first = run()
        again = run()
        assert (first.raised, again.raised, len(pairs()), len(open_questions())) == (1, 0, 1, 1)

    def test_a_question_about_what_is_out_of_service_is_withdrawn_and_comes_back_with_it(
        self, opposites, operator
    ) -> None:
        run()
        rejection.reject(opposites[0].pk, reviewer=operator.pk, reason="wrong")
        assert open_questions() == []
        assert run().raised == 0
        rejection.restore(opposites[0].pk, reviewer=operator.pk, reason="right after all")
        assert run().raised == 1
        assert len(open_questions()) == 1

    def test_what_left_service_without_a_person_is_noticed_by_the_next_run(self, opposites) -> None:
        run()
        Lesson.objects.filter(pk=opposites[0].pk).update(state="superseded")
        assert run().withdrawn == 1
        assert open_questions() == []

    def test_a_snoozed_question_is_not_asked_again(self, opposites) -> None:
        run()
        ReviewItem.objects.update(status="snoozed")
        assert run().raised == 0
        assert ReviewItem.objects.count() == 1

    @override_settings(SONDER_JOB_PROBES=100, SONDER_PRUNE_EXACT_LIMIT=100)
    def test_a_bounded_run_goes_on_where_the_last_one_ended(self, lesson, space) -> None:
        texts = [ALWAYS, NEVER, *(f"Name index {n} after its table and its columns." for n in range(4))]
        made = [place(lesson(text), space, 0.95, axis) for axis, text in enumerate(texts)]
        place(made[1], space, 0.95, 0)
        with override_settings(SONDER_JOB_PROBES=4):
            looked = [run().looked_at for _ in range(3)]
        assert looked == [4, 4, 4]
        cursors = [run.figures["cursor"][0] for run in JobRun.objects.filter(job=contradiction.JOB).order_by("pk")]
        assert cursors == [str(made[3].pk), str(made[5].pk), str(made[5].pk)]
        assert len(pairs()) == 1

    def test_without_a_space_there_is_nothing_to_compare(self, space) -> None:
        EmbeddingSpace.objects.update(is_active=False)
        try:
            with pytest.raises(EmbeddingUnavailable):
                contradiction.detect()
        finally:
            EmbeddingSpace.objects.filter(pk=space.pk).update(is_active=True)


class TestDeciding:
    @pytest.fixture
    def row(self, opposites: Any) -> Contradiction:
        run()
        return Contradiction.objects.get()

    @pytest.mark.parametrize("verdict", [Verdict.KEEP_BOTH, Verdict.NOT_A_CONTRADICTION])
    def test_a_verdict_stands_and_is_never_asked_for_again(self, row, operator, verdict) -> None:
        contradiction.settle(row.pk, verdict, reviewer=operator.pk, reason="different cases")
        assert run().raised == 0
        row.refresh_from_db()
        item = ReviewItem.objects.get()
        assert (row.verdict, row.decided_by_id, item.status, item.resolved_by_id) == (
            verdict.value,
            operator.pk,
            "resolved",
            operator.pk,
        )
        assert set(Lesson.objects.values_list("state", flat=True)) == {"active"}

    def test_it_is_asked_again_once_a_text_changes(self, row, opposites, operator, space) -> None:
        contradiction.settle(row.pk, Verdict.KEEP_BOTH, reviewer=operator.pk, reason="different cases")
        never = opposites[1]
        written = rejection.supersede(never.pk, "Never retry `fetch()` after a timeout.", reviewer=operator.pk)
        assert written.lesson is not None
        place(written.lesson, space, 0.95)
        assert run().raised == 1
        asked = Contradiction.objects.get(verdict__isnull=True)
        assert {asked.first, asked.second} == {opposites[0].pk, written.lesson.pk}

    @pytest.mark.parametrize(("verdict", "loser"), [(Verdict.KEEP_FIRST, "second"), (Verdict.KEEP_SECOND, "first")])
    def test_whoever_loses_is_rejected_with_a_link_to_the_other(self, row, operator, verdict, loser) -> None:
        contradiction.settle(row.pk, verdict, reviewer=operator.pk, reason="measured")
        winner = row.first if loser == "second" else row.second
        lost = getattr(row, loser)
        assert (state_of(lost), state_of(winner)) == ("rejected", "active")
        event = TrustEvent.objects.get(lesson=lost)
        assert (event.actor, event.evidence["successor"]) == (f"user:{operator.pk}", str(winner))

    def test_a_second_verdict_comes_too_late(self, row, operator) -> None:
        contradiction.settle(row.pk, Verdict.KEEP_FIRST, reviewer=operator.pk, reason="measured")
        with pytest.raises(Conflict, match="decided this pair meanwhile"):
            contradiction.settle(row.pk, Verdict.KEEP_SECOND, reviewer=operator.pk, reason="measured")
        assert state_of(row.first) == "active"

    def test_other_verdicts_and_other_pairs_are_refused(self, row, operator) -> None:
        with pytest.raises(Invalid) as refused:
            contradiction.settle(row.pk, Verdict.UPHOLD, reviewer=operator.pk, reason="x")
        assert list(refused.value.errors) == ["verdict"]
        with pytest.raises(NotFound):
            contradiction.settle(UUID(int=1), Verdict.KEEP_BOTH, reviewer=operator.pk, reason="x")


TASK = "retry fetch when it fails with a timeout"


def answer(k: int = 5, task: str = TASK) -> tuple[list[str], dict[str, str]]:
    """The texts handed out, and of everything considered why it is out."""
    found = find(embed_query(task), Scope(account_id=None, reviewed_only=False), k, timezone.now())
    reasons = {ranked.candidate.text: reason for ranked, reason in found.considered}
    return [each.ranked.candidate.text for each in found.chosen], reasons


class TestRetrieval:
    @pytest.fixture
    def dispute(self, lesson: Callable[..., Lesson]) -> tuple[Lesson, Lesson]:
        """Both fit the task, and nobody has decided between them."""
        EmbeddingSpace.objects.update(contradiction_similarity=0.5)  # the test embedder sees words
        sides = lesson(ALWAYS), lesson(NEVER)
        assert run().raised == 1
        return sides

    def test_both_sides_fit_as_long_as_nobody_has_noticed(self, lesson) -> None:
        lesson(ALWAYS)
        lesson(NEVER)
        assert sorted(answer()[0]) == [ALWAYS, NEVER]

    def test_one_of_the_two_is_handed_out_and_the_other_is_named(self, dispute) -> None:
        handed, reasons = answer()
        assert len(handed) == 1
        assert sorted(reasons.values()) == ["", "contradicted"]

    @pytest.mark.parametrize("better", [0, 1])
    def test_the_one_with_the_better_word_of_callers_goes(self, dispute, judge, better) -> None:
        judge(dispute[better], "accepted")
        judge(dispute[1 - better], "rejected")
        handed, reasons = answer()
        assert handed == [dispute[better].text]
        assert reasons[dispute[1 - better].text] == "contradicted"

    def test_what_machines_say_does_not_count(self, dispute, judge) -> None:
        judge(dispute[0], "accepted")
        for _ in range(3):
            judge(dispute[1], "tests_passed", "machine")
        assert answer()[0] == [dispute[0].text]

    def test_a_side_that_nobody_judged_goes_before_one_that_callers_turned_down(self, dispute, judge) -> None:
        judge(dispute[0], "rejected")
        assert answer()[0] == [dispute[1].text]

    def test_the_place_goes_to_the_next_candidate(self, dispute, lesson) -> None:
        third = lesson("Log the address that `fetch()` asked when it fails with a timeout.")
        handed, _ = answer(k=2)
        assert len(handed) == 2
        assert third.text in handed

    @pytest.mark.parametrize("k", [1, 2, 3, 5, 50])
    def test_never_both_in_one_answer_however_many_are_asked_for(self, dispute, lesson, k) -> None:
        for n in range(6):
            lesson(f"Set the timeout of `fetch()` to {n + 2} s when it fails.")
        handed, _ = answer(k=k)
        assert len(handed) == min(k, 7)
        assert not {ALWAYS, NEVER} <= set(handed)

    def test_also_by_words_alone(self, dispute, space) -> None:
        EmbeddingSpace.objects.update(is_active=False)
        try:
            handed, reasons = answer()
        finally:
            EmbeddingSpace.objects.filter(pk=space.pk).update(is_active=True)
        assert len(handed) == 1
        assert sorted(reasons.values()) == ["", "contradicted"]

    def test_after_the_verdict_that_both_are_right_both_go(self, dispute, operator) -> None:
        row = Contradiction.objects.get()
        contradiction.settle(row.pk, Verdict.NOT_A_CONTRADICTION, reviewer=operator.pk, reason="different cases")
        assert sorted(answer()[0]) == [ALWAYS, NEVER]

    def test_a_side_that_is_not_in_the_answer_keeps_nobody_out(self, dispute, judge) -> None:
        judge(dispute[0], "accepted")
        Lesson.objects.filter(pk=dispute[0].pk).update(state="quarantined")
        assert answer()[0] == [dispute[1].text]


class TestTheJob:
    def test_it_leaves_its_figures_and_where_it_ended(self, opposites) -> None:
        maintenance_contradictions()
        maintenance_contradictions()
        first, second = JobRun.objects.filter(job=contradiction.JOB).order_by("pk")
        assert (first.outcome, first.figures["raised"], second.figures["raised"]) == ("done", 1, 0)
        assert second.figures["cursor"] == first.figures["cursor"]

    def test_without_a_model_it_says_so_and_goes_on_afterwards_where_it_was(self, opposites, space) -> None:
        maintenance_contradictions()
        EmbeddingSpace.objects.update(is_active=False)
        try:
            maintenance_contradictions()
        finally:
            EmbeddingSpace.objects.filter(pk=space.pk).update(is_active=True)
        without = JobRun.objects.latest("pk")
        assert (without.outcome, "reembed" in without.figures["unavailable"]) == ("done", True)
        maintenance_contradictions()
        assert JobRun.objects.latest("pk").figures["cursor"] == JobRun.objects.earliest("pk").figures["cursor"]
