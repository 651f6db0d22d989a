"""Journals name who acted by a code; people read names."""

from collections.abc import Iterable

from django.contrib.auth import get_user_model


def names(actors: Iterable[str]) -> dict[str, str]:
    """Each actor of a journal (`system`, `api_key:<prefix>`, `user:<id>`) as people read it."""
    wanted = set(actors)
    ids = {int(actor[5:]) for actor in wanted if actor.startswith("user:") and actor[5:].isdigit()}
    people = dict(get_user_model().objects.filter(pk__in=ids).values_list("pk", "username")) if ids else {}
    return {actor: _name(actor, people) for actor in wanted}


def _name(actor: str, people: dict[int, str]) -> str:
    kind, _, which = actor.partition(":")
    if kind == "user" and which.isdigit():
        return people.get(int(which), f"person {which}, who is gone")
    return f"key {which}" if kind == "api_key" else "the system"
