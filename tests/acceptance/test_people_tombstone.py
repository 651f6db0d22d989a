"""What a reviewer rejects in the browser never comes back, until a reviewer restores it or takes the rejection back."""

from typing import Any

import pytest
from django.db import connection

from memory.models import Adjudication, Lesson, LessonTombstone, ReviewItem
from memory.services import applying, contradiction, pruning, staleness
from memory.services.scoping import lesson_account
from tests.acceptance import acts
from tests.acceptance.acts import CLOCK, CLOCK_TASK, CURSOR, CURSOR_TASK, TIMEOUT, TIMEOUT_AGAIN, TIMEOUT_TASK
from tests.acceptance.browser import BULK, Browser, at_browser, said
from tests.acceptance.test_tombstone import APART, DISGUISES, OPPOSITE, OTHER_WORDS, RETRY, RETRY_AGAIN, SIMILAR
from tests.conftest import Agent
from tests.http.calls import report, start

pytestmark = pytest.mark.django_db
REFUSED = "one like it was rejected before, or is in quarantine. If it is right, bring that one back."


@pytest.fixture
def rita(agent: Agent) -> Browser:
    return at_browser(agent.account, "reviewer", "rita.b")


@pytest.fixture
def ben(agent: Agent) -> Browser:
    return at_browser(agent.account, "reviewer", "ben")


def learned_again(agent: Agent, text: str) -> tuple[str, str | None]:
    return acts.distilled(agent, acts.learn(agent, text))


def stays_out(agent: Agent, browser: Browser, text: str = TIMEOUT, again: str = TIMEOUT_AGAIN) -> None:
    """Neither work, nor a file, nor a person's new wording of something else brings it back."""
    for words in (text, again):
        assert learned_again(agent, words) == ("no_lesson", "rejected_value")
        assert acts.import_texts(agent.account, words)["refused"] == {"rejected_value": 1}
        answer = browser.decide("edit", acts.stored(agent.account, CURSOR), text=words)
        assert answer.status_code == 422
        assert REFUSED in said(answer)
    assert text not in acts.recalled(agent, TIMEOUT_TASK)
    assert acts.recalled(agent, CURSOR_TASK) == [CURSOR], "a neighbour that was never rejected"


def test_tombstone_laundering_sequence(agent: Agent, rita: Browser, ben: Browser, lesson_scope: str) -> None:
    """Rita rejects A; Ben puts B in its place, words others as A, and work does well with A: A stays out."""
    acts.imported(agent.account, CURSOR)
    acts.learn(agent, TIMEOUT)
    rejected = acts.stored(agent.account, TIMEOUT)
    rita.did("reject", rejected)
    stays_out(agent, ben)
    other = acts.imported(agent.account, CLOCK)
    ben.did("edit", other, text=RETRY)
    for _ in range(2):
        work = acts.learn(agent, TIMEOUT)
        assert report(agent.client, work, "tests_passed").status_code == 201
        acts.background()
    stays_out(agent, ben)
    assert [(e.verdict, e.reviewer_id) for e in Adjudication.objects.filter(subject=rejected.pk)] == [
        ("reject", rita.who.user_id)
    ]
    assert RETRY in acts.recalled(agent, RETRY)


@pytest.mark.parametrize("way", ["restore", "undo", "restore undone"])
def test_only_a_restore_or_an_undo_lifts_it_and_an_undone_restore_buries_it_again(
    agent: Agent, rita: Browser, lesson_scope: str, way: str
) -> None:
    acts.imported(agent.account, CURSOR)
    lesson = acts.imported(agent.account, TIMEOUT)
    rita.did("reject", lesson)
    stays_out(agent, rita)
    if way == "undo":
        rita.undo()
    else:
        rita.did("restore", lesson)
    assert acts.recalled(agent, TIMEOUT_TASK) == [TIMEOUT]
    assert not LessonTombstone.objects.exists()
    assert learned_again(agent, TIMEOUT) == ("no_lesson", "exact_duplicate"), "it is there, and not refused"
    if way == "restore undone":
        rita.undo()
        assert LessonTombstone.objects.get().reason == "rejected_by_reviewer"
        stays_out(agent, rita)
    decisions = [made.verdict for made in Adjudication.objects.filter(subject=lesson.pk).order_by("created_at", "id")]
    assert decisions[0] == "reject", "and nothing is taken out of the journal"
    assert len(decisions) == {"restore": 2, "undo": 2, "restore undone": 3}[way]


def test_tombstone_survives_ttl_and_prune(agent: Agent, rita: Browser, lesson_scope: str) -> None:
    """Ten years later, after every job that forgets or merges, the value that a person rejected is refused."""
    scope = lesson_account(agent.account.pk)
    acts.import_texts(agent.account, TIMEOUT, CLOCK, CURSOR, RETRY, RETRY_AGAIN)
    rita.did("reject", acts.stored(agent.account, TIMEOUT))
    with connection.cursor() as cursor:
        for table in ("lesson", "lesson_tombstone", "lesson_embedding"):
            cursor.execute(f"UPDATE {table} SET created_at = created_at - interval '10 years'")
    for _ in range(2):
        applying.apply(scope, pruning.current(scope).digest)
        pruning.forget_old()
        staleness.run()
        contradiction.detect()
        acts.background()
    assert LessonTombstone.objects.filter(reason="near_duplicate_pruned").count() == 1, "the passes did something"
    stays_out(agent, rita)
    assert acts.recalled(agent, CLOCK_TASK) == [CLOCK]


