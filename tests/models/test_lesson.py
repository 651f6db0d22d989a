"""Embedding spaces, lessons and their vectors as PostgreSQL keeps them."""

import pytest

from tests.models.refusals import Checks, Tables, Uniques
from tests.models.rows import EARLIER, digest, insert, new, row, run, store, the, word
from tests.models.rules import Unique, actors, digests, links, not_empty, proves, refused, within, words

SIMILARITIES = (
    "min_similarity",
    "uncorroborated_min_similarity",
    "duplicate_similarity",
    "prune_similarity",
    "tombstone_similarity",
    "contradiction_similarity",
)
STATES = ("candidate", "active", "quarantined", "rejected", "superseded")


class TestLesson(Tables, Checks, Uniques):
    tables = {
        "embedding_space": {},
        "import_run": {},
        "lesson": links("account_id", "source_import_id", "reviewed_by_id"),
        # The account is copied from the lesson, whatever the statement says; the lesson's own is checked.
        "lesson_embedding": links("lesson_id", "space_id"),
    }
    checks = [
        within("embedding_space", "dimension", [1, 384, 4000], [0, 4001]),
        *(within("embedding_space", name, [-1, 0.62, 1], [-1.001, 1.001, "NaN"]) for name in SIMILARITIES),
        digests("import_run", "sha256"),
        actors("import_run"),
        not_empty("lesson", "text"),
        digests("lesson", "text_sha256"),
        words("lesson", "origin", "distilled", "imported", "edited", "seeded"),
        words("lesson", "state", *STATES),
    ]
    uniques = [
        Unique(
            name="embedding_space_identity_unique",
            table="embedding_space",
            key=("model", "revision", "dimension"),
            passes=[{"model": word}, {"revision": "2"}, {"dimension": 4}],
        ),
        Unique(
            name="embedding_space_one_active",
            table="embedding_space",
            key=("is_active",),
            given={"is_active": True},
            passes=[{"is_active": False}],
        ),
        # Lessons of the whole installation have no account, and repeat no text either.
        Unique(
            name="lesson_account_text_unique",
            table="lesson",
            key=("account_id", "text_sha256"),
            passes=[{"account_id": the("account")}, {"text_sha256": digest}],
        ),
        Unique(
            name="lesson_account_text_unique",
            table="lesson",
            key=("account_id", "text_sha256"),
            given={"account_id": the("account")},
            passes=[{"account_id": new("account")}, {"account_id": None}, {"text_sha256": digest}],
        ),
        Unique(
            name="lesson_embedding_lesson_space_unique",
            table="lesson_embedding",
            key=("lesson_id", "space_id"),
            passes=[{"lesson_id": new("lesson")}, {"space_id": new("embedding_space")}],
        ),
    ]


@pytest.mark.usefixtures("database")
def test_any_number_of_spaces_may_be_inactive() -> None:
    insert("embedding_space", is_active=False)
    insert("embedding_space", is_active=False)
    assert run("SELECT count(*) FROM embedding_space WHERE NOT is_active") == [(2,)]


@pytest.mark.usefixtures("database")
@proves("lesson_embedding_fits")
@pytest.mark.parametrize("vector", ["[1]", "[1,0]", "[1,0,0,0]"])
def test_a_vector_of_another_dimension_than_its_space_is_refused(vector: str) -> None:
    columns = row("lesson_embedding", embedding=vector)
    with refused(by="lesson_embedding_dimension"):
        store("lesson_embedding", columns)


@pytest.mark.usefixtures("database")
@proves("lesson_embedding_fits")
def test_a_stored_vector_cannot_change_to_another_dimension_or_to_a_space_of_another() -> None:
    insert("lesson_embedding")
    with refused(by="lesson_embedding_dimension"):
        run("UPDATE lesson_embedding SET embedding = '[1,0]'")
    with refused(by="lesson_embedding_dimension"):
        run("UPDATE lesson_embedding SET space_id = %s", insert("embedding_space", dimension=2)["id"])
    wider = insert("embedding_space", dimension=4)["id"]
    run("UPDATE lesson_embedding SET space_id = %s, embedding = '[1,0,0,0]'", wider)
    assert run("SELECT vector_dims(embedding) FROM lesson_embedding") == [(4,)]


