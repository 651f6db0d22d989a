"""The page of health: whether quarantine can be trusted, each figure against rows whose every figure is known."""

import json
import math
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memory.models import Account, Interaction, JobRun, Lesson, LessonUsage, ReviewItem, TrustEvent
from memory.models.base import new_id
from memory.models.vocabulary import ReviewKind
from memory.services.credit import sweep
from memory.services.ids import first_id
from review import accounts
from review.queries import health as reads
from review.queries.agreement import agreement
from review.queries.health import Coin, Counted, Exposures, Fate
from tests.models.rows import insert
from tests.services.people import member
from tests.services.play import make_callers, make_lessons, say, serve

pytestmark = pytest.mark.django_db
PAGE = "/review/health/"
QUERIES = 25  # of the page, whatever it shows


@pytest.fixture(autouse=True)
def trial(settings: Any) -> None:
    settings.SONDER_TRUST_POLICY = "trial"


@pytest.fixture
def page(client: Client, account: Account) -> Client:
    client.force_login(get_user_model().objects.get(pk=member(account, "viewer", "vic").user_id))
    return client


def body(client: Client, **asked: Any) -> str:
    answer = client.get(PAGE, asked)
    assert answer.status_code == 200
    return answer.content.decode()


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text)).replace("\xa0", " ")


Expose = Callable[..., None]


@pytest.fixture
def expose(account: Account) -> Expose:
    """Judged exposures of one lesson, each in work of its own."""
    make_callers(account)
    (lesson,) = make_lessons(1)

    def make(exposure: str, lost: bool | None, expected: float, n: int = 1, chance: float = 1.0) -> None:
        for _ in range(n):
            work = serve(account, "task", [lesson], exposure=exposure)
            usage = LessonUsage.objects.filter(interaction=work)
            usage.update(probability=chance)
            if lost is not None:
                outcome = insert("outcome", interaction_id=work.pk, signal="failed", reward="-1" if lost else "1")
                usage.update(
                    credited_outcome=outcome["id"],
                    outcome_signal="failed" if lost else "tests_passed",
                    reward=-1 if lost else 1,
                    outcome_source="caller",
                    outcome_at=timezone.now(),
                    expected_loss=expected,
                    weight=1,
                )

    return make


def seen(account: Account | None = None, days: int = 28) -> Exposures:
    return reads.exposures(account.pk if account else None, timezone.now() - timedelta(days=days))


class TestCalibration:
    def test_compares_what_was_expected_with_what_was_lost_in_bins(self, expose: Expose) -> None:
        expose("served", True, 0.22, 3)
        expose("served", False, 0.28, 9)
        expose("probation", True, 0.61)
        expose("withheld_trial", False, 0.25, 4)
        expose("withheld_quarantine", True, 0.25)
        found = seen()
        assert [(b.hits, b.n, round(b.predicted, 4)) for b in found.served] == [(3, 12, 0.265), (1, 1, 0.61)]
        assert [(b.hits, b.n) for b in found.withheld] == [(1, 5)]
        assert (found.probation, found.kept_out) == (
            Counted(n=1, losses=1, expected=0.61),
            Counted(n=1, losses=1, expected=0.25),
        )

    def test_leaves_out_what_nobody_judged_and_what_moves_nothing(self, expose: Expose) -> None:
        expose("served", None, 0.2, 3)
        expose("served", True, 0.2)
        LessonUsage.objects.filter(reward__isnull=False).update(weight=0)
        expose("served", False, 0.999999)
        assert [(b.hits, b.n) for b in seen().served] == [(0, 1)]

    def test_is_of_the_account_and_the_window(self, expose: Expose, account: Account, rival_account: Account) -> None:
        expose("served", True, 0.2)
        assert seen(account).served
        assert not seen(rival_account).served
        long_ago = timezone.now() - timedelta(days=40)
        old = UUID(int=first_id(long_ago).int | 1)
        usage = LessonUsage.objects.get()
        insert("interaction", id=old, account_id=account.pk, created_at=long_ago)
        LessonUsage.objects.filter(pk=usage.pk).update(interaction_id=old)
        assert not seen(account).served
        assert seen(account, 90).served

    def test_agrees_with_what_crediting_wrote(self, account: Account) -> None:
        callers, (lesson, other) = make_callers(account), make_lessons(2)
        for i in range(6):
            work = serve(account, f"task {i}", [lesson], [other])
            say(callers["caller"], work.pk, "failed" if i < 2 else "accepted")
        sweep()
        found = seen()
        assert sum(b.n for b in found.served) == sum(b.n for b in found.withheld) == 6
        assert sum(b.hits for b in found.served) == found.kept_out.losses == 2

    def test_is_drawn_and_told_as_a_table(self, page: Client, expose: Expose) -> None:
        expose("served", True, 0.22, 3)
        text = body(page)
        assert "chart-reliability" in text
        assert "hollow" in text
        assert "n = 3" in text
        tables = body(page, tables="1")
        assert "chart-reliability" not in tables
        assert "<td>few</td>" in tables
        assert 'data-key="v"' in text

    def test_without_a_judgement_leads_to_judging(self, page: Client) -> None:
        text = plain(body(page))
        assert "About 30 more judgements are needed" in text
        assert reverse("review:outcomes") in body(page)


