"""Near duplicates become one lesson: by a plan that a person can read, without losing a row, and not for good."""

import json
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from memory.errors import Conflict, Forbidden, Invalid, NotFound
from memory.models import (
    Account,
    Contradiction,
    EmbeddingSpace,
    Interaction,
    JobRun,
    Lesson,
    LessonSourceSum,
    LessonStanding,
    LessonTombstone,
    LessonUsage,
    Membership,
    PruneArchive,
    PrunePlan,
    ReviewItem,
    TrustEvent,
    UsageExemption,
)
from memory.models.sql import execute
from memory.models.vocabulary import Exposure, TombstoneReason
from memory.search import EmbeddedQuery
from memory.services import applying, merging, pairs, pruning, rejection, retrieval, tombstone
from memory.services import interaction as interactions
from memory.services.applying import Exclusion
from memory.services.credit import sweep
from memory.services.standing import differences, rebuild_standings
from memory.tasks import maintenance_prune_plan
from tests.services.near import place, put, state_of, vector
from tests.services.play import make_callers, random_cohort, say, serve

ONE = "Close the `cursor` before the connection goes back to the pool."
TWO = "Close each `cursor` before its connection goes back to the pool."
THREE = "Always close a `cursor` before the connection returns to the pool."
OPPOSITE = "Never close the `cursor` before the connection goes back to the pool."
OTHER = "Name every index after its table and its columns."
WITHHELD, TRIAL = Exposure.WITHHELD_QUARANTINE.value, Exposure.WITHHELD_TRIAL.value


@pytest.fixture
def maintainer(account: Account) -> int:
    user = get_user_model().objects.create_user("mia")
    Membership.objects.create(account=account, user=user, role="maintainer")
    return int(user.pk)


@pytest.fixture
def twins(lesson: Callable[..., Lesson], space: EmbeddingSpace) -> tuple[Lesson, Lesson]:
    """Two lessons that say the same; the first has the longer text, and is kept while nobody has judged either."""
    return place(lesson(TWO), space, 0.99), place(lesson(ONE), space, 0.99)


@pytest.fixture
def judge(account: Account) -> Callable[..., Interaction]:
    """Work that was handed lessons, and what somebody said of it."""
    callers = make_callers(account)

    def work(task: str, signal: str, *shown: Lesson, source: str = "caller", withheld: tuple[Lesson, ...] = ()) -> Any:
        done = serve(account, task, list(shown), list(withheld))
        say(callers[source], done.pk, signal)
        sweep()
        return done

    return work


def pair(lesson: Callable[..., Lesson], space: EmbeddingSpace, topic: int) -> tuple[Lesson, Lesson]:
    """Two lessons that say the same, on an axis of their own."""
    kept = lesson(f"Close each `cursor_{topic}` before its connection goes to the pool.")
    gone = lesson(f"Close `cursor_{topic}` before the connection goes to its pool.")
    return place(kept, space, 0.99, topic), place(gone, space, 0.98, topic)


def shape(plan: PrunePlan) -> list[tuple[UUID, list[UUID]]]:
    return [(UUID(c["keeper"]), [UUID(m["lesson"]) for m in c["members"]]) for c in plan.clusters]


def apply_current(**how: Any) -> list[applying.Outcome]:
    return applying.apply(None, pruning.current(None).digest, **how)


def evidence(lesson: UUID) -> dict[str, tuple[int, int, float]]:
    rows = LessonSourceSum.objects.filter(lesson=lesson).values_list("source", "n", "losses", "reward")
    return {source: (n, losses, float(reward)) for source, n, losses, reward in rows}


