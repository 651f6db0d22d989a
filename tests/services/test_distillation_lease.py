"""Workers on connections of their own: one holds a distillation, and whoever lost it writes nothing."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.utils import timezone

from memory.embedding.active import provider
from memory.models import Account, Lesson, LessonDistillation, LessonEmbedding, ReviewItem, WriteRefusal
from memory.models.sql import fetch
from memory.models.vocabulary import DistillationReason, TombstoneReason
from memory.services import distillation_lease as lease
from memory.services import distilling, tombstone
from memory.services.distillation_lease import Claim, LeaseLost
from memory.services.leases import owner
from memory.services.lesson import flag
from memory.services.scoping import lock_scope
from tests.distillers.server import LESSON, Server
from tests.distillers.server import lesson as answer
from tests.services.workshop import expire_lease, good_work, judge, model, outcome_of, put_into, row

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server() -> Iterator[Server]:
    with model() as running:
        yield running


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """Runs each in a thread with a connection of its own, all started together; their results in order."""
    gate = threading.Barrier(len(works))

    def run(work: Callable[[], Any]) -> Any:
        try:
            gate.wait(timeout=10)
            return work()
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=len(works)) as pool:
        return list(pool.map(run, works))


def meanwhile(work: Callable[[], object]) -> Callable[[object], None]:
    """Does it while the model is being asked, on the server's own connection."""

    def act(_: object) -> None:
        try:
            work()
        finally:
            connection.close()

    return act


def taken(account: Account) -> Claim:
    claim = lease.claim(good_work(account), owner("t"))
    assert claim is not None
    return claim


def assert_nothing_written() -> None:
    for table in (Lesson, LessonEmbedding, ReviewItem, WriteRefusal):
        assert not table.objects.exists(), table


class TestClaim:
    @pytest.mark.parametrize("state", ["pending", "retryable", "expired"])
    def test_of_workers_that_come_at_once_exactly_one_gets_it(self, account: Account, state: str) -> None:
        interaction = good_work(account)
        if state == "expired":
            put_into(interaction, "claimed", attempts=1)
            expire_lease(interaction)
        else:
            put_into(interaction, state, attempts=1)
        claims = at_once(*[lambda: lease.claim(interaction, owner("t"))] * 6)
        (winner,) = [claim for claim in claims if claim]
        found = row(interaction)
        assert (found.state, found.claim_token, found.attempts) == ("claimed", winner.token, 2)
        assert (winner.signal, winner.attempt) == ("accepted", 2)

    @pytest.mark.parametrize("state", ["claimed", "stored", "no_lesson", "cancelled", "failed"])
    def test_what_is_held_or_closed_nobody_gets(self, account: Account, state: str) -> None:
        interaction = good_work(account)
        put_into(interaction, state)
        assert lease.claim(interaction, "x") is None

    def test_what_has_no_attempt_left_nobody_gets(self, account: Account) -> None:
        interaction = good_work(account)
        put_into(interaction, "retryable", attempts=5)
        assert lease.claim(interaction, "x") is None
        put_into(interaction, "retryable", attempts=4)
        assert lease.claim(interaction, "x") is not None

    def test_a_claim_says_who_holds_it_and_for_how_long(self, account: Account) -> None:
        claim = taken(account)
        found = row(claim.interaction)
        assert found.owner is not None
        assert found.owner.split(":")[-1] == "t"
        assert found.claimed_at is not None
        assert found.lease_expires_at is not None
        assert (found.lease_expires_at - found.claimed_at).total_seconds() == pytest.approx(300, abs=1)

    def test_an_owner_of_any_length_fits(self, account: Account) -> None:
        assert lease.claim(good_work(account), owner("t" * 500)) is not None


class TestFencing:
    VERBS: tuple[Callable[[Claim], object], ...] = (
        lease.renew,
        lambda claim: lease.finish(claim, DistillationReason.NO_CANDIDATE),
        lambda claim: lease.give_back(claim, "It did not answer.", DistillationReason.ATTEMPTS_EXHAUSTED),
    )

    @pytest.mark.parametrize("verb", VERBS)
    def test_whose_claim_went_to_another_moves_nothing(self, account: Account, verb: Callable[[Claim], object]) -> None:
        old = taken(account)
        expire_lease(old.interaction)
        new = lease.claim(old.interaction, "another")
        assert new is not None
        before = row(old.interaction)
        with pytest.raises(LeaseLost):
            verb(old)
        after = row(old.interaction)
        assert [getattr(after, f.attname) for f in after._meta.fields] == [
            getattr(before, f.attname) for f in before._meta.fields
        ]
        verb(new)

    @pytest.mark.parametrize("verb", VERBS)
    def test_whose_row_was_cancelled_or_erased_moves_nothing(
        self, account: Account, verb: Callable[[Claim], object]
    ) -> None:
        cancelled, erased = taken(account), taken(account)
        judge(account, cancelled.interaction, "caller:rejected")
        LessonDistillation.objects.filter(pk=erased.interaction).delete()
        for claim in (cancelled, erased):
            with pytest.raises(LeaseLost):
                verb(claim)
        assert outcome_of(cancelled.interaction) == ("cancelled", "contradicted")

    @pytest.mark.parametrize("verb", VERBS)
    def test_whose_lease_has_run_out_still_holds_it_until_another_comes(
        self, account: Account, verb: Callable[[Claim], object]
    ) -> None:
        claim = taken(account)
        expire_lease(claim.interaction)
        verb(claim)


