"""Standings, band rates and the journal of trust as PostgreSQL keeps them."""

import pytest

from tests.models.refusals import Checks, Journals, Tables, Uniques
from tests.models.rows import insert, new, number, run, the
from tests.models.rules import Check, Journal, Unique, actors, at_least, links, within, words

KINDS = (
    "trial_opened",
    "trial_closed",
    "quarantined",
    "probation_opened",
    "probation_loss",
    "rehabilitated",
    "released_by_reviewer",
    "released_to_trial",
    "upheld",
    "quarantined_by_reviewer",
    "rejected_by_reviewer",
    "restored_by_reviewer",
    "approved",
    "edited",
    "merged",
    "pruned",
    "exempted",
)


class TestTrust(Tables, Checks, Uniques, Journals):
    tables = {"lesson_standing": links("lesson_id"), "band_rate": links("account_id"), "trust_event": {}}
    checks = [
        words("lesson_standing", "policy", "reference", "trial"),
        at_least("lesson_standing", "wins", 0),
        at_least("lesson_standing", "losses", 0),
        at_least("lesson_standing", "version", 1),
        at_least("band_rate", "lower", 1),
        at_least("band_rate", "scored", 0),
        at_least("band_rate", "losses", 0),
        within("band_rate", "rate", [1e-9, 0.5062, 1 - 1e-9], [0, 1, -0.1, 1.1, "NaN"]),
        within("band_rate", "prior", [1e-9, 0.5062, 1 - 1e-9], [0, 1, -0.1, 1.1, "NaN"]),
        Check(
            name="band_rate_upper_above_lower",
            table="band_rate",
            passes=[{"lower": 5, "upper": 5}, {"lower": 5, "upper": 9}, {"lower": 100, "upper": None}],
            refused=[{"lower": 5, "upper": 4}],
        ),
        words("trust_event", "kind", *KINDS),
        actors("trust_event"),
    ]
    uniques = [
        Unique(
            name="band_rate_key_unique",
            table="band_rate",
            key=("account_id", "lower"),
            passes=[{"account_id": the("account")}, {"lower": number}],
        ),
        Unique(
            name="band_rate_key_unique",
            table="band_rate",
            key=("account_id", "lower"),
            given={"account_id": the("account")},
            passes=[{"account_id": new("account")}, {"account_id": None}, {"lower": number}],
        ),
    ]
    journals = [Journal(table="trust_event")]


@pytest.mark.usefixtures("database")
def test_a_trust_event_outlives_its_lesson() -> None:
    lesson = insert("lesson")["id"]
    event = insert("trust_event", lesson=lesson, kind="pruned")["id"]
    run("DELETE FROM lesson")
    assert run("SELECT id, lesson FROM trust_event") == [(event, lesson)]