@pytest.mark.django_db
class TestThePlan:
    def test_it_names_who_is_kept_and_who_would_go(self, twins) -> None:
        kept, gone = twins
        assert shape(pruning.current(None)) == [(kept.pk, [gone.pk])]

    def test_making_it_removes_nothing(self, twins) -> None:
        pruning.current(None)
        assert Lesson.objects.count() == 2
        assert not LessonTombstone.objects.exists()

    def test_opposites_are_no_duplicates_however_near_they_are(self, lesson, space) -> None:
        place(lesson(ONE), space, 1.0)
        place(lesson(OPPOSITE), space, 1.0)
        assert shape(pruning.current(None)) == []

    def test_a_stored_signature_that_says_nothing_does_not_hide_an_opposite(self, lesson, space) -> None:
        place(lesson(ONE), space, 1.0)
        place(lesson(OPPOSITE), space, 1.0)
        Lesson.objects.update(polarity={}, anchors={})
        assert shape(pruning.current(None)) == []

    @pytest.mark.parametrize(("cosine", "clusters"), [(0.935, 1), (0.925, 0)])
    def test_the_threshold_is_the_spaces(self, lesson, space, cosine, clusters) -> None:
        place(lesson(ONE), space, 1.0)
        place(lesson(TWO), space, cosine)
        assert len(shape(pruning.current(None))) == clusters

    def test_who_callers_judged_is_kept_before_whom_the_machine_praised(self, twins, judge) -> None:
        longer, shorter = twins
        for n in range(5):
            judge(f"task {n}", "tests_passed", longer, source="machine")
        judge("another", "accepted", shorter)
        assert shape(pruning.current(None)) == [(shorter.pk, [longer.pk])]

    def test_a_chain_is_not_drawn_into_one_lesson(self, lesson, space, judge) -> None:
        """One is near two and two near three, but one is far from three."""
        one, two, three = (lesson(text) for text in (ONE, TWO, THREE))
        for written, angle in ((one, 0.0), (two, 0.3), (three, 0.6)):
            turn(written, space, angle)
        judge("task", "accepted", one)
        assert shape(pruning.current(None)) == [(one.pk, [two.pk])]

    def test_only_what_is_in_service_is_planned(self, twins) -> None:
        for state in ("candidate", "quarantined", "rejected", "superseded"):
            Lesson.objects.filter(pk=twins[0].pk).update(state=state)
            assert shape(pruning.current(None)) == [], state

    def test_what_a_person_approved_is_kept(self, twins, judge) -> None:
        Lesson.objects.filter(pk=twins[1].pk).update(reviewed_at=timezone.now())
        assert shape(pruning.current(None)) == []
        judge("task", "accepted", twins[1])
        assert shape(pruning.make(pruning.scope(None))) == [(twins[1].pk, [twins[0].pk])]

    def test_accounts_are_never_mixed(self, lesson, space, account, rival_account) -> None:
        place(lesson(ONE, account_id=account.pk), space, 1.0)
        place(lesson(TWO, account_id=rival_account.pk), space, 1.0)
        for scope in (None, account.pk, rival_account.pk):
            assert shape(pruning.current(scope)) == []
        place(lesson(THREE, account_id=account.pk), space, 1.0)
        assert len(shape(pruning.current(account.pk))) == 1
        with pytest.raises(NotFound):
            applying.apply(rival_account.pk, pruning.current(account.pk).digest)

    def test_the_same_store_has_the_same_plan(self, twins) -> None:
        first = pruning.current(None)
        assert pruning.make(pruning.scope(None)) == pruning.current(None) == first
        assert PrunePlan.objects.count() == 1

    def test_a_store_that_moved_has_another(self, twins, lesson, space) -> None:
        first = pruning.current(None)
        place(lesson(THREE), space, 0.99)
        second = pruning.current(None)
        assert second.digest != first.digest
        assert len(second.clusters[0]["members"]) == 2

    def test_a_pair_that_may_contradict_itself_waits_for_a_person(self, twins) -> None:
        first, second = sorted(twins, key=lambda twin: twin.text_sha256)
        row = Contradiction.objects.create(
            first=first.pk,
            second=second.pk,
            first_digest=first.text_sha256,
            second_digest=second.text_sha256,
            similarity=0.98,
            basis="evidence:caller",
        )
        assert shape(pruning.current(None)) == []
        for verdict, planned in (("keep_both", 0), ("not_a_contradiction", 1)):
            Contradiction.objects.filter(pk=row.pk).update(verdict=verdict)
            assert len(shape(pruning.make(pruning.scope(None)))) == planned


def turn(lesson: Lesson, space: EmbeddingSpace, angle: float) -> None:
    """Gives a lesson a vector in a plane, at an angle in radians."""
    values = np.zeros(space.dimension, dtype=np.float32)
    values[:2] = np.cos(angle), np.sin(angle)
    put(lesson, space, values)


