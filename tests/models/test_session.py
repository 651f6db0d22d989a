"""Sessions, their summaries and their one live turn as PostgreSQL keeps them."""

from tests.models.refusals import Checks, Tables, Uniques
from tests.models.rows import new, word
from tests.models.rules import Unique, links, not_empty


class TestSession(Tables, Checks, Uniques):
    tables = {
        "session": links("account_id", "project_id", "summarized_through_id"),
        "session_project_summary": links("session_id", "project_id", "summarized_through_id"),
        # The session is the primary key: a second live turn is a second row with the same key.
        "session_turn_claim": links("session_id"),
    }
    checks = [not_empty("session", "external_id")]
    uniques = [
        Unique(
            name="session_account_external_id_unique",
            table="session",
            key=("account_id", "external_id"),
            passes=[{"account_id": new("account")}, {"external_id": word}],
        ),
        Unique(
            name="session_project_summary_unique",
            table="session_project_summary",
            key=("session_id", "project_id"),
            passes=[{"session_id": new("session")}, {"project_id": new("project")}],
        ),
    ]
