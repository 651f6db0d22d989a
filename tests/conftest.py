"""Fixtures shared by all tests. The cast: an agent, a machine, a rival's agent, a reader, an operator."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import TransactionTestCase
from pytest_django import DjangoDbBlocker
from rest_framework.test import APIClient

from memory.models import Account, ApiKey, EmbeddingSpace, Lesson
from memory.models.vocabulary import Origin
from memory.services import nudge
from memory.services.keys import create_key
from memory.services.lesson import NewLesson, store
from memory.services.space import embed, open_first_space

SYSTEM = Path(__file__).parent / "system"
GROWN = "SELECT relname FROM pg_class WHERE relkind = 'r' AND pg_total_relation_size(oid) > %s"
GROWN_BYTES = 2 * 2**20
_SPACE: dict[str, object] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of running systems come first: they wait for much, and at the end nothing would be left to do meanwhile."""
    items.sort(key=lambda item: SYSTEM not in item.path.parents)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """Opens the embedding space once: its indexes cannot be built inside a test's transaction."""
    with django_db_blocker.unblock():
        space = open_first_space()
        _SPACE.update({f.attname: getattr(space, f.attname) for f in EmbeddingSpace._meta.fields})


@pytest.fixture(scope="session", autouse=True)
def emptied_row_by_row() -> Iterator[None]:
    """A test that commits leaves few rows: to delete them takes a twentieth of the time of truncating every table.

    What has grown by rows that are dead is truncated. Triggers and foreign keys rest meanwhile. What migrations fill is
    the same for all tests and stays.
    """
    kept = {MigrationRecorder.Migration._meta.db_table, ContentType._meta.db_table, Permission._meta.db_table}

    def empty(_: object) -> None:
        tables = set(connection.introspection.table_names()) - kept
        with connection.cursor() as cursor:
            cursor.execute(GROWN, [GROWN_BYTES])
            grown = tables & {name for (name,) in cursor.fetchall()}
            emptying = [f"TRUNCATE {name} CASCADE" for name in sorted(grown)]
            emptying += [f"DELETE FROM {name}" for name in sorted(tables - grown)]
            cursor.execute("SET session_replication_role = replica")
            cursor.execute(";".join(emptying))
            cursor.execute("SET session_replication_role = DEFAULT")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", empty)
        yield


@pytest.fixture
def space(request: pytest.FixtureRequest, db: None) -> EmbeddingSpace:
    """The open space; a test that flushed the database gets the same row again, which the indexes know."""
    found = EmbeddingSpace.objects.filter(pk=_SPACE["id"]).first()
    return found or EmbeddingSpace.objects.create(**_SPACE)


@pytest.fixture(autouse=True)
def quiet_nudges() -> Iterator[list[tuple[str, UUID]]]:
    """No message leaves a test; the list says what would have been announced."""
    heard: list[tuple[str, UUID]] = []
    before = nudge.bind(lambda name, subject: heard.append((name, subject)))
    yield heard
    nudge.bind(before)


@dataclass(frozen=True, kw_only=True)
class Agent:
    """A caller of the API."""

    account: Account
    key: ApiKey
    token: str
    client: APIClient


def make_agent(account: Account, source: str, scopes: list[str]) -> Agent:
    made = create_key(account, name=f"{source} agent", source=source, scopes=scopes)
    client = APIClient(headers={"Authorization": f"Bearer {made.secret}"}, raise_request_exception=False)
    return Agent(account=account, key=made.key, token=made.secret, client=client)


@pytest.fixture
def account(space: EmbeddingSpace) -> Account:
    return Account.objects.create(slug="acme", name="Acme", review_policy="auto")


@pytest.fixture
def rival_account(space: EmbeddingSpace) -> Account:
    return Account.objects.create(slug="rival", name="Rival", review_policy="auto")


@pytest.fixture
def agent(account: Account) -> Agent:
    """Someone with judgement: outcomes have the source `caller`."""
    return make_agent(account, "caller", ["loop", "read"])


@pytest.fixture
def machine(account: Account) -> Agent:
    """The same account's runtime, which grades its own output."""
    return make_agent(account, "machine", ["loop"])


@pytest.fixture
def rival(rival_account: Account) -> Agent:
    """Another account's agent, who may see nothing of it."""
    return make_agent(rival_account, "caller", ["loop", "read"])


@pytest.fixture
def reader(account: Account) -> Agent:
    """A key that may only read."""
    return make_agent(account, "unknown", ["read"])


@pytest.fixture
def operator(db: None) -> object:
    return get_user_model().objects.create_superuser("olive", password="olive")


@pytest.fixture
def lesson(space: EmbeddingSpace) -> Callable[..., Lesson]:
    """Stores a lesson through the gates, with its vector."""

    def make(text: str, *, account_id: UUID | None = None) -> Lesson:
        written = store(
            NewLesson(text=text, origin=Origin.IMPORTED, path="test", actor="system", account_id=account_id)
        )
        assert written.lesson is not None, written.verdict
        embed([written.lesson], space)
        return written.lesson

    return make
