"""Faults that other memories had in public: in background work, in time, in size, and in judging themselves."""

import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client, override_settings
from django.utils import timezone as clock

from memory.models import (
    Account,
    ApiKey,
    Contradiction,
    Fact,
    IdempotencyRecord,
    Interaction,
    JobRun,
    Lesson,
    LessonDistillation,
    LessonStanding,
    Outcome,
    Project,
    ReviewItem,
    Task,
    TrustEvent,
)
from memory.models.vocabulary import Verdict
from memory.services import contradiction, distillation_lease, health, quarantine, retention
from memory.services.adjudication import decide
from memory.services.authority import person
from memory.services.keys import create_key
from tests.acceptance import acts
from tests.acceptance.acts import CLOCK, CLOCK_TASK, TIMEOUT, TIMEOUT_TASK
from tests.conftest import Agent
from tests.distillers.server import completion
from tests.distillers.server import lesson as answer
from tests.http.admin_pages import address, body
from tests.http.calls import INTERACTIONS, LESSONS, OUTCOMES, refused, report, start
from tests.services.people import decision
from tests.services.workshop import expire_lease, make_due, model

pytestmark = pytest.mark.django_db

HEALTH = "/api/v1/health/"


def reasons(agent: Agent) -> dict[str, str]:
    """Why the account's health is what it is: code and words."""
    return {reason["code"]: reason["words"] for reason in agent.client.get(HEALTH).json()["reasons"]}


class TestAMalformedAnswer:
    """Elsewhere a model's malformed answer dropped everything in silence."""

    def test_it_is_retried_then_failed_with_its_error_and_shown_wherever_somebody_looks(
        self, agent: Agent, governor: Agent, pages: Client
    ) -> None:
        with model() as server:
            server.answer = completion("Sure! Here is your lesson: {")
            bad = acts.learn(agent, CLOCK)
            assert acts.distilled(agent, bad) == ("retryable", None)
            for _ in range(4):
                make_due(Interaction.objects.get(pk=bad).pk)
                acts.background()
            assert acts.distilled(agent, bad) == ("failed", "distiller_error")
            (row,) = acts.pages(agent, acts.DISTILLATIONS, state="failed")
            assert (row["attempts"], "something else than a lesson" in row["last_error"]) == (5, True)
            page = body(pages.get(address(LessonDistillation, "change", bad)))
            assert "distiller_error" in page
            assert "something else than a lesson" in page
            assert "1 distillation failed" in reasons(agent)["failed_distillations"]
            assert {"state": "failed", "reason": "distiller_error", "n": 1} in agent.client.get(HEALTH).json()[
                "distillations"
            ]

            server.answer = answer(CLOCK)
            assert governor.client.post(f"{acts.DISTILLATIONS}{bad}/retry/", {}, format="json").status_code == 200
            acts.background()
        assert acts.distilled(agent, bad) == ("stored", "stored")
        assert "failed_distillations" not in reasons(agent)


class TestAStuckJob:
    """Elsewhere jobs stayed "processing" for ever after a restart."""

    def test_an_expired_lease_is_taken_over_the_dead_worker_writes_nothing_and_crashes_count(
        self, agent: Agent, governor: Agent
    ) -> None:
        stuck = acts.work(agent, "fetch the report", f"Lesson: {TIMEOUT}")
        pk = Interaction.objects.get(pk=stuck).pk
        dead = distillation_lease.claim(pk, "host:1:dead")
        assert dead is not None
        acts.background()
        assert acts.distilled(agent, stuck) == ("claimed", None), "a lease is respected while it lasts"
        expire_lease(pk)
        acts.background()
        assert acts.distilled(agent, stuck) == ("stored", "stored")
        with pytest.raises(distillation_lease.LeaseLost):
            distillation_lease.renew(dead)
        with pytest.raises(distillation_lease.LeaseLost):
            distillation_lease.finish(dead, distillation_lease.DistillationReason.NO_CANDIDATE)
        assert LessonDistillation.objects.get(pk=pk).attempts == 2

        crashing = acts.work(agent, "fetch the report", f"Lesson: {CLOCK}")
        pk = Interaction.objects.get(pk=crashing).pk
        for _ in range(5):
            assert distillation_lease.claim(pk, "host:1:crashes") is not None
            expire_lease(pk)
        assert distillation_lease.claim(pk, "host:1:crashes") is None
        acts.background()
        assert acts.distilled(agent, crashing) == ("failed", "attempts_exhausted")
        assert governor.client.post(f"{acts.DISTILLATIONS}{crashing}/retry/", {}, format="json").status_code == 200
        acts.background()
        assert acts.distilled(agent, crashing) == ("stored", "stored")

    def test_an_operator_calls_off_what_hangs(self, agent: Agent, governor: Agent) -> None:
        hanging, other = (acts.work(agent, "fetch the report", f"Lesson: {text}") for text in (TIMEOUT, CLOCK))
        claim = distillation_lease.claim(Interaction.objects.get(pk=hanging).pk, "host:1:hangs")
        assert claim is not None
        assert governor.client.post(f"{acts.DISTILLATIONS}{hanging}/cancel/", {}, format="json").status_code == 200
        with pytest.raises(distillation_lease.LeaseLost):
            distillation_lease.renew(claim)
        acts.background()
        assert acts.distilled(agent, hanging) == ("cancelled", "cancelled_by_operator")
        assert acts.distilled(agent, other) == ("stored", "stored")
        assert acts.listed(agent) == [CLOCK]