def even(served: int, withheld: int) -> Coin:
    falls = served + withheld
    return Coin(served=served, withheld=withheld, expected=falls / 2, variance=falls / 4)


class TestTheCoin:
    @pytest.mark.parametrize(
        ("served", "withheld", "standing"),
        [
            (15, 14, "few"),
            (15, 15, "fine"),
            (100, 100, "fine"),
            (69, 44, "fine"),
            (64, 36, "watch"),
            (0, 29, "few"),
            (0, 30, "far"),
            (70, 30, "far"),
        ],
    )
    def test_is_judged_by_how_improbable_its_falls_are(self, served: int, withheld: int, standing: str) -> None:
        assert even(served, withheld).standing == standing

    def test_has_nearly_the_exact_two_sided_probability(self) -> None:
        exact = 2 * sum(math.comb(100, k) for k in range(37)) / 2**100
        assert even(64, 36).p == pytest.approx(exact, rel=0.05)
        assert even(5, 5).p == 1.0
        assert even(0, 0).p == 1.0

    def test_is_held_to_the_chances_that_were_noted_and_not_to_one_half(self) -> None:
        ninth = {"expected": 90.0, "variance": 9.0}
        assert Coin(served=10, withheld=90, **ninth).standing == "fine"
        assert Coin(served=50, withheld=50, **ninth).standing == "far"

    def test_counts_falls_and_no_certainty(self, expose: Expose) -> None:
        expose("served", None, 0.2, 3, chance=0.5)
        expose("served", None, 0.2, 2)
        expose("withheld_trial", None, 0.2, 4, chance=0.9)
        expose("withheld_quarantine", None, 0.2, 5, chance=0.95)
        coin = seen().coin
        assert (coin.served, coin.withheld) == (3, 4)
        assert coin.expected == pytest.approx(3 * 0.5 + 4 * 0.9)
        assert coin.variance == pytest.approx(3 * 0.25 + 4 * 0.09)

    def test_is_shown_with_what_was_to_be_expected(self, page: Client, expose: Expose) -> None:
        expose("served", None, 0.2, 10, chance=0.2)
        expose("withheld_trial", None, 0.2, 40, chance=0.8)
        assert "10 served, 40 left out, of lessons on trial; by the chances that were noted, 40.0 were" in plain(
            body(page)
        )


