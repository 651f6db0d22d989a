"""Interactions and the outcomes reported on them as PostgreSQL keeps them."""

from decimal import Decimal

import pytest

from memory.models import Outcome
from tests.models.refusals import Checks, Journals, Tables, Uniques
from tests.models.rows import EARLIER, VECTOR, insert, new, row, run, the
from tests.models.rules import Journal, Unique, at_least, links, not_empty, refused, together, within, words

OTHER_REWARD = "0.90"
SOURCES = ("caller", "machine", "attributed", "self_curriculum", "unknown")
SIGNALS = ("tests_passed", "used", "copied", "accepted", "edited", "compiled", "rejected", "failed", "retracted")


class TestOutcome(Tables, Checks, Uniques, Journals):
    tables = {
        "interaction": {
            **links("account_id", "project_id", "session_id", "api_key_id"),
            "space_id": {"task_embedding": VECTOR},
        },
        "outcome": links("interaction_id", "api_key_id", "judge_id"),
    }
    checks = [
        not_empty("interaction", "task"),
        at_least("interaction", "tokens_in", 0),
        at_least("interaction", "tokens_out", 0),
        together("interaction", "embedding", {"task_embedding": VECTOR, "space_id": the("embedding_space")}),
        words("outcome", "source", *SOURCES),
        words("outcome", "signal", *SIGNALS),
        within("outcome", "reward", [-1, "-0.5", 0, 1], ["-1.01", "1.01", "NaN"]),
        at_least("outcome", "sequence", 1),
    ]
    uniques = [
        Unique(
            name="interaction_account_idempotency_key_unique",
            table="interaction",
            key=("account_id", "idempotency_key"),
            given={"idempotency_key": "k"},
            passes=[{"account_id": new("account")}, {"idempotency_key": "l"}, {"idempotency_key": None}],
        ),
        Unique(
            name="outcome_interaction_source_sequence_unique",
            table="outcome",
            key=("interaction_id", "source", "sequence"),
            passes=[{"interaction_id": new("interaction")}, {"source": "machine"}, {"sequence": 2000}],
        ),
    ]
    journals = [
        Journal(
            table="outcome",
            full={"api_key_id": the("api_key"), "judge_id": the("auth_user")},
            may_change=("credited_at",),
        )
    ]


@pytest.mark.usefixtures("database")
def test_interactions_without_an_idempotency_key_are_all_stored() -> None:
    insert("interaction", idempotency_key=None)
    insert("interaction", idempotency_key=None)
    assert run("SELECT count(*) FROM interaction") == [(2,)]


@pytest.mark.usefixtures("database")
def test_an_outcome_may_be_credited_and_credited_again_and_changes_in_nothing_else() -> None:
    before = insert("outcome")
    run("UPDATE outcome SET credited_at = now()")
    run("UPDATE outcome SET credited_at = NULL")
    run("UPDATE outcome SET credited_at = %s", EARLIER)
    with refused(by="outcome_append_only"):
        run("UPDATE outcome SET credited_at = now(), reward = %s", OTHER_REWARD)
    ((reward, credited),) = run("SELECT reward, credited_at FROM outcome")
    assert (reward, credited.year) == (before["reward"], 2026)


@pytest.mark.usefixtures("database")
def test_an_outcome_cannot_be_overwritten_by_an_upsert() -> None:
    first = insert("outcome")
    again = row("outcome", sequence=first["sequence"], reward=OTHER_REWARD)
    names, places = ", ".join(again), ", ".join(["%s"] * len(again))
    with refused(by="outcome_append_only"):
        run(
            f"INSERT INTO outcome ({names}) VALUES ({places})"
            " ON CONFLICT (interaction_id, source, sequence) DO UPDATE SET reward = excluded.reward",
            *again.values(),
        )
    assert run("SELECT reward FROM outcome") == [(Decimal("0.80"),)]


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("told", [{}, {"source": ""}, {"source": "invented"}, {"source": "Caller"}])
def test_an_outcome_that_does_not_say_who_judged_is_refused_through_the_orm_too(told: dict[str, str]) -> None:
    interaction = insert("interaction")["id"]
    with refused(by="outcome_source_vocabulary"):
        Outcome.objects.create(interaction_id=interaction, sequence=1, signal="accepted", reward="0.80", **told)


@pytest.mark.usefixtures("database")
def test_an_outcome_whose_source_is_null_is_refused_through_the_orm_too() -> None:
    interaction = insert("interaction")["id"]
    fields = {"interaction_id": interaction, "sequence": 1, "signal": "accepted", "reward": "0.80", "source": None}
    with refused(by="outcome.source"):
        Outcome.objects.create(**fields)
    with refused(by="outcome.source"):
        Outcome.objects.bulk_create([Outcome(**fields)])
