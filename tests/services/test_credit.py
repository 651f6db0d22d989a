"""Credit is the same whatever the order, the repetitions and the corrections; the sums have no residue."""

import random
import threading
from decimal import Decimal
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.models import (
    Account,
    Credit,
    EmbeddingSpace,
    Lesson,
    LessonPairSum,
    LessonSourceSum,
    LessonStanding,
    LessonSum,
    LessonTaskSum,
    LessonUsage,
    Outcome,
    SourceSum,
    TaskSum,
    TrustEvent,
    WithheldSum,
)
from memory.models.vocabulary import OutcomeSource
from memory.services import credit as crediting
from memory.services.caller import Caller
from memory.services.credit import credit, sweep
from memory.services.standing import differences, rebuild_standings, rebuild_sums
from tests.services.play import PRICED, make_callers, make_lessons, random_cohort, say, serve

SUMS = (SourceSum, TaskSum, LessonSum, LessonSourceSum, LessonTaskSum, LessonPairSum, WithheldSum)


@pytest.fixture
def callers(account: Account) -> dict[str, Caller]:
    return make_callers(account)


def credited_usage(interaction: UUID) -> list[tuple]:
    fields = ("lesson_id", "outcome_signal", "reward", "outcome_source", "weight", "expected_loss", "credit_seq")
    return sorted(LessonUsage.objects.filter(interaction_id=interaction).values_list(*fields))


def figures(model: type) -> list[tuple]:
    names = [f.attname for f in model._meta.fields if f.attname not in ("id", "evaluated_at", "version")]
    return sorted(map(str, model.objects.values_list(*names)))


@pytest.mark.django_db
class TestWhoDecides:
    def test_the_strongest_source_decides_and_within_it_the_latest_word(self, account, callers) -> None:
        (lesson,) = make_lessons(1)
        work = serve(account, "task", [lesson])
        say(callers["machine"], work.pk, "tests_passed")
        credit(work.pk)
        assert LessonUsage.objects.get().outcome_source == "machine"
        say(callers["caller"], work.pk, "accepted")
        say(callers["caller"], work.pk, "rejected")
        credit(work.pk)
        usage = LessonUsage.objects.get()
        assert (usage.outcome_source, usage.outcome_signal, usage.reward) == ("caller", "rejected", Decimal("-0.5"))

    def test_after_a_retraction_the_next_source_decides(self, account, callers) -> None:
        (lesson,) = make_lessons(1)
        work = serve(account, "task", [lesson])
        say(callers["machine"], work.pk, "tests_passed")
        say(callers["caller"], work.pk, "failed")
        credit(work.pk)
        say(callers["caller"], work.pk, "retracted")
        credit(work.pk)
        assert LessonUsage.objects.get().outcome_source == "machine"

    def test_after_every_retraction_nobody_does_and_the_row_keeps_its_place(self, account, callers) -> None:
        (lesson,) = make_lessons(1)
        work = serve(account, "task", [lesson])
        say(callers["caller"], work.pk, "failed")
        credit(work.pk)
        before = Credit.objects.get()
        say(callers["caller"], work.pk, "retracted")
        credit(work.pk)
        after = Credit.objects.get()
        assert (after.y, after.outcome_id) == (None, None)
        assert (after.b, after.credit_seq) == (before.b, before.credit_seq)
        assert LessonUsage.objects.get().reward is None
        for model in SUMS:
            assert not model.objects.exists(), model

    def test_an_interaction_without_lessons_is_credited_too(self, account, callers) -> None:
        work = serve(account, "task", [])
        say(callers["unknown"], work.pk, "failed")
        credit(work.pk)
        row = Credit.objects.get()
        assert (row.y, row.weight, row.credit_seq) == (1, 0, 1)
        assert (SourceSum.objects.get().n, SourceSum.objects.get().losses) == (1, 1)

    def test_the_baseline_is_read_before_the_interaction_is_added(self, account, callers) -> None:
        baselines = []
        for task in ("one", "two", "three"):
            work = serve(account, task, [])
            say(callers["caller"], work.pk, "failed")
            credit(work.pk)
            baselines.append(Credit.objects.get(pk=work.pk).b)
        assert baselines == [Decimal("0.2"), Decimal("0.272727272727"), Decimal("0.333333333333")]

    def test_outcomes_that_nobody_announced_are_found_by_the_sweep(self, account, callers) -> None:
        works = [serve(account, f"task {n}", []) for n in range(3)]
        for work in works:
            say(callers["caller"], work.pk, "used")
        assert Outcome.objects.filter(credited_at=None).count() == 3
        assert sweep() == 3
        assert (Outcome.objects.filter(credited_at=None).count(), sweep()) == (0, 0)

    def test_one_that_cannot_be_credited_does_not_keep_the_others_waiting(self, account, callers, monkeypatch) -> None:
        works = [serve(account, f"task {n}", []).pk for n in range(3)]
        for work in works:
            say(callers["caller"], work, "used")
        real = crediting.credit

        def broken(interaction_id: UUID) -> object:
            if interaction_id == works[0]:
                raise ValueError("broken")
            return real(interaction_id)

        monkeypatch.setattr(crediting, "credit", broken)
        with pytest.raises(ExceptionGroup, match="1 of 3") as raised:
            sweep()
        assert str(works[0]) in raised.value.exceptions[0].__notes__[0]
        assert Outcome.objects.filter(credited_at=None).count() == 1
        monkeypatch.undo()
        assert sweep() == 1