class TestFates:
    def events(self, lesson: Lesson, *kinds: str, policy: str = "trial") -> None:
        for kind in kinds:
            evidence = {"policy": policy} if kind == "quarantined" else {}
            TrustEvent.objects.create(lesson=lesson.pk, kind=kind, actor="system", evidence=evidence)

    def found(self, account: Account | None = None) -> list[Fate]:
        return reads.fates(account.pk if account else None, timezone.now() - timedelta(days=28))

    def test_are_told_by_the_rule_that_opened_the_quarantine(self) -> None:
        lessons = make_lessons(5)
        self.events(lessons[0], "quarantined", "upheld")
        self.events(lessons[1], "quarantined", "probation_opened", "rehabilitated")
        self.events(lessons[2], "quarantined", policy="reference")
        self.events(lessons[3], "quarantined_by_reviewer", "released_to_trial")
        self.events(lessons[4], "upheld")
        assert self.found() == [
            Fate(rule="a person", n=1, ends={"overturned": 1}),
            Fate(rule="reference", n=1),
            Fate(rule="trial", n=2, ends={"upheld": 1, "rehabilitated": 1}),
        ]

    def test_are_what_was_said_last_before_the_next_quarantine(self) -> None:
        (lesson,) = make_lessons(1)
        self.events(lesson, "quarantined", "upheld", "released_by_reviewer", "quarantined", "upheld")
        (fate,) = self.found()
        assert fate == Fate(rule="trial", n=2, ends={"overturned": 1, "upheld": 1})
        assert (fate.decided, fate.open) == (2, 0)

    def test_that_were_undone_are_open(self) -> None:
        (lesson,) = make_lessons(1)
        self.events(lesson, "quarantined", "released_by_reviewer", "undone")
        assert self.found() == [Fate(rule="trial", n=1)]

    def test_of_another_accounts_lessons_are_not_counted(
        self, account: Account, rival_account: Account, settings: Any
    ) -> None:
        settings.SONDER_LESSON_SCOPE = "account"
        (lesson,) = make_lessons(1)
        Lesson.objects.filter(pk=lesson.pk).update(account=rival_account)
        self.events(lesson, "quarantined")
        assert self.found(account) == []
        assert len(self.found(rival_account)) == len(self.found()) == 1

    def test_lead_to_their_rows(self, page: Client) -> None:
        (lesson,) = make_lessons(1)
        self.events(lesson, "quarantined", "upheld")
        assert f'<a href="{reverse("review:audit")}?action=upheld">1</a>' in body(page)


def trust(upheld: int = 0, overturned: int = 0, coin: Coin | None = None, opened: int | None = None) -> reads.Trust:
    fates = [Fate(rule="trial", n=opened or upheld + overturned, ends={"upheld": upheld, "overturned": overturned})]
    exposures = Exposures(served=(), withheld=(), coin=coin or even(0, 0), probation=Counted(), kept_out=Counted())
    return reads.trust(fates if upheld + overturned or opened else [], exposures)


class TestTrust:
    @pytest.mark.parametrize(
        ("upheld", "overturned", "standing"),
        [(0, 0, "few"), (2, 1, "few"), (6, 0, "fine"), (28, 5, "fine"), (13, 10, "watch"), (5, 15, "attention")],
    )
    def test_follows_what_people_said(self, upheld: int, overturned: int, standing: str) -> None:
        assert trust(upheld, overturned).standing == standing

    def test_is_lost_with_the_coin(self) -> None:
        found = trust(28, 1, even(90, 10))
        assert found.standing == "attention"
        assert "coin" in found.sentences[-1]

    def test_is_not_claimed_where_nothing_was_looked_at(self) -> None:
        assert trust(opened=9).headline == "Too few were looked at to say."
        assert trust().headline == "Nothing was quarantined in this window."

    def test_stands_on_samples_beside_controls(self, page: Client, expose: Expose) -> None:
        expose("probation", True, 0.2, 3)
        expose("withheld_quarantine", False, 0.2, 4)
        text = plain(body(page))
        assert "quarantined lessons lost 3 of 3; the same kind of work without them 0 of 4." in text
        assert "lost 0 of 4, where 0.8 were expected" in text


