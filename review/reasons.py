"""Why people do what is no verdict on a lesson: return to an earlier wording, keep a lesson out of a plan, undo one.

Six each, on the keys 1 to 6. Journals keep the words, so that they can be read without this table.
"""

from typing import Final

from memory.errors import Invalid
from memory.rules.reasons import OTHER, Codes

NOTE_LIMIT: Final = 800  # characters

RETURN: Final[Codes] = (
    ("worse", "Work got worse with it"),
    ("unwanted", "It is not what is wanted"),
    ("mistake", "It was changed by mistake"),
    ("too_broad", "It says more than it should"),
    ("outdated", "What it answered to is over"),
    OTHER,
)
KEEP: Final[Codes] = (
    ("different_scope", "Each is right in its own place"),
    ("different_subject", "They are about different things"),
    ("complementary", "They go together"),
    ("better_wording", "The one to go is worded better"),
    ("better_record", "The one to go has the better record"),
    OTHER,
)
UNDO_PLAN: Final[Codes] = (
    ("different", "They were not the same after all"),
    ("worse", "Work got worse since"),
    ("wrong_keeper", "The wrong one was kept"),
    ("mistake", "It was applied by mistake"),
    ("test", "It was a trial run"),
    OTHER,
)


def in_words(codes: Codes, code: str, note: str) -> str:
    """The reason as journals keep it. Raises Invalid naming `reason_code` or `note`."""
    known = dict(codes)
    if code not in known:
        raise Invalid.field("reason_code", "choose a reason.")
    if len(note) > NOTE_LIMIT:
        raise Invalid.field("note", f"at most {NOTE_LIMIT} characters.")
    if code == OTHER[0]:
        if not note:
            raise Invalid.field("note", "say what it is.")
        return note
    return f"{known[code]}. {note}" if note else f"{known[code]}."


def with_keys(codes: Codes) -> list[tuple[str, str, str]]:
    """(action of the key, code, words), as the reason form shows them."""
    return [(f"reason_{n}", code, words) for n, (code, words) in enumerate(codes, start=1)]