@pytest.mark.django_db
class TestLargeScopes:
    @pytest.fixture(autouse=True)
    def small_limits(self, space) -> Any:
        """Searched through the index, two lessons a run, as a store of a million is, twenty thousand a run.

        The index is emptied: until a VACUUM it holds what other tests have rolled back.
        """
        execute("TRUNCATE lesson_embedding")
        with override_settings(SONDER_PRUNE_EXACT_LIMIT=0, SONDER_JOB_PROBES=2):
            yield

    def test_the_index_finds_what_comparing_all_finds(self, lesson, space) -> None:
        for n in range(6):
            pair(lesson, space, n)
        where = pruning.scope(None)
        by_index = {pair for found in pairs.near_pairs(where, 0.5) for pair in found.pairs}
        with override_settings(SONDER_PRUNE_EXACT_LIMIT=100):
            exact = {pair for found in pairs.near_pairs(where, 0.5) for pair in found.pairs}
        assert len(exact) == 6
        assert {replace(pair, cosine=round(pair.cosine, 3)) for pair in by_index} == {
            replace(pair, cosine=round(pair.cosine, 3)) for pair in exact
        }

    def test_a_run_goes_on_where_the_last_one_ended_and_keeps_what_it_found(self, lesson, space) -> None:
        made = []
        for n in range(3):
            made.append(
                place(lesson(f"Close each `cursor_{n}` before its connection goes to the pool."), space, 0.99, n)
            )
            made.append(place(lesson(f"Close `cursor_{n}` before the connection goes to its pool."), space, 0.98, n))
        where = pruning.scope(None)
        sizes = [len(pruning.make(where).clusters) for _ in range(3)]
        assert sizes == [1, 2, 3]
        Lesson.objects.filter(pk=made[0].pk).update(state="quarantined")
        assert len(pruning.make(where).clusters) == 2

    def test_a_new_lesson_is_looked_at_before_the_old_ones_again(self, lesson, space) -> None:
        for n in range(4):
            place(lesson(f"Close each `cursor_{n}` before its connection goes to the pool."), space, 0.99, n)
        where = pruning.scope(None)
        for _ in range(2):
            pruning.make(where)
        newest = place(lesson("Close `cursor_0` before the connection goes to its pool."), space, 0.98, 0)
        assert [newest.pk] in [members for _, members in shape(pruning.make(where))]

    def test_a_complete_search_needs_one_run(self, lesson, space) -> None:
        for n in range(5):
            pair(lesson, space, n)
        *steps, last = pruning.making(pruning.scope(None), complete=True)
        assert last.plan is not None
        assert len(last.plan.clusters) == 5
        assert [step.total for step in steps] == [10] * len(steps)


@pytest.mark.django_db
class TestApplying:
    def test_the_member_goes_and_its_value_stays_known(self, twins) -> None:
        kept, gone = twins
        (outcome,) = apply_current(actor="api_key:abc")
        assert (outcome.keeper, outcome.pruned, outcome.skipped) == (kept.pk, (gone.pk,), {})
        assert list(Lesson.objects.all()) == [kept]
        buried = LessonTombstone.objects.get()
        assert (buried.reason, buried.source_lesson, buried.successor_lesson) == (
            "near_duplicate_pruned",
            gone.pk,
            kept.pk,
        )
        events = {event.lesson: event for event in TrustEvent.objects.all()}
        assert {pk: (event.kind, event.actor) for pk, event in events.items()} == {
            gone.pk: ("pruned", "api_key:abc"),
            kept.pk: ("merged", "api_key:abc"),
        }
        assert (events[gone.pk].evidence["keeper"], events[kept.pk].evidence["lesson"]) == (str(kept.pk), str(gone.pk))

    def test_every_row_of_evidence_is_the_keepers_now(self, twins, judge) -> None:
        kept, gone = twins
        judge("one", "accepted", kept)
        judge("two", "rejected", gone)
        judge("three", "tests_passed", gone, source="machine")
        judge("four", "failed", withheld=(gone,))
        judge("five", "accepted", kept)
        before = LessonUsage.objects.count()
        apply_current()
        assert LessonUsage.objects.count() == before == LessonUsage.objects.filter(lesson=kept).count()
        assert evidence(kept.pk) == {"caller": (3, 1, 1.1), "machine": (1, 0, 1.0)}
        assert differences() == []
        standing = LessonStanding.objects.get(lesson=kept)
        assert (standing.wins, standing.losses) == (3, 1)

    def test_an_interaction_that_had_both_counts_once(self, twins, judge) -> None:
        kept, gone = twins
        for task in ("both", "both again"):
            judge(task, "accepted", kept, gone)
        judge("the one", "accepted", kept)
        judge("the other", "accepted", gone)
        apply_current()
        assert evidence(kept.pk) == {"caller": (4, 0, 3.2)}
        assert differences() == []

    @pytest.mark.parametrize(
        ("of_keeper", "of_member", "counts"),
        [
            ("served", WITHHELD, "served"),
            (WITHHELD, "served", "served"),
            (TRIAL, "probation", "probation"),
            (WITHHELD, TRIAL, WITHHELD),
            ("probation", "served", "probation"),
        ],
    )
    def test_what_was_handed_out_beats_what_was_withheld(self, twins, judge, of_keeper, of_member, counts) -> None:
        kept, gone = twins
        judge("make it the keeper", "accepted", kept)
        judge("make it the keeper again", "accepted", kept)
        work = judge("both", "accepted", kept, gone)
        LessonUsage.objects.filter(interaction=work, lesson=kept).update(exposure=of_keeper)
        LessonUsage.objects.filter(interaction=work, lesson=gone).update(exposure=of_member)
        merging.rebuild([kept.pk, gone.pk])
        assert differences() == []
        apply_current()
        row = LessonUsage.objects.get(interaction=work)
        assert (row.lesson_id, row.exposure) == (kept.pk, counts)
        assert differences() == []

    def test_a_cohort_of_both_is_one_smaller_and_the_others_in_it_are_judged_anew(self, twins, judge, lesson) -> None:
        other = lesson(OTHER)
        judge("both", "failed", *twins, other)
        before = LessonStanding.objects.get(lesson=other).version
        apply_current()
        assert LessonStanding.objects.get(lesson=other).version == before + 1
        assert differences() == []

    def test_losses_that_were_spread_over_two_wordings_quarantine_the_one_that_is_left(self, twins, judge) -> None:
        kept, gone = twins
        for n in range(3):
            judge(f"task {n}", "failed", kept)
            judge(f"task {n + 3}", "failed", gone)
        assert {state_of(twin.pk) for twin in twins} == {"active"}
        apply_current()
        assert state_of(kept.pk) == "quarantined"
        assert sorted(LessonTombstone.objects.values_list("reason", flat=True)) == [
            "near_duplicate_pruned",
            "quarantined",
        ]

    def test_what_both_had_replaced_the_keeper_replaces(self, twins, lesson, operator) -> None:
        kept, gone = twins
        old = lesson(OTHER)
        rejection.reject(old.pk, reviewer=operator.pk, reason="wrong", successor=gone.pk)
        apply_current()
        assert LessonTombstone.objects.get(source_lesson=old.pk).successor_lesson == kept.pk

    def test_questions_about_what_is_gone_are_withdrawn(self, twins) -> None:
        ReviewItem.objects.create(kind="near_duplicate", subject=twins[1].pk, priority=1, status="open")
        apply_current()
        assert ReviewItem.objects.get().status == "obsolete"

    def test_applying_twice_is_applying_once(self, twins) -> None:
        digest = pruning.current(None).digest
        first = applying.apply(None, digest)
        events = TrustEvent.objects.count()
        assert applying.apply(None, digest) == first
        assert TrustEvent.objects.count() == events
        assert PrunePlan.objects.get(digest=digest).applied_at is not None

    def test_a_plan_that_was_applied_is_followed_by_another(self, twins) -> None:
        first = pruning.current(None)
        applying.apply(None, first.digest)
        second = pruning.current(None)
        assert (second.digest != first.digest, shape(second)) == (True, [])

    def test_an_unknown_digest_is_not_found(self, space) -> None:
        with pytest.raises(NotFound, match="no plan"):
            applying.apply(None, "0" * 64)

    def test_an_interrupted_plan_goes_on(self, lesson, space) -> None:
        for n in range(3):
            pair(lesson, space, n)
        digest = pruning.current(None).digest
        first = next(applying.applying(None, digest))
        assert Lesson.objects.count() == 5
        outcomes = applying.apply(None, digest)
        assert (outcomes[0], Lesson.objects.count()) == (first, 3)
        assert [len(outcome.pruned) for outcome in outcomes] == [1, 1, 1]


