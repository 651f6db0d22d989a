"""What enters the queue of distillations, what leaves it undone, and what an operator may do."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from django.test import override_settings

from memory.errors import Conflict, NotFound
from memory.models import Account, LessonDistillation
from memory.services import distillation, outcome
from memory.services import interaction as interactions
from memory.services.caller import Caller
from tests.services.workshop import (
    OPEN,
    TERMINAL,
    caller,
    good_work,
    judge,
    outcome_of,
    put_into,
    row,
    work,
)

pytestmark = pytest.mark.django_db

PITFALLS = override_settings(SONDER_DISTILL_PITFALLS=True)
ERROR = "KeyError: 'total'"
Heard = list[tuple[str, UUID]]


def fail(account: Account, interaction: UUID, detail: str = ERROR, source: str = "machine") -> None:
    outcome.report(caller(account, source), interaction, "failed", detail)


def answer(account: Account, interaction: UUID, response: str | None) -> None:
    interactions.finish(caller(account), interaction, interactions.Finish(changes={"response": response}))


def waiting() -> list[UUID]:
    return list(LessonDistillation.objects.values_list("pk", flat=True))


class TestEntering:
    def test_good_work_enters_with_its_outcome_and_is_announced(
        self, account: Account, quiet_nudges: Heard, django_capture_on_commit_callbacks: Callable[..., Any]
    ) -> None:
        interaction = work(account)
        with django_capture_on_commit_callbacks(execute=True):
            judge(account, interaction, "caller:accepted")
            assert row(interaction).state == "pending"
        assert quiet_nudges == [("distill", interaction), ("credit", interaction)]
        assert (row(interaction).signal, row(interaction).attempts) == ("accepted", 0)

    def test_what_was_judged_before_its_answer_enters_with_the_answer(self, account: Account) -> None:
        interaction = work(account, response=None)
        judge(account, interaction, "machine:tests_passed")
        assert waiting() == []
        answer(account, interaction, "Done with a timeout.")
        assert (row(interaction).state, row(interaction).signal) == ("pending", "tests_passed")

    @pytest.mark.parametrize("response", [None, "", " \n\t "])
    def test_without_an_answer_there_is_nothing_to_learn_from(self, account: Account, response: str | None) -> None:
        interaction = work(account, response=response)
        judge(account, interaction, "caller:accepted")
        answer(account, interaction, response)
        assert waiting() == []

    @pytest.mark.parametrize(
        "words",
        [
            ["caller:compiled"],
            ["caller:rejected"],
            ["attributed:tests_passed"],
            ["unknown:tests_passed"],
            ["machine:failed", "caller:accepted"],
            ["attributed:failed", "caller:accepted"],
        ],
    )
    def test_what_is_not_plainly_good_stays_out(self, account: Account, words: list[str]) -> None:
        judge(account, work(account), *words)
        assert waiting() == []

    def test_more_praise_and_another_answer_change_nothing(self, account: Account) -> None:
        interaction = good_work(account)
        before = row(interaction)
        judge(account, interaction, "machine:tests_passed", "caller:used")
        answer(account, interaction, "Another answer.")
        assert waiting() == [interaction]
        assert (row(interaction).signal, row(interaction).created_at) == ("accepted", before.created_at)

    def test_an_outcome_that_is_rolled_back_leaves_nothing(self, account: Account) -> None:
        interaction = work(account)
        with transaction.atomic():
            judge(account, interaction, "caller:accepted")
            assert waiting() == [interaction]
            transaction.set_rollback(True)
        assert waiting() == []

    def test_while_distillation_is_off_nothing_enters(self, account: Account) -> None:
        with override_settings(SONDER_DISTILLER="off"):
            good_work(account)
        assert waiting() == []
        good_work(account)
        assert len(waiting()) == 1


class TestContradiction:
    @pytest.mark.parametrize("state", OPEN)
    @pytest.mark.parametrize(
        "word", ["caller:rejected", "machine:failed", "attributed:failed", "unknown:rejected", "caller:retracted"]
    )
    def test_a_negative_or_withdrawn_word_cancels_what_is_not_closed(
        self, account: Account, state: str, word: str
    ) -> None:
        interaction, other = good_work(account), good_work(account)
        put_into(interaction, state)
        judge(account, interaction, word)
        assert outcome_of(interaction) == ("cancelled", "contradicted")
        assert row(interaction).claim_token is None
        assert outcome_of(other) == ("pending", None)

    @pytest.mark.parametrize("state", TERMINAL)
    def test_what_is_closed_stays_as_it_is(self, account: Account, state: str) -> None:
        interaction = good_work(account)
        put_into(interaction, state)
        before = row(interaction)
        judge(account, interaction, "caller:rejected")
        judge(account, interaction, "caller:used")
        assert [getattr(row(interaction), f.attname) for f in before._meta.fields] == [
            getattr(before, f.attname) for f in before._meta.fields
        ]

    def test_what_is_no_longer_contradicted_waits_again_with_all_its_attempts(
        self, account: Account, quiet_nudges: Heard, django_capture_on_commit_callbacks: Callable[..., Any]
    ) -> None:
        interaction = good_work(account)
        put_into(interaction, "retryable", attempts=3, last_error="It did not answer.")
        judge(account, interaction, "caller:rejected")
        before = row(interaction)
        quiet_nudges.clear()
        with django_capture_on_commit_callbacks(execute=True):
            judge(account, interaction, "caller:used")
        found = row(interaction)
        assert (found.state, found.signal, found.attempts, found.last_error) == ("pending", "used", 0, "")
        assert (found.result_reason, found.completed_at) == (None, None)
        assert found.created_at > before.created_at, "it waits from now on"
        assert ("distill", interaction) in quiet_nudges

    def test_it_stays_cancelled_while_one_word_is_against_it(self, account: Account) -> None:
        interaction = good_work(account)
        judge(account, interaction, "machine:failed", "caller:rejected", "caller:used")
        assert outcome_of(interaction) == ("cancelled", "contradicted")
        judge(account, interaction, "machine:retracted")
        assert outcome_of(interaction) == ("pending", None)

    def test_it_stays_cancelled_while_there_is_no_answer_or_distillation_is_off(self, account: Account) -> None:
        interaction = good_work(account)
        judge(account, interaction, "caller:rejected")
        with override_settings(SONDER_DISTILLER="off"):
            judge(account, interaction, "caller:used")
        assert outcome_of(interaction) == ("cancelled", "contradicted")
        answer(account, interaction, None)
        assert outcome_of(interaction) == ("cancelled", "contradicted")
        answer(account, interaction, "Done with a timeout.")
        assert outcome_of(interaction) == ("pending", None)

    def test_what_an_operator_called_off_does_not_come_back(self, account: Account) -> None:
        interaction = good_work(account)
        distillation.cancel(caller(account), interaction)
        judge(account, interaction, "caller:rejected", "caller:used")
        assert outcome_of(interaction) == ("cancelled", "cancelled_by_operator")

    def test_it_is_cancelled_also_while_distillation_is_off(self, account: Account) -> None:
        interaction = good_work(account)
        with override_settings(SONDER_DISTILLER="off"):
            judge(account, interaction, "caller:rejected")
        assert outcome_of(interaction) == ("cancelled", "contradicted")

    def test_an_answer_that_is_taken_away_cancels_nothing(self, account: Account) -> None:
        interaction = good_work(account)
        answer(account, interaction, None)
        assert outcome_of(interaction) == ("pending", None)


class TestPitfalls:
    def test_failures_enter_only_where_that_is_on(self, account: Account) -> None:
        fail(account, work(account))
        assert waiting() == []
        with PITFALLS:
            interaction = work(account)
            fail(account, interaction)
        assert waiting() == [interaction]
        assert row(interaction).signal == "failed"

    @PITFALLS
    def test_a_failure_that_names_no_error_or_is_contested_stays_out(self, account: Account) -> None:
        fail(account, work(account), detail="no")
        fail(account, work(account), source="attributed")
        contested = work(account)
        judge(account, contested, "self_curriculum:used")
        LessonDistillation.objects.all().delete()
        fail(account, contested)
        assert waiting() == []

    @PITFALLS
    @pytest.mark.parametrize("state", OPEN)
    def test_a_failure_that_is_mended_waits_for_a_lesson_instead(self, account: Account, state: str) -> None:
        interaction = work(account)
        fail(account, interaction)
        put_into(interaction, state, attempts=3)
        judge(account, interaction, "machine:tests_passed")
        found = row(interaction)
        assert (found.state, found.signal, found.attempts) == ("pending", "tests_passed", 0)
        assert found.claim_token is None

    @PITFALLS
    def test_a_warning_that_was_made_is_not_made_a_lesson(self, account: Account) -> None:
        interaction = work(account)
        fail(account, interaction)
        put_into(interaction, "no_lesson")
        judge(account, interaction, "machine:tests_passed")
        assert (row(interaction).state, row(interaction).signal) == ("no_lesson", "failed")

    @PITFALLS
    def test_a_failure_that_is_withdrawn_warns_of_nothing(self, account: Account) -> None:
        interaction = work(account)
        fail(account, interaction)
        judge(account, interaction, "machine:retracted")
        assert outcome_of(interaction) == ("cancelled", "contradicted")

    @PITFALLS
    def test_a_failure_that_is_withdrawn_and_reported_again_warns_again(self, account: Account) -> None:
        interaction = work(account)
        fail(account, interaction)
        judge(account, interaction, "machine:retracted")
        fail(account, interaction)
        assert (outcome_of(interaction), row(interaction).signal) == (("pending", None), "failed")

    @PITFALLS
    def test_a_lesson_whose_work_fails_later_is_cancelled_and_not_made_a_warning(self, account: Account) -> None:
        interaction = work(account)
        judge(account, interaction, "machine:tests_passed")
        fail(account, interaction)
        assert outcome_of(interaction) == ("cancelled", "contradicted")
        assert row(interaction).signal == "tests_passed"


class TestOperator:
    def test_a_failed_distillation_gets_all_its_attempts_back(
        self, account: Account, quiet_nudges: Heard, django_capture_on_commit_callbacks: Callable[..., Any]
    ) -> None:
        interaction = good_work(account)
        put_into(interaction, "failed", attempts=5, last_error="It did not answer.")
        with django_capture_on_commit_callbacks(execute=True):
            found = distillation.retry(caller(account), interaction)
        assert (found.state, found.attempts, found.result_reason, found.completed_at) == ("pending", 0, None, None)
        assert found.last_error == "It did not answer."
        assert quiet_nudges == [("distill", interaction)]

    @pytest.mark.parametrize("state", [s for s in OPEN + TERMINAL if s != "failed"])
    def test_only_a_failed_one_can_be_tried_again(self, account: Account, state: str) -> None:
        interaction = good_work(account)
        put_into(interaction, state)
        with pytest.raises(Conflict, match=state):
            distillation.retry(caller(account), interaction)
        assert row(interaction).state == state

    def test_what_was_contradicted_after_it_failed_is_not_tried_again(self, account: Account) -> None:
        interaction = good_work(account)
        put_into(interaction, "failed")
        judge(account, interaction, "caller:rejected")
        with pytest.raises(Conflict, match="none speaks for"):
            distillation.retry(caller(account), interaction)
        judge(account, interaction, "caller:used")
        assert distillation.retry(caller(account), interaction).signal == "used"

    @pytest.mark.parametrize("state", OPEN)
    def test_what_is_not_closed_can_be_called_off(self, account: Account, state: str) -> None:
        interaction, other = good_work(account), good_work(account)
        put_into(interaction, state)
        distillation.cancel(caller(account), interaction)
        assert outcome_of(interaction) == ("cancelled", "cancelled_by_operator")
        assert row(other).state == "pending"

    @pytest.mark.parametrize("state", TERMINAL)
    def test_what_is_closed_cannot(self, account: Account, state: str) -> None:
        interaction = good_work(account)
        put_into(interaction, state)
        with pytest.raises(Conflict, match=state):
            distillation.cancel(caller(account), interaction)
        assert outcome_of(interaction)[1] == "no_candidate"

    @pytest.mark.parametrize("verb", [distillation.retry, distillation.cancel])
    def test_another_account_s_distillation_does_not_exist(
        self, account: Account, rival_account: Account, verb: Callable[[Caller, UUID], object]
    ) -> None:
        interaction = good_work(account)
        put_into(interaction, "failed" if verb is distillation.retry else "pending")
        state = row(interaction).state
        with pytest.raises(NotFound):
            verb(caller(rival_account), interaction)
        with pytest.raises(NotFound):
            verb(caller(account), work(account))
        assert row(interaction).state == state
        verb(caller(account), interaction)
        assert row(interaction).state != state