ZONES = ["Etc/GMT+12", "Pacific/Kiritimati", "Europe/Berlin", "America/St_Johns"]


class TestTimeZones:
    """Elsewhere timestamps of a wrong zone shifted filters, cooldowns and retention."""

    @pytest.fixture(params=ZONES)
    def zone(self, request: pytest.FixtureRequest) -> Iterator[str]:
        """The machine, its processes and the site live in another zone; Kiritimati is UTC+14, GMT+12 is UTC-12."""
        with override_settings(TIME_ZONE=request.param):
            assert time.tzname != ("UTC", "UTC")
            yield request.param

    def test_no_column_is_without_a_zone(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT table_name, column_name, data_type FROM information_schema.columns "
                "WHERE table_schema = current_schema() AND data_type LIKE 'timestamp%'"
            )
            found = cursor.fetchall()
        assert len(found) > 50
        assert {kind for _, _, kind in found} == {"timestamp with time zone"}

    def test_a_filter_means_the_moment_whatever_the_offset_it_is_written_in(self, agent: Agent, zone: str) -> None:
        first = start(agent.client, "first")["id"]
        moment = Interaction.objects.get(pk=first).created_at + timedelta(milliseconds=1)
        time.sleep(0.005)
        second = start(agent.client, "second")["id"]
        for hours in (-12, 0, 14):
            written = moment.astimezone(timezone(timedelta(hours=hours))).isoformat()
            for name, expected in (("created_after", second), ("created_before", first)):
                rows = agent.client.get(INTERACTIONS, {name: written}).json()["results"]
                assert [row["id"] for row in rows] == [expected]
        shown = agent.client.get(f"{INTERACTIONS}{first}/").json()["created_at"]
        assert datetime.fromisoformat(shown) == Interaction.objects.get(pk=first).created_at

    def test_a_fact_is_true_from_and_until_its_moment(self, agent: Agent, zone: str) -> None:
        now = clock.now()
        for text, began, ended in (("was", -2, -1), ("is", -1, 1), ("will be", 1, 2)):
            times = {
                "valid_from": (now + timedelta(minutes=began)).astimezone(timezone(timedelta(hours=14))).isoformat(),
                "valid_until": (now + timedelta(minutes=ended)).astimezone(timezone(timedelta(hours=-12))).isoformat(),
            }
            fact = {"project": "api", "text": f"It {text}.", **times}
            assert agent.client.post(acts.FACTS, fact, format="json").status_code == 201
        assert [fact["text"] for fact in start(agent.client, "x", project="api")["facts"]] == ["It is."]

    @pytest.mark.parametrize("late", [False, True])
    def test_cooldown_probation_replay_and_retention_end_to_the_minute(
        self, agent: Agent, zone: str, late: bool, settings: Any
    ) -> None:
        settings.SONDER_RETAIN_TEXTS_DAYS = 30
        settings.SONDER_PROBATION_SHARE = 0.5  # the most there is: forty tasks without one would be chance 1 in 2**40
        age = timedelta(minutes=1 if late else -1)
        lesson = acts.imported(agent.account, TIMEOUT)
        for attempt in range(5):
            report(agent.client, start(agent.client, f"{TIMEOUT_TASK}, {attempt}")["id"], "failed")
        acts.background()
        now = clock.now()
        key = {"headers": {"Idempotency-Key": "1"}, "format": "json"}
        first = agent.client.post(INTERACTIONS, {"task": "x"}, **key).json()
        acts.finish(agent, first["id"], "the answer")
        IdempotencyRecord.objects.update(created_at=now - timedelta(hours=24) - age)
        Interaction.objects.update(created_at=now - timedelta(days=30) - age)
        last_loss = now - timedelta(hours=24) - age
        LessonStanding.objects.update(last_loss_at=last_loss, quarantined_at=last_loss)
        with connection.cursor() as cursor:
            cursor.execute("UPDATE lesson_usage SET outcome_at = %s", [last_loss])

        retention.apply_retention(now)
        assert Interaction.objects.get(pk=first["id"]).response == (None if late else "the answer")
        replayed = agent.client.post(INTERACTIONS, {"task": "x"}, **key)
        assert (replayed.status_code == 409) is late, "the key is too old to replay, or replays"
        on_probation = [n for n in range(40) if acts.recalled(agent, f"{TIMEOUT_TASK}, case {n}")]
        assert bool(on_probation) is late
        assert quarantine.lift_by_clock(now, 24.0) == int(late)
        assert Lesson.objects.get(pk=lesson.pk).state == ("active" if late else "quarantined")

    def test_an_hour_that_a_clock_change_repeats_or_skips_is_counted_once(self, agent: Agent) -> None:
        """Berlin, 25 October and 29 March 2026: a day of 25 hours and one of 23."""
        acts.imported(agent.account, TIMEOUT)
        for attempt in range(5):
            report(agent.client, start(agent.client, f"{TIMEOUT_TASK}, {attempt}")["id"], "failed")
        acts.background()
        for noon_before in ("2026-10-24T12:00:00+02:00", "2026-03-28T12:00:00+01:00"):
            since = datetime.fromisoformat(noon_before)
            LessonStanding.objects.update(last_loss_at=since, quarantined_at=since)
            for hours, lifted in ((23.9, 0), (24.1, 1)):
                with transaction.atomic():
                    assert quarantine.lift_by_clock(since + timedelta(hours=hours), 24.0) == lifted
                    transaction.set_rollback(True)


