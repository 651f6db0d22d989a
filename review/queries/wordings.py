"""The texts that a verdict may write, as its form offers them to be edited."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db.models import Q

from memory.models import Contradiction, Lesson
from memory.models.vocabulary import Verdict
from memory.services.gates import MAX_CHARACTERS
from memory.services.pair_verdicts import FIRST, SECOND

FIELDS: Final = ("text", FIRST, SECOND)


@dataclass(frozen=True, kw_only=True)
class Wording:
    """A field with a text in it."""

    name: str  # one of FIELDS
    label: str
    value: str  # what was typed, else what it begins with
    help: str
    needed: bool  # empty is refused; else empty, or left as it was, changes nothing
    room: int = MAX_CHARACTERS  # characters that the field takes; a longer text that it begins with is still to be cut


def wordings(verdict: Verdict, subject: UUID, seen: Q, given: Mapping[str, str]) -> list[Wording]:
    """What may be written with this verdict on a lesson or a pair; nothing with most. `seen` is what may be shown."""
    if verdict == Verdict.EDIT:
        texts = list(Lesson.objects.filter(seen, pk=subject).values_list("text", flat=True))
        said = "One concrete sentence. It becomes a lesson of its own, without the old one's evidence."
        return [_wording("text", "New wording", "".join(texts), said, given, needed=True)]
    if verdict not in (Verdict.KEEP_BOTH, Verdict.MERGE_BOTH):
        return []
    pair = Contradiction.objects.filter(seen, pk=subject).values_list("first", "second").first()
    found = dict(Lesson.objects.filter(seen, pk__in=pair or ()).values_list("pk", "text"))
    if pair is None or len(found) < 2:
        return []
    a, b = found[pair[0]], found[pair[1]]
    if verdict == Verdict.MERGE_BOTH:
        said = "Both texts are in it: make them one concrete sentence."
        return [_wording("text", "One wording for both", f"{a}\n{b}", said, given, needed=True)]
    said = "Say where it holds, as in “For reads, …”. Left as it is, the lesson stays as it is."
    return [
        _wording(FIRST, "A, and where it holds", a, said, given),
        _wording(SECOND, "B, and where it holds", b, said, given),
    ]


def _wording(
    name: str, label: str, begins: str, said: str, given: Mapping[str, str], *, needed: bool = False
) -> Wording:
    value = given.get(name) or begins
    return Wording(name=name, label=label, value=value, help=said, needed=needed, room=max(MAX_CHARACTERS, len(begins)))
