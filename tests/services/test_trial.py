"""Policy `trial`, through the services: it agrees with a plain implementation, and each stage does what it says."""

import random
from collections.abc import Iterator
from decimal import Decimal

import pytest
from django.test import override_settings

from memory.models import Account, Lesson, LessonStanding, LessonTombstone, LessonUsage, TrustEvent
from memory.models.sql import execute, fetch
from memory.models.vocabulary import Exposure
from memory.services.caller import Caller
from memory.services.credit import credit, sweep
from memory.services.policies import policy
from memory.services.standing import differences, rebuild_standings, rebuild_sums
from tests.plain_trial import WEIGHT, Plain
from tests.services.play import make_callers, make_lessons, say, serve

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def trial_policy() -> Iterator[None]:
    with override_settings(SONDER_TRUST_POLICY="trial"):
        yield


@pytest.fixture
def callers(account: Account) -> dict[str, Caller]:
    return make_callers(account)


def kinds(lesson: Lesson) -> list[str]:
    return list(TrustEvent.objects.filter(lesson=lesson.pk).order_by("id").values_list("kind", flat=True))


def lose(account, caller, lesson, n, *, start=0, signal="failed", exposure="served") -> None:
    for task in range(start, start + n):
        work = serve(account, f"task number {task}", [lesson], exposure=exposure)
        say(caller, work.pk, signal)
        credit(work.pk)
    lesson.refresh_from_db()


def control(account, caller, lesson, signal, n, *, start=0) -> None:
    """Work that the lesson was held back from."""
    for task in range(start, start + n):
        work = serve(account, f"task number {task}", [], [lesson])
        say(caller, work.pk, signal)
        credit(work.pk)
    lesson.refresh_from_db()


@pytest.mark.django_db(transaction=True)
def test_every_row_agrees_with_the_plain_implementation(account, callers) -> None:
    rng = random.Random(11)
    lessons = make_lessons(10)
    harmful, plain = lessons[0], Plain()
    seen: set = set()
    for _ in range(250):
        task = f"task {rng.randint(1, 25)}"
        picked = rng.sample(lessons, rng.randint(1, 4))
        shown, held = [], []
        for lesson in picked:
            quarantined = lesson.pk in plain.quarantined
            out = rng.random() < (0.7 if quarantined else 0.5 if plain.on_trial(lesson.pk) else 0.05)
            (held if out else shown).append(lesson)
        source = rng.choices(list(WEIGHT), (5, 3, 1, 1, 1))[0]
        y = int(rng.random() < (0.75 if harmful in shown else 0.2))
        work = serve(account, task, shown, held)
        LessonUsage.objects.filter(interaction=work, lesson__state="quarantined", exposure="served").update(
            exposure=Exposure.PROBATION.value
        )
        say(callers[source], work.pk, "failed" if y else "used")
        credit(work.pk)
        stored = plain.credit(source, task, [i.pk for i in shown], [i.pk for i in held], y)
        found = dict(LessonUsage.objects.filter(interaction=work).values_list("lesson_id", "expected_loss"))
        assert {i: float(e) for i, e in found.items()} == pytest.approx(stored, abs=1e-9)
        standings = dict(LessonStanding.objects.values_list("lesson_id", "s"))
        for lesson in picked:
            assert standings[lesson.pk] == pytest.approx(plain.s[lesson.pk], abs=1e-7)
        quarantined = set(Lesson.objects.filter(state="quarantined").values_list("pk", flat=True))
        assert quarantined == plain.quarantined
        seen |= quarantined
    assert harmful.pk in seen
    assert differences() == []


def test_ten_to_one_opens_a_trial_and_two_hundred_to_one_is_quarantine(account, callers) -> None:
    (lesson,) = make_lessons(1)
    lose(account, callers["caller"], lesson, 4)
    standing = LessonStanding.objects.get()
    assert (lesson.state, standing.on_trial) == ("active", True)
    assert kinds(lesson) == ["trial_opened"]
    lose(account, callers["caller"], lesson, 3, start=4)
    standing.refresh_from_db()
    assert (lesson.state, standing.on_trial, standing.d) == ("quarantined", False, 0.0)
    assert kinds(lesson) == ["trial_opened", "quarantined"]
    assert LessonTombstone.objects.get().reason == "quarantined"


