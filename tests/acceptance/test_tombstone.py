"""What was rejected never comes back: not restated, not in disguise, not by time, not from its source."""

from typing import Any

import pytest
from django.db import connection

from memory.models import Lesson, LessonTombstone
from memory.services import applying, contradiction, pruning, rejection, staleness
from memory.services.erasure import erase
from memory.services.scoping import lesson_account
from tests.acceptance import acts
from tests.acceptance.acts import CLOCK, CLOCK_TASK, CURSOR, CURSOR_TASK, TIMEOUT, TIMEOUT_AGAIN, TIMEOUT_TASK
from tests.conftest import Agent
from tests.distillers.server import lesson as answer
from tests.http.calls import report, start
from tests.services.workshop import model

pytestmark = pytest.mark.django_db

RETRY_AGAIN = (
    "Retry `requests.get` with a growing pause three times, because a peer that restarts answers a minute later."
)
RETRY = "Retry `requests.get` three times with a growing pause, because a peer that restarts answers a minute later."


def reject(agent: Agent, text: str, reviewer: Any) -> None:
    rejection.reject(acts.stored(agent.account, text).pk, reviewer=reviewer.pk, reason="it does harm")


def test_tombstone_laundering_sequence(agent: Agent, machine: Agent, lesson_scope: str, reviewer: Any) -> None:
    """A is rejected, B takes its place, A is said again and again and does well every time: A stays out."""
    acts.imported(agent.account, CURSOR)
    acts.learn(agent, TIMEOUT)
    rejected = acts.stored(agent.account, TIMEOUT)
    written = rejection.supersede(rejected.pk, RETRY, reviewer=reviewer.pk, reason="a timeout alone loses the work")
    assert written.lesson is not None
    for who in (agent, machine, agent):
        for text in (TIMEOUT, TIMEOUT_AGAIN, TIMEOUT.replace("peer", "pe\u200ber")):
            again = acts.learn(who, text)
            assert acts.distilled(agent, again) == ("no_lesson", "rejected_value")
            assert report(agent.client, again, "tests_passed").status_code == 201
        acts.background()
    assert acts.import_texts(agent.account, TIMEOUT, TIMEOUT_AGAIN)["refused"] == {"rejected_value": 2}
    assert TIMEOUT not in acts.recalled(agent, TIMEOUT_TASK)
    assert acts.recalled(agent, RETRY) == [RETRY]
    assert acts.recalled(agent, CURSOR_TASK) == [CURSOR]
    assert acts.looked_up(agent, TIMEOUT)["lessons"][0]["text"] == RETRY


def test_tombstone_survives_ttl_and_prune(agent: Agent, lesson_scope: str, reviewer: Any) -> None:
    """Ten years later, after every job that forgets or merges, the value is refused and its contemporary recalled."""
    scope = lesson_account(agent.account.pk)
    acts.import_texts(agent.account, TIMEOUT, CLOCK, RETRY, RETRY_AGAIN)
    reject(agent, TIMEOUT, reviewer)
    with connection.cursor() as cursor:
        for table in ("lesson", "lesson_tombstone", "lesson_embedding"):
            cursor.execute(f"UPDATE {table} SET created_at = created_at - interval '10 years'")
    tombstones = LessonTombstone.objects.filter(reason="rejected_by_reviewer")
    kept = tombstones.get().pk
    for _ in range(2):
        applying.apply(scope, pruning.current(scope).digest)
        pruning.forget_old()
        staleness.run()
        contradiction.detect()
        acts.background()
    assert LessonTombstone.objects.filter(reason="near_duplicate_pruned").count() == 1, "the passes did something"
    assert tombstones.get().pk == kept
    assert acts.distilled(agent, acts.learn(agent, TIMEOUT)) == ("no_lesson", "rejected_value")
    assert acts.import_texts(agent.account, TIMEOUT_AGAIN)["refused"] == {"rejected_value": 1}
    assert acts.recalled(agent, CLOCK_TASK) == [CLOCK]


DISGUISES = {
    "case": TIMEOUT.upper(),
    "white space": f"\t{TIMEOUT.replace(' ', '  ')}\n",
    "no-break spaces": TIMEOUT.replace(" ", "\u00a0"),
    "full width": "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in TIMEOUT),
    "Cyrillic": TIMEOUT.translate(str.maketrans("aeopcxPT", "\u0430\u0435\u043e\u0440\u0441\u0445\u0420\u0422")),
    "Greek": TIMEOUT.translate(str.maketrans("oP", "\u03bf\u03a1")),
    "mathematical": "".join(chr(0x1D41A + ord(c) - ord("a")) if "a" <= c <= "z" else c for c in TIMEOUT),
    "zero width": "\u200b".join(TIMEOUT),
    "soft hyphens": TIMEOUT.replace("a", "a\u00ad"),
    "bidi": f"\u202e{TIMEOUT}\u202c",
    "a byte order mark": f"\ufeff{TIMEOUT}",
    "tags": TIMEOUT + "".join(chr(0xE0000 + ord(c)) for c in "fresh"),
    "punctuation": f"\u201c{TIMEOUT.rstrip('.')}!!\u201d",
    "no punctuation": TIMEOUT.rstrip("."),
    "decomposed": TIMEOUT.replace("e", "e\u200d"),
}
# What a threshold on vectors decides, and on which side it falls.
SAME_WORDS = TIMEOUT_AGAIN
OTHER_WORDS = "Give each HTTP call a deadline of half a minute: a server that went away must not stop the whole job."
OPPOSITE = TIMEOUT.replace("Pass", "Never pass")
SIMILAR = "Pass `timeout=30` to every `subprocess.run` call, because without it a dead child blocks the build forever."
APART = {
    "Chinese": ("每次调用都要设置超时时间", "提交之前要关闭所有的游标"),
    "Arabic": ("اضبط المهلة في كل استدعاء", "أغلق المؤشر قبل كل حفظ"),
    "emoji": ("⏰⏰⏰", "🔒🔒🔒"),
}