class TestAListThatStops:
    """Elsewhere a list stopped at 100 in silence."""

    def test_every_list_goes_on_to_its_end_with_no_row_twice(self, agent: Agent) -> None:
        wish = "I always prefer colour number {} for headings."
        for n in range(105):
            acts.work(agent, wish.format(n), "done", project="api", session=f"talk-{n}", retrieve=False)
        own = {"account": agent.account, "project": Project.objects.get()}
        Fact.objects.bulk_create(Fact(text=f"Fact {n} holds.", **own) for n in range(105))
        Task.objects.bulk_create(Task(title=f"{n}", status="pending", priority=0, **own) for n in range(105))
        texts = [f"Call `step_{n}()` before `step_{n + 1}()`, because the order of both is fixed." for n in range(105)]
        assert acts.import_texts(agent.account, *texts)["stored"] == 105
        for url, rows in (
            (INTERACTIONS, 105), (OUTCOMES, 105), (LESSONS, 105), (acts.FACTS, 105), (acts.DISTILLATIONS, 105),
            (acts.PREFERENCES, 105), ("/api/v1/tasks/", 105), ("/api/v1/sessions/", 105),
        ):  # fmt: skip
            found = [row["id"] for row in acts.pages(agent, url)]
            assert (url, len(found), len(set(found))) == (url, rows, rows)
            first = agent.client.get(url).json()
            assert len(first["results"]) == 50
            assert first["next"], "what is left is told"
            refused(agent.client.get(url, {"page_size": 1000}), 400, "page_size")