def test_losses_on_one_task_alone_never_quarantine(account, callers) -> None:
    (lesson,) = make_lessons(1)
    for _ in range(12):
        work = serve(account, "the same task", [lesson])
        say(callers["caller"], work.pk, "failed")
        credit(work.pk)
    lesson.refresh_from_db()
    assert lesson.state == "active"


def test_a_win_lowers_the_odds_and_closes_the_trial_but_wipes_nothing(account, callers) -> None:
    (lesson,) = make_lessons(1)
    lose(account, callers["caller"], lesson, 4)
    before = LessonStanding.objects.get().s
    lose(account, callers["caller"], lesson, 1, start=4, signal="used")
    after = LessonStanding.objects.get().s
    assert 0 < after < before
    lose(account, callers["caller"], lesson, 3, start=5, signal="used")
    assert kinds(lesson) == ["trial_opened", "trial_closed"]


@pytest.mark.parametrize("source", ["attributed", "unknown"])
def test_hearsay_and_the_unsigned_move_nothing(account, callers, source) -> None:
    (lesson,) = make_lessons(1)
    lose(account, callers[source], lesson, 15)
    assert (lesson.state, LessonStanding.objects.get().s) == ("active", 0.0)


def test_losses_without_it_free_a_lesson_that_was_blamed_for_hard_work(account, callers) -> None:
    (lesson,) = make_lessons(1)
    lose(account, callers["caller"], lesson, 8)
    assert lesson.state == "quarantined"
    control(account, callers["caller"], lesson, "failed", 30, start=100)
    assert lesson.state == "active"
    assert "rehabilitated" in kinds(lesson)
    assert not LessonTombstone.objects.exists()


def test_wins_without_it_confirm_the_quarantine(account, callers) -> None:
    (lesson,) = make_lessons(1)
    lose(account, callers["caller"], lesson, 8)
    control(account, callers["caller"], lesson, "used", 10, start=100)
    assert lesson.state == "quarantined"
    assert LessonStanding.objects.get().evidence["without_it"]["quarantine"]["lost"] == 0


def test_what_happened_without_it_is_counted_by_why_it_was_left_out(account, callers) -> None:
    (lesson,) = make_lessons(1)
    control(account, callers["caller"], lesson, "failed", 3)
    control(account, callers["unknown"], lesson, "failed", 2)  # weighs nothing
    work = serve(account, "task 9", [], [lesson])
    LessonUsage.objects.filter(interaction=work).update(exposure=Exposure.WITHHELD_TRIAL.value)
    say(callers["machine"], work.pk, "used")
    credit(work.pk)
    without = LessonStanding.objects.get().evidence["without_it"]
    assert {kind: (told["lost"], told["n"]) for kind, told in without.items()} == {"quarantine": (3, 3), "coin": (0, 1)}
    say(callers["machine"], work.pk, "retracted")
    credit(work.pk)
    assert set(LessonStanding.objects.get().evidence["without_it"]) == {"quarantine"}
    assert differences() == []


def exposures_read() -> int:
    """Rows of the exposure log that this transaction has read so far."""
    (row,) = fetch(
        "SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables "
        "WHERE relname = 'lesson_usage'"
    )
    return row[0]


def test_an_evaluation_reads_as_many_rows_of_a_long_record_as_of_a_short_one(account, callers) -> None:
    execute("SET LOCAL enable_indexscan = on")
    for other in ("seqscan", "bitmapscan", "sort"):  # a planner without statistics may take any of them for a few rows
        execute(f"SET LOCAL enable_{other} = off")
    (lesson,) = make_lessons(1)
    read = []
    with override_settings(SONDER_LEDGER_WINDOW=8):
        for more in (10, 40):
            lose(account, callers["caller"], lesson, more, start=100 * more, signal="used")
            control(account, callers["caller"], lesson, "used", more, start=100 * more)
            before = exposures_read()
            policy().assess([lesson.pk], None)
            read.append(exposures_read() - before)
    assert read[0] == read[1] <= 8 * 2, "the ledger's rows and their cohorts"