@pytest.mark.django_db
class TestAStoreThatMoved:
    @pytest.mark.parametrize("state", ["quarantined", "rejected", "superseded", "candidate"])
    @pytest.mark.parametrize("which", [0, 1])
    def test_a_lesson_whose_state_changed_refuses_the_plan(self, twins, state, which) -> None:
        digest = pruning.current(None).digest
        Lesson.objects.filter(pk=twins[which].pk).update(state=state)
        with pytest.raises(Conflict, match="has moved") as refused:
            applying.apply(None, digest)
        assert refused.value.errors == {"digest": [f"{twins[which].pk}: not_active"]}
        assert Lesson.objects.count() == 2

    def test_a_lesson_that_is_gone_refuses_the_plan(self, twins) -> None:
        digest = pruning.current(None).digest
        twins[1].lessonembedding_set.all().delete()
        twins[1].delete()
        with pytest.raises(Conflict, match="has moved"):
            applying.apply(None, digest)

    def test_evidence_that_would_keep_another_refuses_the_plan(self, twins, judge) -> None:
        digest = pruning.current(None).digest
        judge("task", "accepted", twins[1])
        with pytest.raises(Conflict) as refused:
            applying.apply(None, digest)
        assert refused.value.errors == {"digest": [f"{twins[0].pk}: another_keeper"]}

    def test_evidence_that_changes_nothing_does_not(self, twins, judge) -> None:
        digest = pruning.current(None).digest
        judge("task", "accepted", twins[0])
        assert applying.apply(None, digest)[0].pruned == (twins[1].pk,)

    def test_another_threshold_refuses_the_plan(self, twins, space) -> None:
        digest = pruning.current(None).digest
        EmbeddingSpace.objects.filter(pk=space.pk).update(prune_similarity=0.999)
        try:
            with pytest.raises(Conflict, match="threshold"):
                applying.apply(None, digest)
            assert shape(pruning.current(None)) == []
        finally:
            EmbeddingSpace.objects.filter(pk=space.pk).update(prune_similarity=space.prune_similarity)

    def test_a_cluster_that_changes_while_the_plan_is_applied_is_skipped_and_the_others_are_not(
        self, lesson, space
    ) -> None:
        for n in range(3):
            pair(lesson, space, n)
        plan = pruning.current(None)
        order = [members[0] for _, members in shape(plan)]
        steps = applying.applying(None, plan.digest)
        next(steps)
        Lesson.objects.filter(pk=order[1]).update(state="quarantined")
        second, third = steps
        assert (second.pruned, second.skipped) == ((), {order[1]: "not_active"})
        assert third.pruned == (order[2],)
        assert state_of(order[1]) == "quarantined"


