"""People's pages lead past no gate, and only a person decides there: what must hold on every path, in the browser."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from memory.models import Adjudication, Contradiction, EmbeddingSpace, Lesson, Outcome, ReviewItem, WriteRefusal
from memory.services import contradiction
from tests.acceptance import acts
from tests.acceptance.acts import CLOCK, CURSOR, TIMEOUT, TIMEOUT_TASK
from tests.acceptance.browser import BULK, DECIDE, Browser, at_browser, said
from tests.acceptance.test_gateway import GOOD, ORDER, REFUSED, SECRET, VAGUE
from tests.conftest import Agent
from tests.http.calls import LESSONS, nothing_changes, report, start
from tests.services.near import place

pytestmark = pytest.mark.django_db

WHY = {"private": "something private", "rejected_value": "rejected before", "exact_duplicate": "says exactly this"}
OLD = "Page through results in the order of their `score`, so that the best come first."
ALWAYS = "Always retry `fetch_rates()` when it times out, because the peer restarts at noon."
NEVER = "Never retry `fetch_rates()` when it times out, because the peer restarts at noon."
SCOPED = "On weekdays, always retry `fetch_rates()` when it times out, because the peer restarts at noon."
ONE_OF_BOTH = "Retry `fetch_rates()` once, 5 s after it timed out, because the peer restarts at noon."


@pytest.fixture
def rita(agent: Agent) -> Browser:
    return at_browser(agent.account, "reviewer", "rita.b")


def pair_of(agent: Agent, space: EmbeddingSpace, axis: int) -> Contradiction:
    """Two lessons that say the opposite, as the scheduled job finds them; each has its own place in the space."""
    for text in (ALWAYS, NEVER):
        place(acts.imported(agent.account, text), space, 0.95, axis)
    contradiction.detect()
    return Contradiction.objects.get()


def test_no_page_of_the_reviewers_is_a_way_past_the_gates(
    agent: Agent, rita: Browser, lesson_scope: str, space: EmbeddingSpace
) -> None:
    """Rewording, merging a pair and giving each of it its scope refuse what the gates refuse, say why, and record it.

    The other decisions write no text, whatever is sent along.
    """
    rita.did("reject", acts.imported(agent.account, TIMEOUT))
    acts.imported(agent.account, CLOCK)
    old, pair = acts.imported(agent.account, OLD), pair_of(agent, space, axis=3)
    ways: dict[str, Callable[[str], Any]] = {
        "edit": lambda text: rita.decide("edit", old, text=text),
        "merge_both": lambda text: rita.decide("merge_both", pair, text=text),
        "keep_both, A": lambda text: rita.decide("keep_both", pair, first_text=text),
        "keep_both, B": lambda text: rita.decide("keep_both", pair, second_text=text),
    }
    before = set(Lesson.objects.values_list("pk", "text", "state"))
    decided = Adjudication.objects.count()
    account = agent.account.pk if lesson_scope == "account" else None
    for name, write in ways.items():
        for text, reason in REFUSED.items():
            WriteRefusal.objects.all().delete()
            answer = write(text)
            assert answer.status_code == 422, (name, reason)
            assert WHY[reason] in said(answer), (name, reason)
            assert text.replace("`", "") in said(answer).replace("`", ""), "what was typed is kept"
            refusals = list(WriteRefusal.objects.values_list("path", "reason", "account"))
            assert refusals == [("edit", reason, account)], (name, reason)
    assert set(Lesson.objects.values_list("pk", "text", "state")) == before
    assert (Adjudication.objects.count(), Contradiction.objects.get().verdict) == (decided, None)
    assert acts.tables_with("AKIAIOSFODNN7EXAMPLE") == []

    other, third = (acts.imported(agent.account, text) for text in (CURSOR, GOOD["import"]))
    rita.did("approve", old, text=SECRET, first_text=SECRET)
    rita.did("quarantine", other, text=SECRET)
    marked = f"{third.pk}::{0}"
    preview = rita.client.post(BULK, {"act": "reject", "marked": marked, "text": SECRET})
    rita.client.post(
        BULK, {"act": "reject", "marked": marked, "confirmed": "1", "reason_code": "other", "text": SECRET}
    )
    assert preview.status_code == 200
    assert Lesson.objects.get(pk=third.pk).state == "rejected"
    assert acts.tables_with("AKIAIOSFODNN7EXAMPLE") == []

    rita.did("edit", old, text=GOOD["edit"])
    rita.did("keep_both", pair, first_text=SCOPED)
    for text in (GOOD["edit"], SCOPED):
        written = acts.stored(agent.account, text)
        assert (written.state, written.origin, written.reviewed_by_id) == ("active", "edited", rita.who.user_id)
    rita.undo()
    rita.did("merge_both", pair, text=ONE_OF_BOTH)
    assert acts.stored(agent.account, ONE_OF_BOTH).state == "active"
    rita.did("edit", acts.stored(agent.account, GOOD["edit"]), text=VAGUE)
    assert ReviewItem.objects.filter(kind="vague", subject=acts.stored(agent.account, VAGUE).pk).exists()


POSTED = (
    "decide/", "undo/", "inbox/bulk/", "inbox/bulk/undo/", "inbox/unskip/", "items/{item}/claim/",
    "items/{item}/skip/", "items/{item}/snooze/", "items/{item}/assign/", "items/{item}/comment/",
    "items/{item}/opinion/", "lessons/{lesson}/second-opinion/", "interactions/{work}/private/", "prune/replan/",
    "people/{account}/", "health/acknowledge/", "demo/remove/",
)  # fmt: skip


def test_only_a_person_in_their_own_browser_decides(agent: Agent, machine: Agent, lesson_scope: str) -> None:
    """No key opens the pages and no field makes somebody else of a person; a reviewer's decision names the reviewer."""
    agent.account.review_policy = "gated"
    agent.account.save(update_fields=["review_policy"])
    rita, vic, judy = (
        at_browser(agent.account, role, name)
        for role, name in (("reviewer", "rita.b"), ("viewer", "vic"), ("judge", "judy"))
    )
    work = acts.learn(agent, TIMEOUT, task=ORDER)
    learned = acts.lesson_of(work)
    item = rita.item("new_lesson", learned)
    decision = {
        "decision": "approve", "subject": learned.pk, "item": item.pk, "expected_version": item.version, "note": ORDER,
        "reviewer": rita.who.user_id, "reviewer_id": rita.who.user_id, "user": "rita.b", "role": "maintainer",
        "is_superuser": "1", "actor": f"user:{rita.who.user_id}", "judge": rita.who.user_id,
    }  # fmt: skip
    names = {"item": item.pk, "lesson": learned.pk, "work": work, "account": agent.account.pk}
    with nothing_changes():
        for path in POSTED:
            address = "/review/" + path.format(**names)
            for sender in (agent.client, machine.client, Client()):
                answer = sender.post(address, decision)
                assert answer.status_code == 302, address
                assert answer.url.startswith("/login/"), address
        strict = Client(enforce_csrf_checks=True)
        strict.cookies = rita.client.cookies
        assert strict.post(DECIDE, decision).status_code == 403, "a page elsewhere cannot send it for her"
        for reader in (vic, judy):
            assert reader.client.post(DECIDE, decision).status_code == 403
    assert acts.looked_up(agent, TIMEOUT)["lessons"] == []

    judged = {"decision": "judge_outcome", "signal": "rejected", "note": "it hides dead peers", "source": "machine"}
    second = str(start(agent.client, "another task")["id"])
    acts.finish(agent, second, "done")
    judy.did("judge_outcome", UUID(second), **judged)
    outcome = Outcome.objects.get(interaction=second)
    assert (outcome.source, outcome.judge_id, outcome.api_key_id) == ("caller", judy.who.user_id, None)
    assert report(machine.client, second, "tests_passed").status_code == 201
    acts.background()
    assert acts.pages(agent, "/api/v1/interactions/")[0]["id"] == second

    answer = rita.client.post(DECIDE, {**decision, "reviewer": judy.who.user_id, "user": "judy"})
    assert answer.status_code == 302
    made = Adjudication.objects.get(subject=learned.pk)
    assert (made.reviewer_id, made.verdict, made.note) == (rita.who.user_id, "approve", ORDER)
    (event, *_) = acts.pages(agent, f"{LESSONS}{learned.pk}/history/")
    assert (event["kind"], event["actor"]) == ("approved", f"user:{rita.who.user_id}")
    learned.refresh_from_db()
    assert (learned.state, learned.reviewed_by_id) == ("active", rita.who.user_id)
    assert acts.recalled(agent, TIMEOUT_TASK) == [TIMEOUT]
    assert "rita.b" in rita.page("/review/audit/")
