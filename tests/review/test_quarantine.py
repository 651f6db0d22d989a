"""The quarantine board in the browser: where each lesson stands, bursts, groups, the file, and what it decides."""

import csv
import io
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memory.models import Adjudication, Interaction, Lesson, LessonStanding, Project, ReviewItem, TrustEvent
from memory.models.sql import execute
from memory.models.vocabulary import LessonState, Verdict
from memory.services import quarantine, review_queue, second_opinion
from memory.services.adjudication import decide
from memory.services.credit import sweep
from tests.services.people import decision, member
from tests.services.play import make_callers, make_lessons, say, serve

BOARD = "/review/quarantine/"
GROUPS = (
    "On trial",
    "New",
    "Second opinion",
    "On probation",
    "Upheld in the last 30 days",
    "Freed in the last 30 days",
)
pytestmark = pytest.mark.django_db


def kept_out(n: int, minutes: float = 120) -> list[Lesson]:
    """So many lessons that the policy has quarantined, one every so many minutes until now."""
    lessons = make_lessons(n)
    now = timezone.now()
    for place, one in enumerate(lessons):
        quarantine.move(one.pk, LessonState.ACTIVE, LessonState.QUARANTINED)
        LessonStanding.objects.create(
            pk=one.pk, policy="trial", wins=4, losses=6 + place % 3, s=5.5 + place / 1000, on_trial=False, version=1,
            quarantined_at=now - timedelta(minutes=minutes * place + 1),
            evidence={
                "policy": "trial", "wins": 4, "losses": 6 + place % 3, "rows": [{"cohort": 3, "reward": -1.0}],
                "with_it": {"lost": 6, "n": 10, "expected": 2.0},
            },
        )  # fmt: skip
        quarantine._ask(one.pk)
    return lessons


def page(client: Client, url: str = BOARD) -> Any:
    answer = client.get(url)
    assert answer.status_code == 200, answer
    return answer


def standing(client: Client, url: str = BOARD) -> dict[str, list[Any]]:
    """Which lessons each group shows."""
    groups = page(client, url).context["groups"]
    return {group["name"]: [each["row"].lesson.pk for each in group["rows"]] for group in groups}


def marked(lesson: Lesson) -> str:
    item = ReviewItem.objects.get(subject=lesson.pk, kind="quarantine")
    return f"{lesson.pk}:{item.pk}:{item.version}"


def bulk(client: Client, act: str, marks: Sequence[str], **more: Any) -> Any:
    return client.post("/review/inbox/bulk/", {"act": act, "marked": marks, "next": BOARD, **more})


class TestWhereEachStands:
    def test_every_stage_has_its_group(self, client, login, account, settings) -> None:
        settings.SONDER_TRUST_POLICY = "trial"
        who = login("reviewer")
        make_callers(account)
        new, asked, sampled, upheld, released, tried, old = kept_out(7)
        second_opinion.request(asked.pk, member(account, "reviewer", "ben"))
        serve(account, "let through", [sampled], exposure="probation")
        for one, verdict in ((upheld, Verdict.UPHOLD), (released, Verdict.RELEASE), (old, Verdict.UPHOLD)):
            decide(decision(who, verdict, one.pk, ReviewItem.objects.get(subject=one.pk)))
        quarantine.move(tried.pk, LessonState.QUARANTINED, LessonState.ACTIVE)
        LessonStanding.objects.filter(pk=tried.pk).update(on_trial=True)
        execute("SET session_replication_role = replica")  # the journal is append-only, and this sets its clock
        TrustEvent.objects.filter(lesson=old.pk).update(created_at=timezone.now() - timedelta(days=31))
        execute("SET session_replication_role = origin")
        LessonStanding.objects.filter(pk=old.pk).update(quarantined_at=timezone.now() - timedelta(days=32))
        assert standing(client) == {
            "On trial": [tried.pk],
            "New": [new.pk],
            "Second opinion": [asked.pk],
            "On probation": [old.pk, sampled.pk],
            "Upheld in the last 30 days": [upheld.pk],
            "Freed in the last 30 days": [released.pk],
        }

    def test_the_policys_own_quarantine_comes_here_with_its_figures(self, client, login, account) -> None:
        login("reviewer")
        callers = make_callers(account)
        (one,) = make_lessons(1)
        for task in range(6):
            say(callers["caller"], serve(account, f"task {task}", [one]).pk, "failed")
        sweep()
        assert standing(client)["New"] == [one.pk]
        shown = page(client).content.decode()
        assert "6 / 6" in shown or "5 / 5" in shown
        assert "lost, 100%" in shown
        assert "0 others" in shown

    def test_the_worst_comes_first_with_its_interval_beside_what_was_expected(self, client, login) -> None:
        login("reviewer")
        lessons = kept_out(3)
        assert standing(client)["New"] == [one.pk for one in reversed(lessons)]
        shown = page(client).content.decode()
        assert "8 / 12" in shown
        assert "8 of 12 lost, 67%" in shown
        assert "Expected was 20%" in shown
        assert "2 others" in shown

    def test_who_has_it_and_what_is_snoozed_is_said(self, client, login, account) -> None:
        who = login("reviewer")
        first, second = kept_out(2)
        ben = member(account, "reviewer", "ben")
        review_queue.claim(ReviewItem.objects.get(subject=first.pk).pk, ben)
        review_queue.snooze(ReviewItem.objects.get(subject=second.pk).pk, who, review_queue.Until(worse=True))
        shown = page(client).content.decode()
        assert "ben is reviewing" in shown
        assert "snoozed" in shown

    def test_other_accounts_lessons_are_absent(self, client, login, account, rival_account, settings) -> None:
        settings.SONDER_LESSON_SCOPE = "account"
        kept_out(2)
        Lesson.objects.update(account=account)
        login("maintainer", "ron", rival_account)
        assert "tool_0" not in page(client).content.decode()
        assert "tool_0" not in client.get(f"{BOARD}export.csv").content.decode()

    def test_looking_changes_nothing(self, client, login) -> None:
        login("reviewer")
        kept_out(3)
        before = list(ReviewItem.objects.order_by("pk").values())
        for url in (BOARD, f"{BOARD}?by=project", f"{BOARD}?by=model", f"{BOARD}?by=week", f"{BOARD}export.csv"):
            page(client, url)
        assert list(ReviewItem.objects.order_by("pk").values()) == before

    @pytest.mark.parametrize("n", [1, 40])
    @pytest.mark.parametrize("by", ["stage", "project", "model", "week"])
    def test_reads_the_same_few_times_however_many_are_out(
        self, client, login, n, by, django_assert_num_queries
    ) -> None:
        login("reviewer")
        kept_out(n)
        with django_assert_num_queries(13):
            client.get(f"{BOARD}?by={by}")

    def test_text_is_shown_as_text(self, client, login) -> None:
        login("reviewer")
        kept_out(1)
        Lesson.objects.update(text="<script>alert(1)</script> שלום 🦉 " + "x" * 1900)
        shown = page(client).content.decode()
        assert "<script>alert" not in shown
        assert "&lt;script&gt;" in shown


