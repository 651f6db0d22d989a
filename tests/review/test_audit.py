"""The audit log: every journal in one order, filters, pages, export, and nothing of another account."""

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from memory.models import Account, ErasureRecord, Lesson, TrustEvent
from memory.models.base import new_id
from memory.models.sql import execute
from memory.models.vocabulary import OperatorAction, TrustEventKind, Verdict
from memory.services import people
from memory.services.adjudication import decide
from memory.services.authority import Person
from review.queries import audit
from review.queries.audit import ACTIONS, Wanted, entries
from review.views.audit import _words
from tests.models.rows import insert
from tests.services.people import decision, member
from tests.services.play import make_lessons

pytestmark = pytest.mark.django_db
PAGE = "/review/audit/"
QUERIES = 15  # of a page, whatever is on it
UPHELD = "<td>Upheld <span"  # as the log calls the decision
HOSTILE = '=cmd|"x" <script>alert(1)</script> \u202eאבג 😀 ' + "x" * 1900


@pytest.fixture
def ana(account: Account) -> Person:
    return member(account, "reviewer", "ana")


@pytest.fixture
def page(client: Client, ana: Person) -> Client:
    client.force_login(get_user_model().objects.get(pk=ana.user_id))
    return client


def body(client: Client, **asked: Any) -> str:
    answer = client.get(PAGE, asked)
    assert answer.status_code == 200
    return answer.content.decode()


def happened(lesson: Lesson, kind: str = "quarantined", actor: str = "system") -> TrustEvent:
    return TrustEvent.objects.create(lesson=lesson.pk, kind=kind, actor=actor)


@pytest.fixture
def everything(account: Account, ana: Person) -> Lesson:
    """One entry of every journal, oldest first: trust, decision (with its own event), preference, role, erasure."""
    (lesson,) = make_lessons(1)
    happened(lesson)
    Lesson.objects.filter(pk=lesson.pk).update(state="quarantined")
    decide(decision(ana, Verdict.UPHOLD, lesson.pk, reason_code="evidence_holds", note="Seen it twice."))
    preference = insert("preference", account_id=account.pk)
    insert("refinement_history", preference_id=preference["id"], actor=ana.actor, expected_outcome="Shorter answers")
    get_user_model().objects.create_user("nina")
    people.grant(member(account, "maintainer", "mia"), account.pk, "nina", "judge")
    ErasureRecord.objects.create(kind="interaction", subject=new_id(), actor="system")
    return lesson


class TestWhatIsInIt:
    def test_every_journal_newest_first(self, everything: Lesson) -> None:
        found = entries(Wanted(accounts=None), 50)
        assert [each.journal for each in found] == ["erasure", "role", "preference", "decision", "trust", "trust"]
        assert [each.at for each in found] == sorted((each.at for each in found), reverse=True)

    def test_who_did_it_what_it_was_about_and_why(self, page: Client, everything: Lesson) -> None:
        text = body(page)
        assert UPHELD in text
        assert "The evidence is convincing" in text
        assert "Seen it twice." in text
        assert "Shorter answers" in text
        assert "nina" in text
        assert reverse("review:lesson", args=[everything.pk]) in text

    def test_what_is_gone_is_named_by_its_id(self, client: Client, operator: Any) -> None:
        client.force_login(operator)
        event = TrustEvent.objects.create(lesson=new_id(), kind="quarantined", actor="system")
        assert f"gone: <code>{event.lesson}</code>" in body(client)

    def test_erasures_are_for_operators(self, page: Client, everything: Lesson, operator: Any) -> None:
        assert ">erasure<" not in body(page)
        page.force_login(operator)
        assert ">erasure<" in body(page)

    def test_nothing_of_another_account(self, page: Client, rival_account: Account) -> None:
        rita = member(rival_account, "maintainer", "rita")
        (lesson,) = make_lessons(1)
        Lesson.objects.filter(pk=lesson.pk).update(account=rival_account)
        happened(lesson)
        insert(
            "adjudication", reviewer_id=rita.user_id, subject=lesson.pk, account_id=rival_account.pk, idempotency_key=""
        )
        preference = insert("preference", account_id=rival_account.pk)
        insert("refinement_history", preference_id=preference["id"])
        get_user_model().objects.create_user("nina")
        people.grant(rita, rival_account.pk, "nina", "judge")
        text = body(page)
        assert "Nothing was done yet" in text
        assert len(list(export(page))) == 1

    def test_the_text_of_another_accounts_work_is_not_shown_beside_a_global_decision(
        self, page: Client, rival_account: Account
    ) -> None:
        insert("api_key", account_id=rival_account.pk)
        work = insert("interaction", account_id=rival_account.pk, task="Secret rocket")
        rita = member(rival_account, "judge", "rita")
        insert("adjudication", reviewer_id=rita.user_id, subject=work["id"], account_id=None, idempotency_key="")
        assert "Secret rocket" not in body(page)

    def test_every_word_of_the_journals_is_put_in_words_and_can_be_filtered(self) -> None:
        actions = {action for words in ACTIONS.values() for action in words}
        assert actions >= {*Verdict.values, *TrustEventKind.values, *OperatorAction.values}
        assert [action for action in actions if "_" in _words(action)] == []

    def test_roles_that_an_operator_set_elsewhere_do_not_break_it(self, page: Client, everything: Lesson) -> None:
        execute("UPDATE django_admin_log SET change_message = 'Changed role.'")
        assert "Role given" not in body(page)