def test_wins_on_probation_widen_the_sample_and_finally_free_the_lesson(account, callers) -> None:
    (lesson,) = make_lessons(1)
    lose(account, callers["caller"], lesson, 7)
    lose(account, callers["caller"], lesson, 1, start=50, signal="used", exposure="probation")
    standing = LessonStanding.objects.get()
    assert standing.d < 0
    for n in range(51, 70):
        if lesson.state == "active":
            break
        lose(account, callers["caller"], lesson, 1, start=n, signal="used", exposure="probation")
    assert lesson.state == "active"
    assert "rehabilitated" in kinds(lesson)


def test_a_corrected_loss_takes_a_quarantine_back_at_once(account, callers) -> None:
    (lesson,) = make_lessons(1)
    works = []
    for n in range(7):
        works.append(serve(account, f"task {n}", [lesson]))
        say(callers["caller"], works[-1].pk, "failed")
        credit(works[-1].pk)
    lesson.refresh_from_db()
    assert lesson.state == "quarantined"
    for work in works[:2]:
        say(callers["caller"], work.pk, "accepted")
        credit(work.pk)
    lesson.refresh_from_db()
    assert lesson.state == "active"


def test_companions_are_not_blamed_for_a_known_offender(account, callers) -> None:
    offender, companion = make_lessons(2)
    lose(account, callers["caller"], offender, 6)
    for n in range(20, 26):
        work = serve(account, f"task {n}", [offender, companion])
        say(callers["caller"], work.pk, "failed")
        credit(work.pk)
    s = dict(LessonStanding.objects.values_list("lesson_id", "s"))
    assert s[companion.pk] < s[offender.pk] / 2


def test_the_ledger_from_rebuilt_sums_equals_the_ledger_from_running_sums(account, callers) -> None:
    rng = random.Random(5)
    lessons = make_lessons(6)
    for n in range(80):
        work = serve(account, f"task {n % 13}", rng.sample(lessons, rng.randint(0, 4)))
        say(callers[rng.choice(["caller", "machine", "unknown"])], work.pk, rng.choice(["failed", "used", "rejected"]))
    sweep()
    list(rebuild_standings())
    running = dict(LessonStanding.objects.values_list("lesson_id", "s"))
    for table in ("source_sum", "task_sum", "lesson_sum", "lesson_source_sum", "lesson_pair_sum"):
        execute(f"DELETE FROM {table}")
    assert len(rebuild_sums()) > 0
    list(rebuild_standings())
    assert dict(LessonStanding.objects.values_list("lesson_id", "s")) == running


def test_switching_the_policy_recomputes_and_loses_no_evidence(account, callers) -> None:
    (lesson,) = make_lessons(1)
    lose(account, callers["caller"], lesson, 3)
    rows = LessonUsage.objects.count()
    with override_settings(SONDER_TRUST_POLICY="reference"):
        list(rebuild_standings())
        standing = LessonStanding.objects.get()
        assert (standing.policy, standing.s, standing.losses) == ("reference", None, 3)
    list(rebuild_standings())
    standing = LessonStanding.objects.get()
    assert (standing.policy, standing.losses, LessonUsage.objects.count()) == ("trial", 3, rows)
    assert standing.s == pytest.approx(2.3, abs=0.5)


def test_credited_rows_keep_the_expectation_of_their_own_time(account, callers) -> None:
    (lesson,) = make_lessons(1)
    lose(account, callers["caller"], lesson, 3)
    stored = list(LessonUsage.objects.order_by("credit_seq").values_list("expected_loss", flat=True))
    assert stored == [Decimal("0.2")] * 3