class TestManyAccounts:
    """Elsewhere an index for each tenant exhausted the lock table, and a global one with a filter found too little."""

    @pytest.mark.parametrize("excluded", [0, 20, 2], ids=["all", "5% quarantined", "50% quarantined"])
    def test_many_accounts_share_one_index_and_each_is_handed_what_an_exact_search_finds(
        self, agent: Agent, settings: Any, excluded: int
    ) -> None:
        settings.SONDER_LESSON_SCOPE = "account"
        before = indexes()
        accounts = [agent.account]
        accounts += [Account.objects.create(slug=f"a{n}", name=f"A{n}", review_policy="auto") for n in range(24)]
        for n, account in enumerate(accounts):
            words = ("worker", "cache", "queue", "upload", "parser", "report", "socket", "editor")
            acts.import_texts(
                account,
                *(
                    f"Restart the {word} of site {n} with `restart_{word}()`, because it forgets its {word}."
                    for word in words
                ),
            )
        assert indexes() == before
        if excluded:
            some = list(Lesson.objects.order_by("text_sha256").values_list("pk", flat=True))[::excluded]
            Lesson.objects.filter(pk__in=some).update(state="quarantined")
        keys = [create_key(account, name="k", source="caller", scopes=["loop"]) for account in accounts[::3]]
        for n, made in zip(range(0, 25, 3), keys, strict=True):
            agent.client.credentials(HTTP_AUTHORIZATION=f"Bearer {made.secret}")
            handed_out = []
            for limit in (20_000, 0):  # exactly, and through the index with the account as a filter
                settings.SONDER_EXACT_SEARCH_LIMIT = limit
                found = acts.looked_up(agent, f"restart the worker and the queue of site {n}", k=8)
                handed_out.append([lesson["text"] for lesson in found["lessons"]])
            assert handed_out[0] == handed_out[1]
            live = Lesson.objects.filter(account=accounts[n], state="active")
            assert set(handed_out[0]) <= set(live.values_list("text", flat=True))
            assert len(handed_out[0]) == live.count() > 0


def indexes() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexname FROM pg_indexes WHERE tablename = 'lesson_embedding'")
        return {name for (name,) in cursor.fetchall()}


class TestASweepThatNeverRuns:
    """Elsewhere a sweep had not run for months, and nobody knew."""

    def test_every_scheduled_job_leaves_its_last_run(self, agent: Agent) -> None:
        jobs = health.scheduled_jobs()
        acts.background()
        assert set(jobs) <= set(JobRun.objects.filter(outcome="done").values_list("job", flat=True))
        shown = {row["job"]: row for row in agent.client.get(HEALTH).json()["jobs"]}
        assert set(shown) == set(jobs)
        assert {row["standing"] for row in shown.values()} == {"on_time"}
        assert all(row["done_at"] for row in shown.values())

    @pytest.mark.parametrize("job", sorted(health.scheduled_jobs()))
    def test_each_is_warned_of_when_three_runs_are_missing_and_not_before(self, agent: Agent, job: str) -> None:
        acts.background()
        every = timedelta(seconds=health.scheduled_jobs()[job])
        limits = {3: "watch", 10: "attention"}
        for missed, state in limits.items():
            for minutes, warned in ((-1, False), (1, True)):
                age = missed * every + timedelta(minutes=10 + minutes)
                JobRun.objects.filter(job=job).update(started_at=clock.now() - age)
                told = [r for r in agent.client.get(HEALTH).json()["reasons"] if r["code"] == "job_late"]
                assert (state in {r["state"] for r in told}) is warned
                assert all(job in r["words"] for r in told)
        JobRun.objects.filter(job=job).delete()
        Account.objects.update(created_at=clock.now() - 3 * every - timedelta(minutes=11))
        assert job in reasons(agent)["job_never_ran"]


class TestADetectorThatDecides:
    """Elsewhere a detector of contradictions retired true facts by itself."""

    ALWAYS = "Always pass a `timeout` to `requests.post()`, because the library waits for ever for a silent server."
    NEVER = "Never pass a `timeout` to `requests.post()`, because the library waits for ever for a silent server."

    def test_it_asks_and_only_a_person_or_an_outcome_decides(
        self, agent: Agent, lesson_scope: str, reviewer: Any
    ) -> None:
        acts.import_texts(agent.account, self.ALWAYS, self.NEVER, CLOCK)
        before = list(Lesson.objects.order_by("pk").values())
        for _ in range(3):
            contradiction.detect()
            acts.background()
        flag = Contradiction.objects.get()
        assert (flag.verdict, ReviewItem.objects.filter(kind="contradiction", status="open").count()) == (None, 1)
        assert list(Lesson.objects.order_by("pk").values()) == before
        assert not TrustEvent.objects.exists()
        assert sorted(acts.listed(agent)) == sorted([self.ALWAYS, self.NEVER, CLOCK])
        handed_out = acts.recalled(agent, "pass a timeout to requests.post, or the library waits for ever", k=50)
        assert len(set(handed_out) & {self.ALWAYS, self.NEVER}) == 1, "one side at most, while nobody has decided"

        kept = acts.stored(agent.account, self.ALWAYS).pk
        verdict = Verdict.KEEP_FIRST if flag.first == kept else Verdict.KEEP_SECOND
        contradiction.settle(flag.pk, verdict, reviewer=reviewer.pk, reason="a silent server does not answer later")
        assert acts.recalled(agent, "pass a timeout to requests.post, or the library waits for ever") == [self.ALWAYS]
        event = TrustEvent.objects.get()
        assert (event.kind, event.actor) == ("rejected_by_reviewer", f"user:{reviewer.pk}")