@pytest.mark.django_db
class TestWhatAPersonSays:
    def test_what_is_excluded_is_kept_and_not_proposed_again(self, lesson, space) -> None:
        kept, gone, excluded = (place(lesson(text), space, 0.99) for text in (THREE, TWO, ONE))
        plan = pruning.current(None)
        assert shape(plan)[0][0] == kept.pk
        (outcome,) = applying.apply(None, plan.digest, exclude=[Exclusion(lesson=excluded.pk, reason="says more")])
        assert (outcome.pruned, outcome.excluded) == ((gone.pk,), (excluded.pk,))
        assert set(Lesson.objects.all()) == {kept, excluded}
        assert shape(pruning.current(None)) == []
        row = Contradiction.objects.get()
        assert (row.verdict, row.basis, {row.first, row.second}) == (
            "keep_both",
            "near_duplicate",
            {kept.pk, excluded.pk},
        )

    def test_excluding_the_keeper_keeps_the_whole_cluster(self, twins) -> None:
        exclude = [Exclusion(lesson=twins[0].pk, reason="both are needed")]
        (outcome,) = apply_current(exclude=exclude)
        assert (outcome.pruned, Lesson.objects.count()) == ((), 2)
        assert shape(pruning.current(None)) == []

    def test_excluding_what_is_not_in_the_plan_or_without_a_reason_is_invalid(self, twins, lesson) -> None:
        digest = pruning.current(None).digest
        stranger = lesson(OTHER)
        for exclusion in (Exclusion(lesson=stranger.pk, reason="why"), Exclusion(lesson=twins[0].pk, reason=" ")):
            with pytest.raises(Invalid) as refused:
                applying.apply(None, digest, exclude=[exclusion])
            assert list(refused.value.errors) == ["exclude"]
        assert Lesson.objects.count() == 3

    def test_a_row_that_a_person_exempted_moves_with_its_exemption(self, twins, judge, operator) -> None:
        kept, gone = twins
        judge("make it the keeper", "accepted", kept)
        judge("make it the keeper again", "accepted", kept)
        work = judge("both", "failed", kept, gone)
        row = LessonUsage.objects.get(interaction=work, lesson=gone)
        UsageExemption.objects.create(usage=row, reviewer=operator, reason="the network was down")
        apply_current()
        assert LessonUsage.objects.get(interaction=work).pk == row.pk
        assert UsageExemption.objects.get().usage.lesson_id == kept.pk
        assert differences() == []

    def test_where_a_persons_word_stands_on_both_rows_nothing_is_merged(self, lesson, space, judge, operator) -> None:
        kept, first, second = (place(lesson(text), space, 0.99) for text in (THREE, TWO, ONE))
        judge("make it the keeper", "accepted", kept)
        work = judge("both", "failed", kept, second)
        for row in LessonUsage.objects.filter(interaction=work):
            UsageExemption.objects.create(usage=row, reviewer=operator, reason="the network was down")
        (outcome,) = apply_current()
        assert (outcome.pruned, outcome.skipped) == ((), {second.pk: "exempted"})
        assert set(Lesson.objects.all()) == {kept, first, second}
        assert not LessonTombstone.objects.exists()
        assert not PruneArchive.objects.exists()
        assert differences() == []


