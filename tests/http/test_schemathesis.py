"""Every operation of the OpenAPI document, asked with generated requests, good and bad: no 5xx, no surprise.

Data for an operation comes from its own description, so an operation that is added is tested from its first day.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from memory.models import Account, Lesson
from tests.conftest import Agent, make_agent
from tests.http.calls import report, start
from tests.models.rows import EARLIER, insert

pytestmark = pytest.mark.django_db

EXAMPLES = 8  # of each operation, always the same
ENDED = {"result_reason": "attempts_exhausted", "completed_at": EARLIER}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    negative_data_rejection,
]

api = schemathesis.openapi.from_dict(SchemaGenerator().get_schema(request=None, public=True))
api.app = get_wsgi_application()
api.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])


@dataclass(frozen=True, kw_only=True)
class Everyone:
    """A key with every scope, and a row of its account for each collection of the API."""

    agent: Agent
    ids: dict[str, Any]  # by the name of the collection in an address


@pytest.fixture
def everyone(account: Account, lesson: Callable[..., Lesson]) -> Iterator[Everyone]:
    """An account where something has happened.

    Requests must not close the connection that holds the test's transaction; Django's test client sees to the same.
    """
    learned = lesson("Sort names with `sorted(names, key=str.casefold)` so that case does not decide.")
    agent = make_agent(account, "caller", ["loop", "read", "govern", "admin"])
    own = start(agent.client, "sort the names", project="rockets", session="talk-1")["id"]
    report(agent.client, own, "failed")
    rows = {table: insert(table, account_id=account.pk)["id"] for table in ("project", "preference", "session")}
    more = {"account_id": account.pk, "project_id": rows["project"]}
    rows |= {table: insert(table, **more)["id"] for table in ("fact", "task")}
    insert("lesson_distillation", interaction_id=own, state="failed", **ENDED)
    ids = {f"{table}s": pk for table, pk in rows.items()}
    ids |= {"interactions": own, "distillations": own, "lessons": learned.pk}
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield Everyone(agent=agent, ids=ids)
    for signal in signals:
        signal.connect(close_old_connections)


@api.parametrize()
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_an_operation_keeps_its_word(case: Case[Any], everyone: Everyone) -> None:
    """Good requests are about a row that is there, while it is; the others mostly about none."""
    collection = case.path.split("/")[3]
    if "id" in case.path_parameters and collection in everyone.ids and _is_good(case):
        case.path_parameters["id"] = str(everyone.ids[collection])
    case.call_and_validate(headers={"Authorization": f"Bearer {everyone.agent.token}"}, checks=CHECKS)


def _is_good(case: Case[Any]) -> bool:
    return case.meta is not None and case.meta.generation.mode == GenerationMode.POSITIVE