class TestAgreement:
    def judged(self, account: Account, *words: tuple[str, str]) -> None:
        callers = make_callers(account)
        for i, (caller, machine) in enumerate(words):
            work = serve(account, f"task {i}", [])
            for source, signal in (("caller", caller), ("machine", machine)):
                if signal:
                    say(callers[source], work.pk, signal)

    def test_is_of_work_that_both_judged(self, account: Account, rival_account: Account) -> None:
        self.judged(
            account,
            ("accepted", "tests_passed"),
            ("accepted", "failed"),
            ("rejected", "tests_passed"),
            ("rejected", "failed"),
            ("accepted", ""),
            ("", "failed"),
        )
        since = timezone.now() - timedelta(days=1)
        found = agreement([account.pk], since)
        assert (found.both_won, found.only_caller_won, found.only_machine_won, found.both_lost) == (1, 1, 1, 1)
        assert (found.n, found.same, found.share, found.missing) == (4, 2, None, 26)
        assert agreement([rival_account.pk], since).n == 0
        assert agreement(None, since) == found

    def test_hears_the_latest_word_and_no_retracted_one(self, account: Account) -> None:
        callers = make_callers(account)
        work = serve(account, "task", [])
        for signal in ("rejected", "accepted"):
            say(callers["caller"], work.pk, signal)
        say(callers["machine"], work.pk, "tests_passed")
        since = timezone.now() - timedelta(days=1)
        assert agreement(None, since).both_won == 1
        say(callers["caller"], work.pk, "retracted")
        assert agreement(None, since).n == 0

    def test_is_a_table_whose_disputes_lead_to_the_work(self, page: Client, account: Account) -> None:
        self.judged(account, ("accepted", "failed"))
        text = body(page)
        assert f'<a href="{reverse("review:interactions")}?state=disputed">1</a>' in text
        assert "about 29 more are needed" in plain(text)


class TestWaiting:
    def test_is_told_as_the_age_of_half_and_of_a_tenth(self, account: Account, rival_account: Account) -> None:
        now = timezone.now()
        for days in range(1, 11):
            made = ReviewItem.objects.create(kind=ReviewKind.VAGUE, subject=new_id(), priority=0.5, status="open")
            ReviewItem.objects.filter(pk=made.pk).update(created_at=now - timedelta(days=days))
        ReviewItem.objects.create(
            kind=ReviewKind.STALE, subject=new_id(), priority=0.5, status="open", account=rival_account
        )
        found = {each.name: each for each in reads.ages([account.pk])}
        inbox = found["inbox"]
        assert inbox.half is not None
        assert inbox.tenth is not None
        assert inbox.waiting == 10
        assert [(now - at).days for at in (inbox.half, inbox.tenth)] == [6, 10]
        assert [found[name].waiting for name in ("quarantine", "contradictions", "outcomes")] == [0, 0, 0]
        assert {each.name: each.waiting for each in reads.ages(None)}["inbox"] == 11


class TestJobs:
    def test_have_their_last_run_duration_and_backlog(self, page: Client, account: Account) -> None:
        now = timezone.now()
        JobRun.objects.create(
            job="credit_sweep", started_at=now - timedelta(seconds=12.5), finished_at=now, outcome="done"
        )
        JobRun.objects.create(job="credit_sweep")
        work = serve(account, "task", []) if make_callers(account) else None
        assert work is not None
        insert("outcome", interaction_id=work.pk)
        text = plain(body(page))
        assert re.search(r"credit_sweep On time just now , running now 12\.5 s 1 ", text)


