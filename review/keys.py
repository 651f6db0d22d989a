"""The keys of the review pages: what each does where. Buttons, sheet and handler all read this one table."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Key:
    """One key, or two pressed after each other."""

    scope: str  # the pages it works on; `page` and `go` work everywhere
    action: str  # what templates call it
    key: str  # as KeyboardEvent.key says it; "g d" is g, then d
    label: str  # what it does, for the sheet


def _keys(scope: str, *rows: tuple[str, str, str]) -> tuple[Key, ...]:
    return tuple(Key(scope=scope, action=action, key=key, label=label) for action, key, label in rows)


#: a lets serve, q keeps out, t rejects, on every screen: a habit from one cannot do the opposite on another.
KEYS: Final[tuple[Key, ...]] = (
    *_keys(
        "go",
        ("dashboard", "g d", "Dashboard"),
        ("inbox", "g i", "Inbox"),
        ("quarantine", "g q", "Quarantine"),
        ("contradictions", "g c", "Contradictions"),
        ("outcomes", "g o", "Outcomes"),
        ("preferences", "g p", "Preferences"),
        ("prune", "g x", "Prune plan"),
        ("retrieval", "g r", "Retrieval"),
        ("health", "g h", "Health"),
    ),
    *_keys(
        "page",
        ("search", "/", "Search"),
        ("keys", "?", "This sheet"),
        ("undo", "u", "Undo your last decision"),
        ("previous", "[", "Previous item"),
        ("next", "]", "Next item"),
        ("skip", "s", "Skip"),
        ("snooze", "z", "Snooze, or ask for more data"),
        ("comment", "c", "Comment"),
        ("permalink", "y", "Copy the link to this page"),
        ("start", "n", "Start with the most urgent item"),
        ("mark", "m", "Mark a row"),
        ("mark_range", "M", "Mark up to here"),
        ("assign", "@", "Assign"),
        ("back", "Escape", "Back out"),
    ),
    *_keys(
        "lesson",
        ("serve", "a", "Let it serve: approve, or release to trial"),
        ("release", "A", "Release outright"),
        ("keep_out", "q", "Keep it out: quarantine, or uphold"),
        ("reject", "t", "Reject"),
        ("edit", "e", "Edit the wording"),
        ("duplicate", "d", "Duplicate of another lesson"),
        ("second", "2", "Ask for a second opinion"),
        ("next_loss", "l", "Next loss"),
        ("excuse", "x", "Not caused by this lesson"),
        ("diff", "f", "Compare with the earlier wording"),
        ("why", "i", "Why: thresholds and parts"),
        ("tables", "v", "Charts as tables"),
    ),
    *_keys(
        "contradiction",
        ("first", "1", "Keep A"),
        ("second", "2", "Keep B"),
        ("both", "3", "Keep both, each in its scope"),
        ("merge", "4", "Merge"),
        ("none", "5", "Not a contradiction"),
    ),
    *_keys(
        "judge",
        ("win", "w", "It worked"),
        ("loss", "l", "It did not work"),
        ("private", "!", "Flag private data"),
        *((f"lesson_{n}", str(n), f"Not caused by lesson {n}") for n in range(1, 10)),
    ),
    *_keys(
        "preference",
        ("restore", "b", "Restore an earlier version"),
        ("compare", "f", "Compare two versions"),
        ("edit", "e", "Edit the wording"),
    ),
    *_keys("prune", ("uncheck", "x", "Take the row out of the plan"), ("restore", "b", "Restore everything")),
    *_keys("board", *((f"group_{n}", str(n), f"Jump to group {n}") for n in range(1, 7))),
    *_keys("playground", ("run", "Enter", "Run"), ("why", "i", "Why: the parts of a score")),
    *_keys("health", ("tables", "v", "Charts as tables")),
    *_keys("reason", *((f"reason_{n}", str(n), f"Reason {n}") for n in range(1, 7))),
)

_BY_NAME: Final = {(key.scope, key.action): key for key in KEYS}


def key_of(scope: str, action: str) -> Key:
    """The key of an action; KeyError if the table has none."""
    return _BY_NAME[scope, action]
