"""What was brought in from another store as PostgreSQL keeps it."""

from memory.models.base import new_id
from tests.models.refusals import Checks, Tables, Uniques
from tests.models.rows import new, word
from tests.models.rules import Check, Unique, links, not_empty


class TestImported(Tables, Checks, Uniques):
    tables = {"imported_row": links("account_id", "run_id")}
    checks = [
        not_empty("imported_row", "kind"),
        not_empty("imported_row", "legacy_id"),
        Check(
            name="imported_row_subject_or_refusal",
            table="imported_row",
            passes=[{"subject": None}, {"subject": new_id}, {"subject": new_id, "refusal": ""}],
            refused=[{"refusal": ""}],
        ),
    ]
    uniques = [
        Unique(
            name="imported_row_legacy_id_unique",
            table="imported_row",
            key=("account_id", "kind", "legacy_id"),
            passes=[{"account_id": new("account")}, {"kind": word}, {"legacy_id": word}],
        ),
    ]