class TestWork:
    def test_two_workers_at_one_interaction_ask_once_and_store_once(self, account: Account, server: Server) -> None:
        interaction = good_work(account)
        results = at_once(*[lambda: distilling.distill(interaction)] * 2)
        assert sorted(map(str, results)) == ["None", "stored"]
        assert len(server.requests) == 1
        assert Lesson.objects.count() == 1

    @pytest.mark.parametrize(
        ("second", "reason"),
        [(LESSON, "exact_duplicate"), (f"Always {LESSON[0].lower()}{LESSON[1:]}", "semantic_duplicate")],
    )
    def test_of_two_that_learn_the_same_at_once_one_is_stored(
        self, account: Account, server: Server, second: str, reason: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Both have passed every gate before the lock: only the look under it can tell."""
        first, other = good_work(account, task="the first"), good_work(account, task="the other")
        server.before = lambda request: answer(LESSON if "the first" in str(request["messages"]) else second)
        together = threading.Barrier(2)

        def lock(scope: UUID | None) -> None:
            together.wait(timeout=10)
            lock_scope(scope)

        monkeypatch.setattr("memory.services.lesson.lock_scope", lock)
        at_once(lambda: distilling.distill(first), lambda: distilling.distill(other))
        assert sorted(str(row(i).result_reason) for i in (first, other)) == [reason, "stored"]
        assert Lesson.objects.count() == 1

    def test_while_the_model_is_asked_no_transaction_is_open(self, account: Account, server: Server) -> None:
        interaction = good_work(account)
        open_ones: list[object] = []

        def look() -> None:
            open_ones.extend(
                fetch(
                    "SELECT state, query FROM pg_stat_activity WHERE datname = current_database() "
                    "AND xact_start IS NOT NULL AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
                )
            )

        server.before = meanwhile(look)
        distilling.distill(interaction)
        assert open_ones == []
        assert row(interaction).state == "stored"

    def test_a_worker_whose_lease_another_took_while_it_asked_writes_nothing(
        self, account: Account, server: Server
    ) -> None:
        interaction = good_work(account)
        others: list[Claim | None] = []

        def take() -> None:
            expire_lease(interaction)
            others.append(lease.claim(interaction, "another"))

        server.before = meanwhile(take)
        assert distilling.distill(interaction) is None
        assert_nothing_written()
        (other,) = others
        assert other is not None
        assert (row(interaction).state, row(interaction).claim_token) == ("claimed", other.token)

    def test_a_worker_that_was_killed_is_followed_by_another(self, account: Account, server: Server) -> None:
        interaction = good_work(account)
        dead = lease.claim(interaction, "dead")
        assert dead is not None
        assert distilling.sweep() == 0
        expire_lease(interaction)
        assert distilling.sweep() == 1
        assert (row(interaction).state, row(interaction).attempts) == ("stored", 2)
        with pytest.raises(LeaseLost), transaction.atomic():
            lease.finish(dead, DistillationReason.NO_CANDIDATE)
        assert row(interaction).state == "stored"

    @pytest.mark.parametrize("proposed", [LESSON, "Always be careful.", None])
    def test_work_that_is_contradicted_while_the_model_is_asked_leaves_nothing(
        self, account: Account, server: Server, proposed: str | None
    ) -> None:
        interaction = good_work(account)
        server.answer = answer(proposed)
        server.before = meanwhile(lambda: judge(account, interaction, "machine:failed"))
        assert distilling.distill(interaction) is None
        assert outcome_of(interaction) == ("cancelled", "contradicted")
        assert_nothing_written()

    def test_work_that_is_contradicted_and_approved_again_meanwhile_is_distilled_once_by_the_next_worker(
        self, account: Account, server: Server
    ) -> None:
        interaction = good_work(account)
        server.before = meanwhile(lambda: judge(account, interaction, "caller:rejected", "caller:used"))
        assert distilling.distill(interaction) is None
        assert outcome_of(interaction) == ("pending", None)
        assert_nothing_written()
        server.before = lambda request: None
        assert distilling.sweep() == 1
        assert outcome_of(interaction) == ("stored", "stored")
        assert (row(interaction).attempts, Lesson.objects.count()) == (1, 1)

    def test_work_that_is_contradicted_at_the_last_moment_leaves_nothing(
        self, account: Account, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The lesson is inserted already; only the row count of the last statement can tell."""
        interaction = good_work(account)

        def contradict(*about: Any) -> None:
            flag(*about)
            at_once(lambda: judge(account, interaction, "caller:rejected"))

        monkeypatch.setattr("memory.services.distilling.flag", contradict)
        assert distilling.distill(interaction) is None
        assert outcome_of(interaction) == ("cancelled", "contradicted")
        assert_nothing_written()

    def test_a_value_that_is_rejected_while_the_model_is_asked_stays_out(
        self, account: Account, server: Server, lesson: Callable[..., Lesson]
    ) -> None:
        interaction, bad = good_work(account), lesson(LESSON)
        server.before = meanwhile(lambda: tombstone.write(bad.pk, TombstoneReason.REJECTED_BY_REVIEWER))
        distilling.distill(interaction)
        assert outcome_of(interaction) == ("no_lesson", "rejected_value")

    def test_each_step_renews_the_lease(
        self, account: Account, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        interaction = good_work(account)
        server.before = meanwhile(lambda: expire_lease(interaction))
        whole, left = provider().embed, []

        def embed(_: object, texts: list[str]) -> Any:
            expires = row(interaction).lease_expires_at
            left.append((expires - timezone.now()).total_seconds() if expires else None)
            return whole(texts)

        monkeypatch.setattr(type(provider()), "embed", embed)
        assert distilling.distill(interaction) == "stored"
        assert left == [pytest.approx(300, abs=5)]