class TestGrouping:
    def test_by_the_project_and_model_of_the_latest_loss_where_it_may_be_seen(
        self, client, login, account, rival_account
    ) -> None:
        first, second, third = kept_out(3)
        make_callers(account)
        make_callers(rival_account)
        project = Project.objects.create(account=account, slug="billing", name="Billing")
        for one, at in ((first, account), (second, account), (third, rival_account)):
            work = serve(at, "task", [one])
            Interaction.objects.filter(pk=work.pk).update(model="m-1", project=project if at == account else None)
            kept = LessonStanding.objects.get(pk=one.pk)
            kept.evidence["rows"] = [
                {"interaction": str(work.pk), "reward": 1.0},
                {"interaction": str(work.pk), "reward": -1.0},
            ]
            kept.save()
        login("reviewer")
        assert standing(client, f"{BOARD}?by=project") == {"billing": [second.pk, first.pk], "Not known": [third.pk]}
        assert standing(client, f"{BOARD}?by=model") == {"m-1": [second.pk, first.pk], "Not known": [third.pk]}

    def test_by_week_the_newest_first(self, client, login) -> None:
        login("reviewer")
        new, old = kept_out(2, minutes=60 * 24 * 14)
        found = standing(client, f"{BOARD}?by=week")
        assert list(found.values()) == [[new.pk], [old.pk]]
        assert all(name.startswith("Week of 20") for name in found)

    def test_keys_jump_to_the_first_six(self, client, login) -> None:
        login("reviewer")
        kept_out(1)
        shown = page(client).content.decode()
        assert all(f'data-key="{n}"' in shown for n in range(1, 7))
        assert 'href="#first-2"' in shown
        assert 'id="first-2"' in shown
        assert 'href="#group-1"' in shown
        assert all(f'data-key="{key}"' in shown for key in ("a", "q", "t", "z", "m", "M"))