@pytest.mark.django_db
class TestUndoing:
    def test_a_maintainer_brings_the_lesson_its_rows_and_its_standing_back(self, twins, judge, maintainer) -> None:
        kept, gone = twins
        judge("one", "accepted", kept)
        judge("two", "rejected", gone)
        judge("both", "tests_passed", kept, gone)
        judge("held", "failed", withheld=(gone,))
        columns = [f.attname for f in Lesson._meta.concrete_fields if f.attname not in ("search",)]
        before = Lesson.objects.filter(pk=gone.pk).values(*columns).get()
        rows = {twin.pk: usage_of(twin.pk) for twin in twins}
        figures = {twin.pk: evidence(twin.pk) for twin in twins}
        digest = pruning.current(None).digest
        applying.apply(None, digest)
        assert applying.restore(None, digest, reviewer=maintainer) == [gone.pk]
        assert Lesson.objects.filter(pk=gone.pk).values(*columns).get() == before
        assert {twin.pk: usage_of(twin.pk) for twin in twins} == rows
        assert {twin.pk: evidence(twin.pk) for twin in twins} == figures
        assert differences() == []
        assert not LessonTombstone.objects.exists()
        event = TrustEvent.objects.filter(lesson=gone.pk).latest("id")
        assert (event.kind, event.actor) == ("restored_by_reviewer", f"user:{maintainer}")
        assert gone.lessonembedding_set.count() == 1
        list(rebuild_standings())

    @pytest.mark.parametrize(("of_keeper", "of_member"), [(WITHHELD, "served"), ("served", WITHHELD)])
    def test_a_row_that_did_not_count_comes_back_too(self, twins, judge, maintainer, of_keeper, of_member) -> None:
        kept, gone = twins
        for n in range(2):
            judge(f"make it the keeper {n}", "accepted", kept)
        work = judge("both", "accepted", kept, gone)
        LessonUsage.objects.filter(interaction=work, lesson=kept).update(exposure=of_keeper)
        LessonUsage.objects.filter(interaction=work, lesson=gone).update(exposure=of_member)
        merging.rebuild([kept.pk, gone.pk])
        rows = {twin.pk: usage_of(twin.pk) for twin in twins}
        digest = pruning.current(None).digest
        applying.apply(None, digest)
        applying.restore(None, digest, reviewer=maintainer)
        assert {twin.pk: usage_of(twin.pk) for twin in twins} == rows
        assert differences() == []

    def test_what_was_corrected_since_comes_back_corrected(self, twins, judge, maintainer, account) -> None:
        kept, gone = twins
        judge("make it the keeper", "accepted", kept)
        work = judge("both", "accepted", kept, gone)
        digest = pruning.current(None).digest
        applying.apply(None, digest)
        say(make_callers(account)["caller"], work.pk, "failed")
        sweep()
        applying.restore(None, digest, reviewer=maintainer)
        assert set(LessonUsage.objects.filter(interaction=work).values_list("lesson_id", "outcome_signal")) == {
            (kept.pk, "failed"),
            (gone.pk, "failed"),
        }
        assert differences() == []

    def test_what_was_judged_only_since_is_judged_for_both(self, twins, maintainer, account) -> None:
        kept, gone = twins
        callers = make_callers(account)
        work = serve(account, "both", [kept, gone])
        digest = pruning.current(None).digest
        applying.apply(None, digest)
        say(callers["caller"], work.pk, "accepted")
        sweep()
        applying.restore(None, digest, reviewer=maintainer)
        assert evidence(gone.pk) == evidence(kept.pk) == {"caller": (1, 0, 0.8)}
        assert differences() == []

    def test_what_was_restored_is_not_planned_again(self, twins, maintainer) -> None:
        digest = pruning.current(None).digest
        applying.apply(None, digest)
        applying.restore(None, digest, reviewer=maintainer)
        assert shape(pruning.current(None)) == []
        assert Contradiction.objects.get().decided_by_id == maintainer

    def test_once_is_enough_and_not_after_the_archive_has_expired(self, twins, maintainer) -> None:
        digest = pruning.current(None).digest
        applying.apply(None, digest)
        PruneArchive.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        with pytest.raises(Conflict, match="nothing to undo"):
            applying.restore(None, digest, reviewer=maintainer)
        PruneArchive.objects.update(expires_at=timezone.now() + timedelta(days=1))
        applying.restore(None, digest, reviewer=maintainer)
        with pytest.raises(Conflict, match="nothing to undo"):
            applying.restore(None, digest, reviewer=maintainer)

    def test_the_archive_keeps_what_went_for_30_days(self, twins) -> None:
        apply_current()
        expiries = PruneArchive.objects.values_list("expires_at", flat=True)
        assert all(abs(at - timezone.now() - timedelta(days=30)) < timedelta(minutes=5) for at in expiries)
        assert pruning.forget_old() == {"expired_archive": 0, "expired_plans": 0}
        kept = PruneArchive.objects.count()
        PruneArchive.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        assert pruning.forget_old() == {"expired_archive": kept, "expired_plans": 0}

    def test_a_later_plan_is_undone_first(self, lesson, space, judge, maintainer) -> None:
        one, two = (place(lesson(text), space, 0.99) for text in (ONE, TWO))
        first = pruning.current(None).digest
        applying.apply(None, first)
        three = place(lesson(THREE), space, 0.99)
        judge("make it the keeper", "accepted", three)
        second = pruning.current(None).digest
        applying.apply(None, second)
        assert list(Lesson.objects.all()) == [three]
        with pytest.raises(Conflict, match=f"Undo {second} first"):
            applying.restore(None, first, reviewer=maintainer)
        applying.restore(None, second, reviewer=maintainer)
        applying.restore(None, first, reviewer=maintainer)
        assert set(Lesson.objects.all()) == {one, two, three}

    @pytest.mark.parametrize("role", ["viewer", "judge", "reviewer", None])
    def test_nobody_else_may(self, twins, account, role) -> None:
        user = get_user_model().objects.create_user("rob")
        if role:
            Membership.objects.create(account=account, user=user, role=role)
        digest = pruning.current(None).digest
        applying.apply(None, digest)
        with pytest.raises(Forbidden):
            applying.restore(None, digest, reviewer=user.pk)
        assert Lesson.objects.count() == 1

    def test_another_accounts_maintainer_may_not(self, lesson, space, account, rival_account) -> None:
        for text in (ONE, TWO):
            place(lesson(text, account_id=account.pk), space, 0.99)
        user = get_user_model().objects.create_user("rob")
        Membership.objects.create(account=rival_account, user=user, role="maintainer")
        digest = pruning.current(account.pk).digest
        applying.apply(account.pk, digest)
        with pytest.raises(Forbidden):
            applying.restore(account.pk, digest, reviewer=user.pk)


