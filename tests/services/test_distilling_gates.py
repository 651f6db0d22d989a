"""Each gate on the way from a proposal to a lesson, in their order, and what it records."""

from collections.abc import Callable, Iterator

import pytest
from django.test import override_settings

from memory.models import Account, Lesson, LessonTombstone, ReviewItem
from memory.models.vocabulary import TombstoneReason
from memory.rules.text import digest
from memory.services import tombstone
from tests.distillers.server import LESSON, Server
from tests.distillers.server import lesson as answer
from tests.services.workshop import bury, distill, model, outcome_of, refusals

pytestmark = pytest.mark.django_db

OPPOSITE = LESSON.replace("Pass", "Never pass")
PARAPHRASE = "To every `requests.get` call pass `timeout=30`, because a dead peer blocks the worker forever without it."
SECRET = "AKIAIOSFODNN7EXAMPLE"


@pytest.fixture
def server() -> Iterator[Server]:
    with model() as running:
        yield running


class TestGates:
    @pytest.mark.parametrize(
        ("proposed", "reason"),
        [
            (f"Set `aws_access_key_id={SECRET}` before the first call of boto3.", "private"),
            ("Mail ana.lopez@example.org before you rotate the `pg_hba.conf`.", "private"),
            ("Keep the cache of `pip` below /home/ana/.cache, so that it survives.", "private"),
            ("Always be careful when you change shared code.", "not_concrete"),
            ("Close the file.", "not_concrete"),
            ("Use a set for membership. Use a dict for counting.", "not_concrete"),
            ("Fetch the monthly report from the billing service.", "not_concrete"),
            (f"Pass `timeout=30` to each of {'x' * 500}", "not_concrete"),
            (f"Pass `timeout=30` to each of {'x' * 2000}", "not_concrete"),
            # the earlier gate tells
            (f"Be careful with {SECRET} and handle errors properly.", "private"),
        ],
    )
    def test_what_a_gate_refuses_is_no_lesson_and_the_reason_is_recorded_without_the_text(
        self, account: Account, server: Server, proposed: str, reason: str
    ) -> None:
        server.answer = answer(proposed)
        interaction = distill(account)
        assert outcome_of(interaction) == ("no_lesson", reason)
        assert refusals() == [
            ("distillation", "too_long", digest(proposed), "system")
            if len(proposed) > 2000
            else ("distillation", reason, None if reason == "private" else digest(proposed), "system")
        ]
        assert not Lesson.objects.exists()
        assert not ReviewItem.objects.exists()

    @pytest.mark.parametrize("proposed", [None, "NONE"])
    def test_a_model_that_finds_nothing_leaves_no_refusal(
        self, account: Account, server: Server, proposed: str | None
    ) -> None:
        server.answer = answer(proposed)
        assert outcome_of(distill(account)) == ("no_lesson", "no_candidate")
        assert refusals() == []

    def test_a_proposal_of_which_nothing_is_left_is_none(self, account: Account, server: Server) -> None:
        server.answer = answer("\u200b... !\x00")
        assert outcome_of(distill(account)) == ("no_lesson", "no_candidate")

    @pytest.mark.parametrize(
        "disguise", [str.upper, lambda text: f" \u201c{text}\u201d!", lambda text: text + "\u200b"]
    )
    def test_a_lesson_that_is_there_already_is_not_stored_again(
        self, account: Account, server: Server, lesson: Callable[..., Lesson], disguise: Callable[[str], str]
    ) -> None:
        lesson(LESSON)
        server.answer = answer(disguise(LESSON))
        assert outcome_of(distill(account)) == ("no_lesson", "exact_duplicate")
        assert Lesson.objects.count() == 1

    def test_what_a_lesson_says_already_in_other_words_is_a_semantic_duplicate_and_its_opposite_is_none(
        self, account: Account, server: Server, lesson: Callable[..., Lesson]
    ) -> None:
        lesson(PARAPHRASE)
        assert outcome_of(distill(account)) == ("no_lesson", "semantic_duplicate")
        server.answer = answer(OPPOSITE)
        assert outcome_of(distill(account)) == ("stored", "stored")

    def test_a_candidate_that_waits_for_a_reviewer_is_a_duplicate_too(self, account: Account, server: Server) -> None:
        Account.objects.filter(pk=account.pk).update(review_policy="gated")
        distill(account)
        server.answer = answer(PARAPHRASE)
        assert outcome_of(distill(account)) == ("no_lesson", "semantic_duplicate")

    def test_a_rejected_value_stays_out_word_for_word_and_in_other_words_and_its_opposite_does_not(
        self, account: Account, server: Server, lesson: Callable[..., Lesson]
    ) -> None:
        bury(lesson(LESSON))
        assert outcome_of(distill(account)) == ("no_lesson", "rejected_value")
        server.answer = answer(PARAPHRASE)
        assert outcome_of(distill(account)) == ("no_lesson", "rejected_value")
        server.answer = answer(OPPOSITE)
        assert outcome_of(distill(account)) == ("stored", "stored")
        assert [reason for _, reason, *_ in refusals()] == ["rejected_value"] * 2

    def test_a_rejected_value_is_told_before_a_duplicate(
        self, account: Account, server: Server, lesson: Callable[..., Lesson]
    ) -> None:
        tombstone.write(lesson(LESSON).pk, TombstoneReason.QUARANTINED)
        assert outcome_of(distill(account)) == ("no_lesson", "rejected_value")

    def test_a_vague_rejected_value_is_told_to_be_vague(self, account: Account, server: Server) -> None:
        vague = "Always be careful when you change shared code."
        LessonTombstone.objects.create(
            text_sha256=digest(vague),
            reason="quarantined",
            signature_version=1,
            mac_key_id="k",
            source_lesson=account.pk,
        )
        server.answer = answer(vague)
        assert outcome_of(distill(account)) == ("no_lesson", "not_concrete")


class TestRecall:
    """What was handed out for the work is not learned from it again, whatever became of it since."""

    @pytest.mark.parametrize("state", ["active", "quarantined", "superseded"])
    def test_a_handed_out_lesson_counts_as_existing(
        self, account: Account, server: Server, lesson: Callable[..., Lesson], state: str
    ) -> None:
        known = lesson(LESSON)
        Lesson.objects.filter(pk=known.pk).update(state=state)
        assert outcome_of(distill(account, lessons=[known])) == ("no_lesson", "exact_duplicate")
        server.answer = answer(PARAPHRASE)
        assert outcome_of(distill(account, lessons=[known])) == ("no_lesson", "semantic_duplicate")
        server.answer = answer("Give each worker its own `Session`, because a shared one mixes cookies.")
        assert outcome_of(distill(account, lessons=[known])) == ("stored", "stored")

    def test_a_lesson_of_another_scope_that_was_handed_out_counts_too(
        self, account: Account, server: Server, lesson: Callable[..., Lesson]
    ) -> None:
        known = lesson(LESSON)  # of no account
        with override_settings(SONDER_LESSON_SCOPE="account"):
            assert outcome_of(distill(account, lessons=[known])) == ("no_lesson", "exact_duplicate")
            assert outcome_of(distill(account)) == ("stored", "stored")