def test_tombstone_key_normalization_attack(agent: Agent, rita: Browser, lesson_scope: str) -> None:
    """No disguise helps in the form of a new wording; other words and opposites pass, and scripts stay apart."""
    old = acts.imported(agent.account, CURSOR)
    rita.did("reject", acts.imported(agent.account, TIMEOUT))
    LessonTombstone.objects.update(embedding=None, space=None)  # the digest alone refuses
    for name, disguised in DISGUISES.items():
        answer = rita.decide("edit", old, text=disguised)
        assert answer.status_code == 422, name
        assert REFUSED in said(answer), name
    for text in (OTHER_WORDS, OPPOSITE, SIMILAR):
        rita.did("edit", acts.imported(agent.account, f"{text[:-1]}, and log `why`."), text=text)
        assert acts.stored(agent.account, text).state == "active"
    for one, other in APART.values():
        assert acts.import_texts(agent.account, one, other)["stored"] == 2
        rita.did("reject", acts.stored(agent.account, one))
        answer = rita.decide("edit", old, text=one)
        assert (answer.status_code, REFUSED in said(answer)) == (422, True)
        assert acts.stored(agent.account, other).state == "active"


def test_tombstone_reextraction_stays_inactive(agent: Agent, rita: Browser, lesson_scope: str) -> None:
    """The same work again brings back neither what a person rejected nor what a person keeps out."""
    source = acts.learn(agent, TIMEOUT)
    acts.learn(agent, CLOCK)
    rita.did("reject", acts.stored(agent.account, TIMEOUT))
    rita.did("quarantine", acts.stored(agent.account, CLOCK))
    report(agent.client, source, "tests_passed")  # the same interaction, judged again
    acts.background()
    for text in (TIMEOUT, CLOCK):
        assert learned_again(agent, text) == ("no_lesson", "rejected_value")
    assert learned_again(agent, CURSOR) == ("stored", "stored"), "the other lesson of such work"
    states = dict(Lesson.objects.values_list("text", "state"))
    assert states == {TIMEOUT: "rejected", CLOCK: "quarantined", CURSOR: "active"}
    for task in (TIMEOUT_TASK, CLOCK_TASK):
        assert acts.recalled(agent, task) == []
    assert acts.recalled(agent, CURSOR_TASK) == [CURSOR]
    rita.did("release", acts.stored(agent.account, CLOCK))
    assert acts.recalled(agent, CLOCK_TASK) == [CLOCK], "a person lets it back, and nobody else"


@pytest.mark.parametrize("policy", ["reference", "trial"])
def test_what_a_person_keeps_out_has_its_pause_though_it_never_lost(
    agent: Agent, rita: Browser, settings: Any, policy: str
) -> None:
    settings.SONDER_TRUST_POLICY, settings.SONDER_PROBATION_SHARE = policy, 0.5
    acts.learn(agent, CLOCK)
    rita.did("quarantine", acts.stored(agent.account, CLOCK))
    assert [acts.recalled(agent, f"{CLOCK_TASK}, run {n}") for n in range(20)] == [[]] * 20


def test_tombstone_no_second_memory_unit(agent: Agent, rita: Browser, lesson_scope: str) -> None:
    """Many rejected at once leave one row and one tombstone each; one undo of all brings all back."""
    texts = {TIMEOUT: TIMEOUT_TASK, CLOCK: CLOCK_TASK}
    acts.import_texts(agent.account, CURSOR, *texts)
    marked = [f"{acts.stored(agent.account, text).pk}::0" for text in texts]
    order = {"act": "reject", "marked": marked, "confirmed": "1", "reason_code": "harmful"}
    answer = rita.client.post(BULK, order)
    assert answer.status_code == 200
    for text, task in texts.items():
        assert learned_again(agent, text) == ("no_lesson", "rejected_value")
        assert acts.recalled(agent, f"{task}; {CURSOR_TASK}") == [CURSOR]
    assert sorted(Lesson.objects.values_list("text", "state")) == sorted(
        [(CURSOR, "active"), *((text, "rejected") for text in texts)]
    )
    assert LessonTombstone.objects.count() == len(texts)
    made = [str(pk) for pk in Adjudication.objects.values_list("pk", flat=True)]
    assert rita.client.post("/review/inbox/bulk/undo/", {"made": made}).status_code == 200
    assert not LessonTombstone.objects.exists()
    for text, task in texts.items():
        assert acts.recalled(agent, task) == [text]


def test_a_candidate_whose_value_was_rejected_meanwhile_serves_only_by_a_persons_word(
    agent: Agent, rita: Browser, lesson_scope: str
) -> None:
    """No job, no good work and no agent lets it in; its page says that it was rejected."""
    agent.account.review_policy = "gated"
    agent.account.save(update_fields=["review_policy"])
    work = acts.learn(agent, TIMEOUT)
    waiting = acts.lesson_of(work)
    rita.did("reject", waiting)
    for _ in range(3):
        assert report(agent.client, work, "tests_passed").status_code in (200, 201)
        report(agent.client, str(start(agent.client, TIMEOUT_TASK)["id"]), "accepted")
        acts.background()
    waiting.refresh_from_db()
    assert waiting.state == "rejected"
    assert not ReviewItem.objects.filter(subject=waiting.pk, status="open").exists()
    assert acts.recalled(agent, TIMEOUT_TASK) == []
    shown: Any = said(rita.client.get(f"/review/lessons/{waiting.pk}/"))
    assert "Rejected" in shown
    rita.did("restore", waiting)
    assert acts.recalled(agent, TIMEOUT_TASK) == [TIMEOUT]