def usage_of(lesson: UUID) -> list[dict[str, Any]]:
    return [dict(row) for row in LessonUsage.objects.filter(lesson=lesson).order_by("pk").values()]


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_two_appliers_apply_it_once(self, lesson, space) -> None:
        for n in range(6):
            pair(lesson, space, n)
        digest = pruning.current(None).digest
        results, failures = in_threads(lambda: applying.apply(None, digest), 2)
        assert failures == []
        one, other = ({lesson for outcome in outcomes for lesson in outcome.pruned} for outcomes in results)
        assert (len(one), one) == (6, other)
        assert Lesson.objects.count() == LessonTombstone.objects.count() == 6
        assert TrustEvent.objects.filter(kind="pruned").count() == 6
        assert PruneArchive.objects.filter(kind="lesson").count() == 6

    def test_credits_beside_an_applier_are_neither_lost_nor_counted_twice(self, lesson, space, account) -> None:
        rng = random.Random(5)
        callers = make_callers(account)
        for n in range(4):
            pair(lesson, space, n)
        everything = list(Lesson.objects.all())
        works = [serve(account, f"task {n % 5}", *random_cohort(rng, everything)).pk for n in range(40)]
        had = set(LessonUsage.objects.values_list("interaction_id", flat=True))
        digest = pruning.make(pruning.scope(None)).digest

        def work() -> None:
            own = random.Random(threading.get_ident())
            for _ in range(15):
                say(callers[own.choice(["caller", "machine"])], own.choice(works), own.choice(["accepted", "failed"]))
                sweep(limit=5)

        def prune() -> Any:
            try:
                return applying.apply(None, digest)
            except Conflict as moved:  # evidence may have made another one the keeper before the first cluster
                return moved

        _, failures = in_threads(prune, 1, work, 3)
        assert failures == []
        while sweep():
            pass
        assert differences() == []
        shown = set(LessonUsage.objects.values_list("interaction_id", flat=True))
        assert shown == had, "no interaction lost its last row"

    @pytest.mark.parametrize("moment", ["find", "_journal_first_probations"])
    def test_a_lesson_that_goes_while_it_is_handed_out_fails_nobody(
        self, twins, space, account, monkeypatch, moment
    ) -> None:
        """Found and not yet recorded, or recorded and not yet committed: the interaction keeps what is still there."""
        kept, _ = twins
        caller = make_callers(account)["caller"]
        digest = pruning.current(None).digest
        reached, go_on = threading.Event(), threading.Event()
        real = getattr(retrieval, moment)

        def slowly(*args: Any, **kwargs: Any) -> Any:
            found = real(*args, **kwargs)
            reached.set()
            go_on.wait(1)
            return found

        monkeypatch.setattr(retrieval, moment, slowly)
        task = "close the cursor before the connection goes back to the pool"
        query = EmbeddedQuery(text=task, space=space, vector=vector(1.0, space.dimension))

        def prune() -> Any:
            reached.wait(10)
            try:
                return applying.apply(None, digest)
            finally:
                go_on.set()

        _, failures = in_threads(lambda: interactions.start(caller, interactions.Start(task=task), query), 1, prune, 1)
        assert failures == []
        assert set(Lesson.objects.all()) == {kept}
        assert set(LessonUsage.objects.values_list("lesson_id", flat=True)) == {kept.pk}
        assert differences() == []