def test_tombstone_key_normalization_attack(agent: Agent, lesson_scope: str, reviewer: Any) -> None:
    """No disguise of the letters helps; what says it in other words is a matter of the vectors; the rest is free."""
    acts.imported(agent.account, TIMEOUT)
    reject(agent, TIMEOUT, reviewer)
    vector = LessonTombstone.objects.values("embedding", "space").get()
    LessonTombstone.objects.update(embedding=None, space=None)  # the digest alone refuses
    with model() as server:
        for name, disguised in DISGUISES.items():
            assert acts.import_texts(agent.account, disguised)["refused"] == {"rejected_value": 1}, name
            server.answer = answer(disguised)
            assert acts.distilled(agent, acts.learn(agent, "anything")) == ("no_lesson", "rejected_value"), name
        assert acts.import_texts(agent.account, SAME_WORDS)["stored"] == 1, "it is not the same text"
        erase("lesson", acts.stored(agent.account, SAME_WORDS).pk, account_id=None, actor="system")

        LessonTombstone.objects.update(**vector)
        server.answer = answer(SAME_WORDS)
        assert acts.distilled(agent, acts.learn(agent, "anything")) == ("no_lesson", "rejected_value")
        for text in (OTHER_WORDS, OPPOSITE, SIMILAR):
            server.answer = answer(text)
            assert acts.distilled(agent, acts.learn(agent, "anything")) == ("stored", "stored"), text
    assert acts.looked_up(agent, SIMILAR)["lessons"][0]["text"] == SIMILAR
    for one, other in APART.values():
        assert acts.import_texts(agent.account, one, other)["stored"] == 2
        rejection.reject(acts.stored(agent.account, one).pk, reviewer=reviewer.pk, reason="not ours")
        assert acts.import_texts(agent.account, one)["refused"] == {"rejected_value": 1}
        assert acts.stored(agent.account, other).state == "active"


def test_tombstone_reextraction_stays_inactive(agent: Agent, lesson_scope: str, reviewer: Any) -> None:
    """The distillation of the same work again brings back neither a rejected nor a quarantined lesson's value."""
    source = acts.learn(agent, TIMEOUT)
    reject(agent, TIMEOUT, reviewer)
    acts.learn(agent, CLOCK)
    quarantined = acts.stored(agent.account, CLOCK)
    for attempt in range(5):
        report(agent.client, start(agent.client, f"{CLOCK_TASK}, attempt {attempt}")["id"], "failed")
    acts.background()
    quarantined.refresh_from_db()
    assert quarantined.state == "quarantined"
    report(agent.client, source, "tests_passed")  # the same interaction, judged again
    acts.background()
    for text in (TIMEOUT, CLOCK):
        again = acts.learn(agent, text)
        assert acts.distilled(agent, again) == ("no_lesson", "rejected_value")
    assert acts.distilled(agent, acts.learn(agent, CURSOR)) == ("stored", "stored"), "the other lesson of such work"
    states = dict(Lesson.objects.values_list("text", "state"))
    assert states == {TIMEOUT: "rejected", CLOCK: "quarantined", CURSOR: "active"}
    for task in (TIMEOUT_TASK, CLOCK_TASK):
        assert acts.recalled(agent, task) == []
    assert acts.recalled(agent, CURSOR_TASK) == [CURSOR]


def test_tombstone_no_second_memory_unit(agent: Agent, lesson_scope: str, reviewer: Any) -> None:
    """Restating a rejected value leaves one row, out of service, and the distillation says why; recall goes on."""
    acts.imported(agent.account, CURSOR)
    acts.learn(agent, TIMEOUT)
    reject(agent, TIMEOUT, reviewer)
    for text in (TIMEOUT, TIMEOUT_AGAIN):
        assert acts.distilled(agent, acts.learn(agent, text)) == ("no_lesson", "rejected_value")
    assert sorted(Lesson.objects.values_list("text", "state")) == [(CURSOR, "active"), (TIMEOUT, "rejected")]
    assert LessonTombstone.objects.count() == 1
    assert acts.recalled(agent, f"{TIMEOUT_TASK}; {CURSOR_TASK}") == [CURSOR]