def copies() -> tuple[object, ...]:
    """What the only embedding row says of its lesson: account, state, reviewed."""
    (copied,) = run("SELECT account_id, state, reviewed FROM lesson_embedding")
    return copied


@pytest.mark.usefixtures("database")
@proves("lesson_embedding_fits")
@pytest.mark.parametrize("state", STATES)
def test_a_new_vector_says_what_its_lesson_says_whatever_the_statement_says(state: str) -> None:
    account = insert("account")["id"]
    lesson = insert("lesson", account_id=account, state=state, reviewed_at=EARLIER)["id"]
    lies = {"account_id": None, "state": "invented", "reviewed": False}
    store("lesson_embedding", {**row("lesson_embedding", lesson_id=lesson), **lies})
    assert copies() == (account, state, True)


@pytest.mark.usefixtures("database")
@proves("lesson_embedding_fits")
def test_a_vector_that_moves_to_another_lesson_says_what_that_one_says() -> None:
    insert("lesson_embedding")
    run("UPDATE lesson_embedding SET lesson_id = %s", insert("lesson", state="quarantined", reviewed_at=EARLIER)["id"])
    assert copies() == (None, "quarantined", True)


@pytest.mark.usefixtures("database")
@proves("lesson_copies_to_embedding")
def test_every_change_of_a_lessons_account_state_or_review_reaches_its_vectors_in_all_spaces() -> None:
    lesson = insert("lesson_embedding")["lesson_id"]
    insert("lesson_embedding", lesson_id=lesson, space_id=new("embedding_space"))
    bystander = insert("lesson_embedding")["id"]
    account = insert("account")["id"]

    def both(column: str) -> list[tuple[object, ...]]:
        return run(f"SELECT DISTINCT {column} FROM lesson_embedding WHERE lesson_id = %s", lesson)

    run("UPDATE lesson SET state = 'quarantined' WHERE id = %s", lesson)
    assert both("state") == [("quarantined",)]
    run("UPDATE lesson SET account_id = %s WHERE id = %s", account, lesson)
    assert both("account_id") == [(account,)]
    run("UPDATE lesson SET reviewed_at = now() WHERE id = %s", lesson)
    assert both("reviewed") == [(True,)]
    run("UPDATE lesson SET reviewed_at = NULL WHERE id = %s", lesson)
    assert both("reviewed") == [(False,)]
    assert run("SELECT account_id, state, reviewed FROM lesson_embedding WHERE id = %s", bystander) == [
        (None, "active", False)
    ]


@pytest.mark.usefixtures("database")
@proves("lesson_embedding_fits")
@pytest.mark.parametrize("lie", ["state = 'quarantined'", "reviewed = true", "account_id = (SELECT id FROM account)"])
def test_a_vector_cannot_be_made_to_say_anything_else_than_its_lesson(lie: str) -> None:
    insert("account")
    insert("lesson_embedding")
    run(f"UPDATE lesson_embedding SET {lie}")
    assert copies() == (None, "active", False)


@pytest.mark.usefixtures("database")
@proves("embedding_space_identity_fixed")
@pytest.mark.parametrize("change", ["model = 'x'", "revision = 'x'", "dimension = 4"])
def test_a_space_stays_the_space_that_its_vectors_were_made_in(change: str) -> None:
    insert("embedding_space")
    with refused(by="embedding_space_identity_fixed"):
        run(f"UPDATE embedding_space SET {change}")


@pytest.mark.usefixtures("database")
@proves("embedding_space_identity_fixed")
def test_the_thresholds_of_a_space_may_be_calibrated_again() -> None:
    insert("embedding_space", model="m")
    run("UPDATE embedding_space SET model = 'm', min_similarity = 0.3, calibrated_at = now(), is_active = true")
    assert run("SELECT min_similarity, is_active FROM embedding_space") == [(0.3, True)]