class TestThePage:
    def fill(self, account: Account, n: int) -> None:
        callers = make_callers(account)
        for i, lesson in enumerate(make_lessons(n)):
            TrustEvent.objects.create(
                lesson=lesson.pk, kind="quarantined", actor="system", evidence={"policy": "trial"}
            )
            TrustEvent.objects.create(lesson=lesson.pk, kind="upheld", actor="system")
            work = serve(account, f"task {i}", [lesson])
            say(callers["caller"], work.pk, "failed")
            say(callers["machine"], work.pk, "failed")
            JobRun.objects.create(job="credit_sweep", finished_at=timezone.now(), outcome="done")
            ReviewItem.objects.create(kind=ReviewKind.VAGUE, subject=lesson.pk, priority=0.5, status="open")
        sweep()

    @pytest.mark.parametrize("n", [1, 30])
    def test_takes_the_same_queries_at_any_size(
        self, page: Client, account: Account, n: int, django_assert_num_queries: Callable[..., Any]
    ) -> None:
        self.fill(account, n)
        body(page)
        with django_assert_num_queries(QUERIES):
            body(page)

    @pytest.mark.parametrize("days", ["7", "28", "90", "365"])
    def test_has_its_window_in_the_address(self, page: Client, days: str) -> None:
        assert f'<option value="{days}" selected>' in body(page, days=days)

    def test_takes_any_other_window_for_the_usual_one(self, page: Client) -> None:
        assert '<option value="28" selected>' in body(page, days="9999999999")

    def test_keeps_window_and_account_when_the_tables_open_and_close(self, page: Client, account: Account) -> None:
        assert 'href="?days=7&amp;account=acme&amp;tables=1"' in body(page, days="7", account="acme")
        assert 'href="?days=7&amp;account=acme"' in body(page, days="7", account="acme", tables="1")

    def test_of_another_account_is_not_there(self, page: Client, rival_account: Account) -> None:
        assert page.get(PAGE, {"account": "rival"}).status_code == 404
        assert page.get(f"{PAGE}health.json", {"account": "rival"}).status_code == 404

    def test_of_the_whole_installation_is_an_operators(
        self, client: Client, page: Client, operator: Any, account: Account
    ) -> None:
        assert "Whole installation" not in body(page)
        client.force_login(operator)
        assert "Of the whole installation." in body(client)
        assert "Of Acme." in body(client, account="acme")

    def test_of_many_accounts_the_slug_is_typed_and_only_some_are_read(
        self, client: Client, account: Account, rival_account: Account, operator: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(accounts, "LISTED", 1)
        client.force_login(operator)
        assert '<input id="account" name="account" value=""' in body(client)
        told = body(client, account=rival_account.slug)  # beyond those that are listed
        assert f"Of {rival_account.name}." in told
        assert f'<input id="account" name="account" value="{rival_account.slug}"' in told
        assert client.get("/review/health/", {"account": "nobody"}).status_code == 404
        looked = client.get("/review/retrieval/").content.decode()
        assert f'<input id="account" name="account" value="{account.slug}" required' in looked

    def test_writes_nothing(self, page: Client, account: Account) -> None:
        self.fill(account, 2)
        counts = [model._default_manager.count() for model in (TrustEvent, JobRun, ReviewItem, Interaction)]
        body(page)
        assert [m._default_manager.count() for m in (TrustEvent, JobRun, ReviewItem, Interaction)] == counts

    def test_can_be_had_as_json(self, page: Client, account: Account) -> None:
        self.fill(account, 2)
        answer = page.get(f"{PAGE}health.json", {"days": "7"})
        assert answer.headers["Content-Disposition"] == 'attachment; filename="health.json"'
        found = json.loads(answer.content)
        assert found["account"] == "acme"
        assert found["window_days"] == 7
        assert found["agreement"]["both_lost"] == 2
        assert found["fates"] == [{"rule": "trial", "n": 2, "ends": {"upheld": 2}}]

    def test_a_stranger_logs_in_first(self, client: Client) -> None:
        assert client.get(PAGE).status_code == 302
        assert client.get(f"{PAGE}health.json").status_code == 302