class TestBursts:
    def test_more_than_twenty_within_an_hour_are_one_row_that_opens(self, client, login) -> None:
        login("reviewer")
        burst, others = kept_out(43, minutes=1), []
        assert standing(client)["New"] == others
        answer = page(client)
        (row,) = answer.context["groups"][1]["bursts"]
        assert len(row["burst"].lessons) == 43
        assert "43 quarantined within an hour" in answer.content.decode()
        assert len(standing(client, row["url"])["Burst"]) == len(burst)

    def test_twenty_or_slower_ones_are_rows(self, client, login) -> None:
        login("reviewer")
        lessons = kept_out(20, minutes=1)
        assert len(standing(client)["New"]) == len(lessons)

    def test_a_false_alarm_of_43_is_cleared_at_once_and_taken_back_one_by_one(self, client, login, account) -> None:
        login("reviewer")
        lessons = kept_out(43, minutes=1)
        name = page(client).context["groups"][1]["bursts"][0]["burst"].name
        preview = bulk(client, "serve", [f"burst:{name}"]).content.decode()
        assert "Release: 43 of 43" in preview
        assert "The outcomes were judged wrongly" in preview
        marks = [marked(one) for one in lessons]
        done = bulk(client, "serve", marks, confirmed="1", reason_code="bad_outcomes", idempotency_key="once")
        assert "43 of 43 applied" in done.content.decode()
        assert Lesson.objects.filter(state="active").count() == 43
        decide(decision(member(account, "reviewer", "ben"), Verdict.REJECT, lessons[0].pk))
        made = Adjudication.objects.filter(verdict="release").values_list("pk", flat=True)
        shown = client.post("/review/inbox/bulk/undo/", {"made": list(made), "next": BOARD}).content.decode()
        assert "42 of 43 undone" in shown
        assert Lesson.objects.filter(state="quarantined").count() == 42

    def test_an_address_that_names_no_burst_is_refused(self, client, login) -> None:
        login("reviewer")
        for name in ("x", "1:2:3", "nan:1", "1e99:2", "inf:inf"):
            assert client.get(f"{BOARD}?burst={name}").status_code == 422, name


class TestDeciding:
    def test_each_result_from_the_board(self, client, login) -> None:
        login("reviewer")
        first, second, third = kept_out(3)
        assert "1 of 1 applied" in bulk(client, "keep_out", [marked(first)], confirmed="1").content.decode()
        bulk(client, "reject", [marked(second)], confirmed="1", reason_code="harmful")
        bulk(client, "snooze", [marked(third)], confirmed="1", until="servings", servings="9")
        assert list(Adjudication.objects.order_by("pk").values_list("verdict", flat=True)) == ["uphold", "reject"]
        assert ReviewItem.objects.get(subject=third.pk).status == "snoozed"
        found = standing(client)
        assert (found["Upheld in the last 30 days"], found["New"]) == ([first.pk], [third.pk])

    def test_a_lesson_on_trial_is_kept_out_without_a_question(self, client, login) -> None:
        login("reviewer")
        (one,) = make_lessons(1)
        LessonStanding.objects.create(
            pk=one.pk, policy="trial", wins=1, losses=3, s=2.5, on_trial=True, version=1, evidence={}
        )
        (row,) = page(client).context["groups"][0]["rows"]
        done = bulk(client, "keep_out", [row["row"].value], confirmed="1", reason_code="harmful")
        assert "1 of 1 applied" in done.content.decode()
        assert standing(client)["Upheld in the last 30 days"] == [one.pk]

    def test_a_viewer_reads_and_exports_only(self, client, login) -> None:
        login("viewer")
        (one,) = kept_out(1)
        shown = page(client).content.decode()
        assert "needs the role reviewer" in shown
        assert 'name="marked"' not in shown
        assert client.get(f"{BOARD}export.csv").status_code == 200
        assert "0 of 1 applied" in bulk(client, "keep_out", [marked(one)], confirmed="1").content.decode()

    def test_strangers_log_in_first(self, client) -> None:
        for url in (BOARD, f"{BOARD}export.csv"):
            assert "login" in client.get(url)["Location"]


class TestTheFile:
    def test_holds_every_lesson_and_no_formula(self, client, login) -> None:
        login("reviewer")
        lessons = kept_out(60, minutes=1)
        Lesson.objects.filter(pk=lessons[0].pk).update(text="=HYPERLINK(\"x\") `a`, 'b'")
        answer = client.get(f"{BOARD}export.csv")
        assert "attachment" in answer["Content-Disposition"]
        rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
        assert len(rows) == 60
        mine = next(row for row in rows if row["lesson"] == str(lessons[0].pk))
        assert mine["text"] == "'=HYPERLINK(\"x\") `a`, 'b'"
        assert (mine["stage"], mine["losses"], mine["judged"], mine["expected_rate"]) == ("New", "6", "10", "0.2")


class TestEmpties:
    def test_says_since_when_nothing_is_out(self, client, login) -> None:
        who = login("reviewer")
        (one,) = kept_out(1)
        decide(decision(who, Verdict.REJECT, one.pk, ReviewItem.objects.get()))
        today = f"{timezone.now():%-d %b}"
        assert f"Nothing in quarantine since {today}" in page(client).content.decode()

    def test_says_what_the_board_is_before_anything_was_quarantined(self, client, login) -> None:
        login("reviewer")
        assert "Nothing was ever quarantined" in page(client).content.decode()

    def test_empty_groups_are_named(self, client, login) -> None:
        login("reviewer")
        kept_out(1)
        assert list(standing(client)) == list(GROUPS)