def in_threads(
    first: Callable[[], Any], n: int, second: Callable[[], Any] | None = None, m: int = 0
) -> tuple[list[Any], list[BaseException]]:
    """Runs them at the same time; what they returned and what they raised."""
    results: list[Any] = []
    failures: list[BaseException] = []
    barrier = threading.Barrier(n + m)

    def run(do: Callable[[], Any]) -> None:
        try:
            barrier.wait()
            results.append(do())
        except BaseException as error:  # noqa: BLE001 - a thread's failure must reach the test
            failures.append(error)
        finally:
            connection.close()

    jobs = [first] * n + ([second] * m if second else [])
    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads)
    return results, failures


@pytest.mark.django_db
class TestTheCommand:
    def run(self, *options: str) -> str:
        out = StringIO()
        call_command("prune", *options, stdout=out)
        return out.getvalue()

    def test_it_tells_what_would_be_merged_and_changes_nothing(self, twins) -> None:
        told = self.run()
        assert told.startswith("1 lessons would be merged into 1. Nothing was changed")
        assert all(text in told for text in (ONE, TWO))
        assert Lesson.objects.count() == 2

    def test_with_apply_it_merges(self, twins) -> None:
        assert self.run("--apply") == "1 lessons were merged into 1.\n"
        assert list(Lesson.objects.all()) == [twins[0]]
        assert set(TrustEvent.objects.values_list("actor", flat=True)) == {"system"}

    def test_as_json_it_tells_the_plan_and_what_became_of_it(self, twins) -> None:
        dry, applied = json.loads(self.run("--json")), json.loads(self.run("--json", "--apply"))
        assert (dry["applied"], dry["outcomes"], applied["applied"]) == (False, [], True)
        assert dry["digest"] == applied["digest"]
        assert applied["outcomes"][0]["pruned"] == [str(twins[1].pk)]
        assert json.loads(self.run("--json", "--apply"))["clusters"] == []

    def test_it_takes_an_account_where_lessons_belong_to_one_and_only_there(self, twins, account) -> None:
        with pytest.raises(CommandError, match="Leave --account out"):
            self.run("--account", "acme")
        with override_settings(SONDER_LESSON_SCOPE="account"):
            with pytest.raises(CommandError, match="say whose"):
                self.run()
            with pytest.raises(CommandError, match="no account 'nobody'"):
                self.run("--account", "nobody")
            assert self.run("--account", "acme").startswith("0 lessons")

    def test_without_a_model_it_says_what_to_do(self, space) -> None:
        EmbeddingSpace.objects.update(is_active=False)
        try:
            with pytest.raises(CommandError, match="reembed"):
                self.run()
        finally:
            EmbeddingSpace.objects.filter(pk=space.pk).update(is_active=True)


@pytest.mark.django_db
class TestTheJob:
    def test_it_plans_and_merges_nothing(self, twins) -> None:
        maintenance_prune_plan()
        run = JobRun.objects.get(job="prune_plan")
        assert (run.outcome, run.figures["plans"], run.figures["clusters"], run.figures["lessons"]) == ("done", 1, 1, 1)
        assert Lesson.objects.count() == 2
        assert pruning.current(None) == PrunePlan.objects.get()

    def test_each_account_has_a_plan_of_its_own(self, lesson, space, account, rival_account) -> None:
        for own in (account, rival_account):
            for text in (ONE, TWO):
                place(lesson(text, account_id=own.pk), space, 0.99)
        maintenance_prune_plan()
        assert JobRun.objects.get().figures["plans"] == 2
        assert {plan.states["account"] for plan in PrunePlan.objects.all()} == {str(account.pk), str(rival_account.pk)}

    def test_it_gives_tombstones_the_vectors_that_they_lack_and_forgets_what_is_too_old(self, twins, lesson) -> None:
        old = lesson(OTHER)
        vectors = list(old.lessonembedding_set.all())
        old.lessonembedding_set.all().delete()
        tombstone.write(old.pk, TombstoneReason.REJECTED_BY_REVIEWER)
        old.lessonembedding_set.create(space=vectors[0].space, embedding=vectors[0].embedding)
        PrunePlan.objects.create(digest="0" * 64, clusters=[], states={})
        PrunePlan.objects.update(created_at=timezone.now() - timedelta(days=31))
        maintenance_prune_plan()
        figures = JobRun.objects.get().figures
        assert (figures["tombstones_embedded"], figures["expired_plans"]) == (1, 1)

    def test_without_a_model_it_says_so_and_does_not_fail(self, space) -> None:
        EmbeddingSpace.objects.update(is_active=False)
        try:
            maintenance_prune_plan()
        finally:
            EmbeddingSpace.objects.filter(pk=space.pk).update(is_active=True)
        run = JobRun.objects.get()
        assert (run.outcome, "reembed" in run.figures["unavailable"]) == ("done", True)