class TestFilters:
    def test_by_actor_in_any_of_their_names(self, page: Client, everything: Lesson, ana: Person) -> None:
        for actor in ("ana", "ANA", ana.actor):
            text = body(page, actor=actor)
            assert UPHELD in text
            assert "the system" not in text
        assert "Quarantined by its evidence" in body(page, actor="system")
        assert "Nothing matches" in body(page, actor="abc123")

    def test_by_a_keys_prefix(self, page: Client) -> None:
        (lesson,) = make_lessons(1)
        happened(lesson, actor="api_key:abc123")
        assert "key abc123" in body(page, actor="abc123")

    def test_by_object(self, page: Client, everything: Lesson) -> None:
        other = Lesson.objects.create(text="Other", text_sha256="0" * 64, origin="imported", state="active")
        happened(other)
        text = body(page, object=str(other.pk))
        assert "Other" in text
        assert "tool_0()" not in text

    def test_by_action(self, page: Client, everything: Lesson) -> None:
        text = body(page, action="upheld")
        assert UPHELD in text
        assert "Quarantine upheld" in text
        assert "Quarantined by its evidence" not in text

    @pytest.mark.parametrize("wrong", [{"object": "x"}, {"before": "x"}, {"action": "dance"}])
    def test_that_mean_nothing_are_told_and_kept(self, page: Client, wrong: dict[str, str]) -> None:
        answer = page.get(PAGE, wrong)
        assert answer.status_code == 422
        assert "Nothing matches" in answer.content.decode()
        assert page.get(f"{PAGE}audit.csv", wrong).status_code == 422


class TestPages:
    def test_go_on_where_the_last_ended_though_more_is_written_meanwhile(
        self, page: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(audit, "PAGE", 3)
        (lesson,) = make_lessons(1)
        made = [happened(lesson).pk for _ in range(7)]
        seen: list[UUID] = []
        before: dict[str, Any] = {}
        while True:
            context = page.get(PAGE, before).context
            seen += [row["entry"].id for row in context["rows"]]
            happened(lesson)
            if context["older"] is None:
                break
            before = {"before": context["older"]}
        assert seen == made[::-1]

    def test_keep_the_filters(self, page: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(audit, "PAGE", 1)
        (lesson,) = make_lessons(1)
        happened(lesson)
        happened(lesson)
        assert "?action=quarantined&amp;before=" in body(page, action="quarantined")

    @pytest.mark.parametrize("n", [1, 30])
    def test_take_the_same_queries_for_any_number(
        self, page: Client, everything: Lesson, n: int, django_assert_num_queries: Callable[..., Any]
    ) -> None:
        for lesson in Lesson.objects.all():
            for _ in range(n):
                happened(lesson)
        body(page)
        with django_assert_num_queries(QUERIES):
            body(page)


def export(client: Client, **asked: Any) -> list[list[str]]:
    answer = client.get(f"{PAGE}audit.csv", asked)
    assert answer.headers["Content-Disposition"] == 'attachment; filename="audit.csv"'
    text = b"".join(answer.streaming_content).decode()  # type: ignore[arg-type]
    return list(csv.reader(io.StringIO(text)))


class TestTheExport:
    def test_has_every_entry_in_batches(self, page: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(audit, "BATCH", 2)
        (lesson,) = make_lessons(1)
        made = [str(happened(lesson).pk) for _ in range(5)]
        header, *rows = export(page)
        assert header == ["id", "at", "journal", "action", "actor", "account", "subject", "reason", "note"]
        assert [row[0] for row in rows] == made[::-1]
        assert datetime.fromisoformat(rows[0][1]) > datetime.now(UTC) - timedelta(minutes=5)

    def test_follows_the_filters(self, page: Client, everything: Lesson) -> None:
        assert {row[3] for row in export(page, action="upheld")[1:]} == {"uphold", "upheld"}

    def test_carries_no_formula_into_a_spreadsheet(self, page: Client, ana: Person) -> None:
        (lesson,) = make_lessons(1)
        insert("adjudication", reviewer_id=ana.user_id, subject=lesson.pk, note=HOSTILE, idempotency_key="")
        assert export(page)[1][-1] == f"'{HOSTILE}"


def test_what_people_wrote_is_escaped(page: Client, ana: Person) -> None:
    (lesson,) = make_lessons(1)
    Lesson.objects.filter(pk=lesson.pk).update(text=HOSTILE)
    insert("adjudication", reviewer_id=ana.user_id, subject=lesson.pk, note=HOSTILE, idempotency_key="")
    text = body(page)
    assert "<script>alert" not in text
    assert text.count("&lt;script&gt;") == 2


def test_who_has_no_role_reads_no_log(client: Client) -> None:
    assert client.get(PAGE).headers["Location"] == f"/login/?next={PAGE}"
    client.force_login(get_user_model().objects.create_user("nina"))
    assert client.get(PAGE).status_code == 403
    assert client.get(f"{PAGE}audit.csv").status_code == 403
