"""What a measurement does with the product's own code, in a process on the measured store.

`python -m evaluation.growth.inside TASK [NUMBER ...]`: the environment says which store, the output is one JSON
document.
"""

import json
import os
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, Final

import django

TASKS: Final = 400  # different ones; agents add a number to each, so that none is known
WORKERS: Final = 2  # that help to build an index, PostgreSQL's own default
HALF_BYTES: Final = 700  # of a lesson: half of what building the index holds of it
ASKED, UNJUDGED = 2_000, 300  # lessons and pieces of work with a question for a person


def fill(lessons: int, accounts: int, agents: int, servings: int = 5) -> Mapping[str, Any]:
    """A store as in use: lessons, usage, questions, a key for each agent, and somebody who reviews.

    Each lesson was handed out `servings` times. With accounts, lessons are theirs, nothing was handed out yet, and the
    reviewer is an operator.
    """
    from evaluation.performance.corpus import Corpus
    from evaluation.performance.store import Shape, build
    from memory.embedding.active import provider
    from memory.models import Account, LessonStanding
    from memory.services.keys import create_key
    from memory.services.policies import policy

    corpus = Corpus(provider())
    build(Shape(lessons=lessons, servings=0 if accounts else servings, accounts=accounts), corpus, lambda _: None)
    # Else the first sweep would take it for a store whose policy was changed, and evaluate every lesson anew.
    LessonStanding.objects.update(policy=policy().name)
    users = list(Account.objects.order_by("pk")[: agents if accounts else 1])
    keys = [
        create_key(users[n % len(users)], name=f"agent {n}", source="caller", scopes=["loop", "read"]).secret
        for n in range(agents)
    ]
    return {"keys": keys, "tasks": corpus.tasks(TASKS).texts, "login": _reviewer(users[0], operator=bool(accounts))}


def _reviewer(account: Any, *, operator: bool) -> tuple[str, str]:
    """A login, with questions about the first lessons; user name and password."""
    from django.contrib.auth import get_user_model

    from evaluation.performance.desk import lay
    from memory.models import ApiKey, Lesson, Membership
    from memory.models.sql import execute
    from memory.models.vocabulary import Role
    from memory.services.authority import person

    password = secrets.token_urlsafe(16)
    user = get_user_model().objects.create_user("reviewer", password=password, is_superuser=operator)
    Membership.objects.create(account=account, user=user, role=Role.MAINTAINER.value)
    who = person(user.pk, "reviewer", superuser=operator)
    lay(account, ApiKey.objects.order_by("pk")[0], who, list(Lesson.objects.order_by("pk")[:ASKED]), works=UNJUDGED)
    execute("VACUUM (ANALYZE)")
    return "reviewer", password


def machine() -> Mapping[str, Any]:
    """What it runs on."""
    from evaluation.performance.machine import describe

    return asdict(describe())


def tables() -> Mapping[str, Any]:
    """What each table takes, after a VACUUM that gave back what it could."""
    from evaluation.growth import sizing
    from memory.models.sql import execute

    execute("VACUUM (ANALYZE)")
    return sizing.tables()


def sized() -> Mapping[str, Any]:
    """What the store takes, and what its words, its vector index and its upkeep do. The index is built once with half
    of the memory that it needs, to see how much that is and what it costs, and once with an eighth of the machine's."""
    import psutil

    from evaluation.growth import sizing
    from memory.models import Lesson

    half = max(1, Lesson.objects.count() * HALF_BYTES // sizing.MB)
    much = psutil.virtual_memory().total // 8 // sizing.MB
    built = [sizing.vector_index(memory, WORKERS) for memory in (half, much)]
    return {"tables": tables(), "words": sizing.words(), "vectors": built, "upkeep": sizing.upkeep()}


def back_up() -> Mapping[str, Any]:
    """Copies the store into a folder for a moment: bytes and seconds."""
    import tempfile
    import time
    from pathlib import Path

    from sonder_site import backup

    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        backup.back_up(Path(folder))
        seconds = time.perf_counter() - began
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return {"seconds": seconds, "bytes": size}


def costs() -> Mapping[str, Any]:
    """What pages and jobs take."""
    from evaluation.growth import costs

    return costs.costs()


def plans() -> Mapping[str, Any]:
    """Which large tables one loop of a small account and of the largest one reads from end to end."""
    from evaluation.growth import costs

    return costs.plans()


TOLD: Final[Mapping[str, Callable[..., Mapping[str, Any]]]] = MappingProxyType(
    {each.__name__: each for each in (fill, machine, tables, sized, back_up, costs, plans)}
)


def main() -> None:
    # Before numpy is imported: a second thread would cost more in waking up than it computes.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sonder_site.settings")
    django.setup()
    name, *given = sys.argv[1:]
    print(json.dumps(TOLD[name](*map(int, given))))


if __name__ == "__main__":
    main()