REPORTS = st.lists(
    st.tuples(st.sampled_from(OutcomeSource.values), st.sampled_from([*PRICED, "retracted"])), min_size=1, max_size=8
)


@pytest.mark.django_db
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(reports=REPORTS, seed=st.integers(0, 2**32))
def test_any_order_between_sources_and_any_crediting_end_in_the_same_credit(account, callers, reports, seed) -> None:
    rng = random.Random(seed)
    lessons = list(Lesson.objects.order_by("pk")[:3]) or make_lessons(3)
    straight, shuffled = (
        serve(account, "same task", lessons[:2], lessons[2:]),
        serve(account, "same task", lessons[:2], lessons[2:]),
    )
    for source, signal in reports:
        say(callers[source], straight.pk, signal)
    credit(straight.pk)
    queues = {source: [signal for own, signal in reports if own == source] for source in OutcomeSource.values}
    while waiting := [source for source, signals in queues.items() if signals]:
        source = rng.choice(waiting)
        say(callers[source], shuffled.pk, queues[source].pop(0))
        for _ in range(rng.choice((0, 0, 1, 2))):
            credit(shuffled.pk)
    credit(shuffled.pk)
    one, other = Credit.objects.filter(pk=straight.pk).first(), Credit.objects.filter(pk=shuffled.pk).first()
    if one is None or one.y is None:  # nobody's word stands
        assert other is None or other.y is None
    else:
        assert (one.source, one.y, one.weight) == (other.source, other.y, other.weight)
    decided = [(row[0], *row[1:5]) for row in credited_usage(straight.pk)]
    again = [(row[0], *row[1:5]) for row in credited_usage(shuffled.pk)]
    if one is not None and one.y is not None:
        assert decided == again
    assert differences() == []


# Each operation commits: thousands of updates of one row in a single transaction would be slow for no reason.
@pytest.mark.django_db(transaction=True)
def test_rebuilding_changes_nothing_after_5000_random_operations(account, callers) -> None:
    rng = random.Random(20260721)
    lessons = make_lessons(25)
    works: list[UUID] = []
    for _ in range(5000):
        if len(works) < 20 or rng.random() < 0.25:
            shown, held = random_cohort(rng, lessons)
            works.append(serve(account, f"task {rng.randint(1, 60)}", shown, held).pk)
        elif rng.random() < 0.75:
            recent = rng.choice(works[-40:] if rng.random() < 0.8 else works)
            say(callers[rng.choice(OutcomeSource.values)], recent, rng.choice([*PRICED, *["failed"] * 12, "retracted"]))
        else:
            sweep(limit=rng.randint(1, 30))
    while sweep():
        pass
    before = {model: figures(model) for model in (*SUMS, LessonStanding)}
    states = list(Lesson.objects.order_by("pk").values_list("pk", "state"))
    events = TrustEvent.objects.count()
    assert any(state == "quarantined" for _, state in states), "the play must have been rough enough"
    assert rebuild_sums() == []
    assert list(rebuild_standings())[-1] == LessonSourceSum.objects.values("lesson_id").distinct().count()
    assert {model: figures(model) for model in (*SUMS, LessonStanding)} == before
    assert list(Lesson.objects.order_by("pk").values_list("pk", "state")) == states
    assert TrustEvent.objects.count() == events


@pytest.mark.django_db
def test_a_rebuild_mends_sums_that_were_tampered_with(account, callers) -> None:
    lessons = make_lessons(3)
    work = serve(account, "task", lessons)
    say(callers["caller"], work.pk, "failed")
    credit(work.pk)
    LessonSum.objects.filter(lesson=lessons[0]).update(o=7)
    LessonPairSum.objects.all().delete()
    TaskSum.objects.create(account=None, task_digest="0" * 64, o=1, e=1)
    found = rebuild_sums()
    assert sorted({d.table for d in found}) == ["lesson_pair_sum", "lesson_sum", "task_sum"]
    assert differences() == []


@pytest.mark.django_db
def test_crediting_costs_the_same_number_of_queries_for_two_lessons_and_for_ten(account, callers) -> None:
    lessons = make_lessons(12)
    counts = []
    for shown in (lessons[:2], lessons[:10]):
        work = serve(account, f"task for {len(shown)}", shown, lessons[10:])
        say(callers["caller"], work.pk, "used")
        with CaptureQueriesContext(connection) as queries:
            credit(work.pk)
        counts.append(len(queries))
    assert counts[0] == counts[1]


@pytest.mark.django_db(transaction=True)
def test_sixteen_threads_neither_deadlock_nor_lose_a_credit(space: EmbeddingSpace) -> None:
    account = Account.objects.create(slug="busy", name="Busy", review_policy="auto")
    callers = make_callers(account)
    lessons = make_lessons(8)
    rng = random.Random(7)
    works = [serve(account, f"task {n % 9}", *random_cohort(rng, lessons)).pk for n in range(60)]
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        own = random.Random(seed)
        try:
            for _ in range(25):
                chosen = own.choice(works)
                say(callers[own.choice(OutcomeSource.values)], chosen, own.choice(PRICED))
                if own.random() < 0.7:
                    credit(chosen)
        except BaseException as error:  # noqa: BLE001 - a thread's failure must reach the test
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert failures == []
    assert not any(thread.is_alive() for thread in threads)
    while sweep():
        pass
    judged = set(Outcome.objects.values_list("interaction_id", flat=True))
    assert set(Credit.objects.values_list("pk", flat=True)) == judged
    sequences = sorted(Credit.objects.values_list("credit_seq", flat=True))
    assert sequences == list(range(1, len(judged) + 1))
    assert differences() == []