class TestAStoreThatGradesItself:
    """Elsewhere a store that graded itself scored everything 1.0."""

    @pytest.mark.parametrize("source", [None, "", "me", "human"])
    def test_nobody_judges_without_saying_who(self, agent: Agent, source: str | None) -> None:
        with pytest.raises(DatabaseError), transaction.atomic():
            ApiKey.objects.filter(pk=agent.key.pk).update(outcome_source=source)
        with pytest.raises(DatabaseError), transaction.atomic():
            Outcome.objects.create(
                interaction_id=start(agent.client, "x")["id"],
                source=source,
                sequence=1,
                signal="accepted",
                reward="0.80",
            )
        arguments = ["create_api_key", "acme"] + ([] if source is None else ["--source", source])
        with pytest.raises(CommandError):
            call_command(*arguments)
        assert report(agent.client, start(agent.client, "x")["id"], "accepted").json()["source"] == "caller"

    @pytest.mark.parametrize("order", [("machine", "caller"), ("caller", "machine")])
    def test_a_machine_never_outweighs_a_caller(
        self, agent: Agent, machine: Agent, lesson_scope: str, order: tuple[str, str]
    ) -> None:
        """However late and however well it grades itself; without a caller its word is what there is."""
        acts.import_texts(agent.account, TIMEOUT, CLOCK)
        says: dict[str, Callable[[str], Any]] = {
            "caller": lambda work: report(agent.client, work, "failed"),
            "machine": lambda work: report(machine.client, work, "tests_passed"),
        }
        judged, unjudged = start(agent.client, TIMEOUT_TASK)["id"], start(agent.client, CLOCK_TASK)["id"]
        for source in order:
            says[source](judged)
        says["machine"](unjudged)
        acts.background()
        for text, expected in ((TIMEOUT, ("failed", "caller")), (CLOCK, ("tests_passed", "machine"))):
            usage = acts.stored(agent.account, text).lessonusage_set.get()
            assert (usage.outcome_signal, usage.outcome_source) == expected

    def test_health_shows_who_judged_and_warns_of_a_store_that_only_believes_itself(
        self, agent: Agent, machine: Agent
    ) -> None:
        for n in range(3):
            report(machine.client, start(machine.client, f"task {n}")["id"], "tests_passed")
        assert "grades itself" in reasons(agent)["self_graded"]
        report(agent.client, start(agent.client, "task")["id"], "failed")
        assert "self_graded" not in reasons(agent)
        mix = {
            row["source"]: (row["wins"], row["losses"], row["win_rate"])
            for row in agent.client.get(HEALTH).json()["classes"]
        }
        assert (mix["machine"], mix["caller"]) == ((3, 0, 1.0), (0, 1, 0.0)), "side by side, and no rate of both"


class TestAQueueThatNobodyLooksAt:
    """Elsewhere nobody saw a review queue for weeks."""

    def test_its_length_stands_in_the_navigation_of_every_page_and_its_age_in_health(
        self, agent: Agent, operator: Any, pages: Client
    ) -> None:
        acts.import_texts(agent.account, "Handle errors properly and be careful with input.", CLOCK)
        item = ReviewItem.objects.get(kind="vague")
        for page in ("/review/", "/review/health/", "/review/settings/"):
            assert re.search(r'Inbox<span class="count">1<span', pages.get(page).content.decode())
        for hours, state in ((7 * 24, "watch"), (28 * 24, "attention")):
            for minutes, told in ((-5, False), (5, True)):
                asked = clock.now() - timedelta(hours=hours, minutes=minutes)
                ReviewItem.objects.filter(pk=item.pk).update(created_at=asked)
                found = agent.client.get(HEALTH).json()["reasons"]
                states = {reason["state"] for reason in found if reason["code"] == "unreviewed"}
                assert (state in states) is told
        who = person(operator.pk, operator.get_username(), superuser=True)
        decide(decision(who, Verdict.APPROVE, item.subject, ReviewItem.objects.get(pk=item.pk)))
        assert "unreviewed" not in reasons(agent)
        assert 'Inbox<span class="count">' not in pages.get("/review/").content.decode()
