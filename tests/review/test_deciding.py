"""The decision request: what it answers, to whom, and what it keeps of what was typed."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from memory.models import Account, Adjudication, Lesson, Membership
from memory.services.adjudication import ACTS, version_of
from review.words import VERDICTS
from tests.services.people import member

TEXT = "Pass `timeout=10` to every `requests.get()` call."
pytestmark = pytest.mark.django_db


@pytest.fixture
def one(lesson: Callable[..., Lesson]) -> Lesson:
    return lesson(TEXT)


def enter(account: Account, role: str, name: str) -> Client:
    member(account, role, name)
    client = Client()
    client.force_login(get_user_model().objects.get(username=name))
    return client


def body(one: Lesson, verdict: str, **more: str) -> dict[str, str]:
    return {
        "subject": str(one.pk),
        "decision": verdict,
        "expected_version": str(version_of(one.pk)),
        "idempotency_key": uuid4().hex,
        "next": "/review/keys/",
        **more,
    }


def state(one: Lesson) -> str:
    return Lesson.objects.values_list("state", flat=True).get(pk=one.pk)


class TestADecision:
    def test_goes_on_with_the_page_that_the_form_names(self, account: Account, one: Lesson) -> None:
        ana = enter(account, "reviewer", "ana")
        answer = ana.post(reverse("review:decide"), body(one, "reject", reason_code="wrong"))
        assert (answer.status_code, answer.headers["Location"]) == (302, "/review/keys/")
        assert state(one) == "rejected"

    @pytest.mark.parametrize("onward", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", ""])
    def test_never_leaves_the_site(self, account: Account, one: Lesson, onward: str) -> None:
        ana = enter(account, "reviewer", "ana")
        answer = ana.post(reverse("review:decide"), body(one, "reject", reason_code="wrong", next=onward))
        assert answer.headers["Location"] == reverse("review:lesson", args=[one.pk])

    def test_sent_twice_with_one_key_is_one_decision(self, account: Account, one: Lesson) -> None:
        ana = enter(account, "reviewer", "ana")
        sent = body(one, "reject", reason_code="wrong")
        answers = [ana.post(reverse("review:decide"), sent).status_code for _ in range(2)]
        assert (answers, Adjudication.objects.count()) == ([302, 302], 1)

    def test_without_a_needed_reason_shows_the_form_again_with_what_was_typed(
        self, account: Account, one: Lesson
    ) -> None:
        ana = enter(account, "reviewer", "ana")
        answer = ana.post(reverse("review:decide"), body(one, "reject", note="It hides <b>the</b> cause."))
        assert answer.status_code == 422
        shown = answer.content.decode()
        assert "choose a reason" in shown
        assert "It hides &lt;b&gt;the&lt;/b&gt; cause." in shown
        assert state(one) == "active"

    def test_on_what_changed_is_409_with_the_note_and_a_way_to_decide_anew(self, account: Account, one: Lesson) -> None:
        ana, ben = enter(account, "reviewer", "ana"), enter(account, "reviewer", "ben")
        late = body(one, "reject", reason_code="wrong", note="mine")
        ana.post(reverse("review:decide"), body(one, "quarantine", reason_code="harmful"))
        answer = ben.post(reverse("review:decide"), late)
        shown = answer.content.decode()
        assert answer.status_code == 409
        assert "ana" in shown
        assert "mine" in shown
        again = ben.get(f"{reverse('review:ask', args=['reject'])}?subject={one.pk}&expected_version=1&note=mine")
        assert b"mine" in again.content
        assert state(one) == "quarantined"

    @pytest.mark.parametrize(
        ("name", "value", "status"),
        [
            ("subject", "", 422),
            ("subject", "not-an-id", 422),
            ("subject", "00000000-0000-7000-8000-000000000000", 404),
            ("item", "x", 422),
            ("item", "00000000-0000-7000-8000-000000000000", 404),
            ("expected_version", "", 422),
            ("expected_version", "1e9", 422),
            ("decision", "", 422),
            ("decision", "undo", 422),
            ("decision", "drop table", 422),
            ("reason_code", "because", 422),
            ("note", "x" * 2001, 422),
        ],
    )
    def test_with_a_bad_field_is_refused_and_changes_nothing(
        self, account: Account, one: Lesson, name: str, value: str, status: int
    ) -> None:
        ana = enter(account, "reviewer", "ana")
        sent = body(one, "reject", reason_code="wrong") | {name: value}
        assert ana.post(reverse("review:decide"), sent).status_code == status
        assert (state(one), Adjudication.objects.count()) == ("active", 0)


class TestWhoMayNot:
    @pytest.mark.parametrize("role", ["viewer", "judge"])
    def test_lower_roles_are_told_what_they_need(self, account: Account, one: Lesson, role: str) -> None:
        vic = enter(account, role, "vic")
        answer = vic.post(reverse("review:decide"), body(one, "reject", reason_code="wrong"))
        assert answer.status_code == 403
        assert b"role reviewer" in answer.content
        assert state(one) == "active"

    def test_without_a_login_the_form_leads_there_and_back(self, one: Lesson) -> None:
        answer = Client().get(reverse("review:ask", args=["reject"]))
        assert answer.status_code == 302
        assert answer.headers["Location"].startswith("/login/?next=")

    def test_without_any_membership_nothing_is_shown_or_decided(self, one: Lesson) -> None:
        client = Client()
        client.force_login(get_user_model().objects.create_user("nobody"))
        assert client.get(reverse("review:ask", args=["reject"]), {"subject": one.pk}).status_code == 403
        assert client.post(reverse("review:decide"), body(one, "reject", reason_code="wrong")).status_code == 403

    def test_a_membership_taken_away_ends_it_at_once(self, account: Account, one: Lesson) -> None:
        ana = enter(account, "reviewer", "ana")
        Membership.objects.all().delete()
        assert ana.post(reverse("review:decide"), body(one, "reject", reason_code="wrong")).status_code == 403

    def test_a_foreign_page_cannot_post_a_decision(self, account: Account, one: Lesson) -> None:
        strict = Client(enforce_csrf_checks=True)
        member(account, "reviewer", "ana")
        strict.force_login(get_user_model().objects.get(username="ana"))
        assert strict.post(reverse("review:decide"), body(one, "reject", reason_code="wrong")).status_code == 403
        assert state(one) == "active"

    @pytest.mark.parametrize("address", ["review:decide", "review:undo"])
    def test_a_get_decides_nothing(self, account: Account, address: str) -> None:
        assert enter(account, "reviewer", "ana").get(reverse(address)).status_code == 405


class TestUndo:
    def test_takes_the_latest_back_and_says_so(self, account: Account, one: Lesson) -> None:
        ana = enter(account, "reviewer", "ana")
        ana.post(reverse("review:decide"), body(one, "reject", reason_code="wrong"))
        answer = ana.post(reverse("review:undo"), {"next": "/review/keys/"})
        assert (answer.status_code, state(one)) == (302, "active")
        assert "Undone: rejected." in ana.get("/review/keys/").content.decode()

    def test_with_nothing_to_undo_says_so(self, account: Account, one: Lesson) -> None:
        answer = enter(account, "reviewer", "ana").post(reverse("review:undo"))
        assert (answer.status_code, b"nothing to undo" in answer.content) == (409, True)

    def test_of_what_somebody_changed_since_is_refused(self, account: Account, one: Lesson) -> None:
        ana, ben = enter(account, "reviewer", "ana"), enter(account, "reviewer", "ben")
        ana.post(reverse("review:decide"), body(one, "quarantine", reason_code="harmful"))
        ben.post(reverse("review:decide"), body(one, "release", reason_code="fixed_since"))
        answer = ana.post(reverse("review:undo"))
        assert (answer.status_code, b"changed after this decision" in answer.content) == (409, True)
        assert state(one) == "active"


def test_every_verdict_that_can_be_given_has_its_words() -> None:
    assert set(VERDICTS) == set(ACTS)
