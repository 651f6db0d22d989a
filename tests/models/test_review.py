"""What waits for a person, and what persons decided, as PostgreSQL keeps it."""

import pytest

from memory.models.base import new_id
from tests.models.refusals import Checks, Journals, Tables, Uniques
from tests.models.rows import LATER, insert, new, row, run, store, the
from tests.models.rules import (
    Check,
    Journal,
    Unique,
    at_least,
    each,
    links,
    not_empty,
    refused,
    together,
    words,
)

LOW, HIGH = "0" * 64, "f" * 64
KINDS = (
    "new_lesson",
    "quarantine",
    "contradiction",
    "near_duplicate",
    "vague",
    "stale",
    "outcome_needed",
    "outcome_conflict",
    "second_opinion",
)
# Each takes a lesson out of retrieval or puts one back.
REASONED = (
    "reject",
    "quarantine",
    "release_to_trial",
    "release",
    "merge",
    "restore",
    "keep_first",
    "keep_second",
)
UNREASONED = (
    "approve",
    "edit",
    "uphold",
    "keep_both",
    "not_a_contradiction",
    "exempt_row",
    "judge_outcome",
    "undo",
)
VERDICTS = (*REASONED, *UNREASONED)


class TestReview(Tables, Checks, Uniques, Journals):
    tables = {
        "review_item": {
            **links("account_id", "resolved_by_id", "requested_by_id", "assigned_to_id"),
            "claimed_by_id": {"claim_expires_at": LATER},
        },
        "adjudication": links("account_id", "reviewer_id", "reverts_id"),
        "contradiction": links("account_id", "decided_by_id"),
        "alert_acknowledgement": links("account_id", "person_id"),
        "comment": links("author_id"),
        "second_opinion": links("author_id"),
    }
    checks = [
        words("review_item", "kind", *KINDS),
        words("review_item", "status", "open", "snoozed", "resolved", "obsolete"),
        at_least("review_item", "version", 1),
        together("review_item", "claim", {"claimed_by_id": the("auth_user"), "claim_expires_at": LATER}),
        words("adjudication", "verdict", *VERDICTS, beside={word: {"reason_code": "wrong"} for word in REASONED}),
        Check(
            name="adjudication_reason_given",
            table="adjudication",
            passes=each("verdict", *UNREASONED),
            refused=[{"verdict": verdict, "reason_code": ""} for verdict in REASONED],
        ),
        Check(
            name="contradiction_pair_ordered",
            table="contradiction",
            passes=[{"first_digest": LOW, "second_digest": HIGH}],
            refused=[{"first_digest": HIGH, "second_digest": LOW}, {"first_digest": LOW, "second_digest": LOW}],
        ),
        words("contradiction", "verdict", *VERDICTS),
        words("alert_acknowledgement", "state", "building", "watch", "attention"),
        not_empty("alert_acknowledgement", "alert"),
        not_empty("alert_acknowledgement", "note"),
        not_empty("comment", "text"),
        words("second_opinion", "verdict", *VERDICTS),
        Check(
            name="contradiction_first_digest_shape",
            table="contradiction",
            passes=each("first_digest", LOW),
            refused=each("first_digest", "", "0" * 63, "0" * 63 + "G"),
        ),
        Check(
            name="contradiction_second_digest_shape",
            table="contradiction",
            passes=each("second_digest", HIGH),
            refused=each("second_digest", "f" * 63, "f" * 63 + "g"),
        ),
    ]
    uniques = [
        Unique(
            name="review_item_one_unresolved",
            table="review_item",
            key=("kind", "subject"),
            passes=[{"kind": "stale"}, {"subject": new_id}, {"status": "resolved"}, {"status": "obsolete"}],
        ),
        Unique(
            name="review_item_one_unresolved",
            table="review_item",
            key=("kind", "subject"),
            given={"status": "snoozed"},
            passes=[{"status": "resolved"}],
        ),
        Unique(
            name="contradiction_pair_unique",
            table="contradiction",
            key=("account_id", "first_digest", "second_digest"),
            passes=[{"account_id": the("account")}, {"first_digest": LOW}, {"second_digest": HIGH}],
        ),
        Unique(
            name="contradiction_pair_unique",
            table="contradiction",
            key=("account_id", "first_digest", "second_digest"),
            given={"account_id": the("account")},
            passes=[{"account_id": new("account")}, {"account_id": None}, {"first_digest": LOW}],
        ),
        Unique(
            name="second_opinion_subject_author_unique",
            table="second_opinion",
            key=("subject", "author_id"),
            passes=[{"subject": new_id}, {"author_id": new("auth_user")}],
        ),
        Unique(
            name="adjudication_key_unique",
            table="adjudication",
            key=("reviewer_id", "idempotency_key"),
            given={"idempotency_key": "k"},
            passes=[{"reviewer_id": new("auth_user")}, {"idempotency_key": "another"}, {"idempotency_key": ""}],
        ),
        Unique(
            name="adjudication_reverts_id_key",
            table="adjudication",
            key=("reverts_id",),
            given={"reverts_id": the("adjudication")},
            passes=[{"reverts_id": None}],
        ),
    ]
    journals = [
        Journal(table="adjudication"),
        Journal(table="alert_acknowledgement", full={"account_id": the("account")}),
    ]


@pytest.mark.usefixtures("database")
def test_a_question_that_is_snoozed_is_not_opened_again() -> None:
    columns = row("review_item", subject=insert("review_item", status="snoozed")["subject"])
    with refused(by="review_item_one_unresolved"):
        store("review_item", columns)


@pytest.mark.usefixtures("database")
def test_a_question_may_come_back_after_each_answer() -> None:
    subject = insert("review_item", status="resolved")["subject"]
    insert("review_item", status="obsolete", subject=subject)
    insert("review_item", status="resolved", subject=subject)
    insert("review_item", status="open", subject=subject)
    assert run("SELECT count(*) FROM review_item WHERE subject = %s", subject) == [(4,)]


@pytest.mark.usefixtures("database")
def test_a_decision_outlives_its_item_and_its_lesson() -> None:
    lesson, item = insert("lesson")["id"], insert("review_item")["id"]
    insert("adjudication", subject=lesson, item=item)
    run("DELETE FROM review_item")
    run("DELETE FROM lesson")
    assert run("SELECT subject, item FROM adjudication") == [(lesson, item)]
