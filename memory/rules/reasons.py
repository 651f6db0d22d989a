"""Why a person decides as they do: six codes for each verdict that needs a reason, on the keys 1 to 6."""

from typing import Final

Codes = tuple[tuple[str, str], ...]

OTHER: Final = ("other", "Something else (say it in the note)")

_OUT: Final[Codes] = (
    ("wrong", "It is wrong"),
    ("outdated", "It was right once"),
    ("harmful", "It makes work fail"),
    ("too_vague", "It says nothing concrete"),
    ("too_narrow", "It fits one case only"),
    OTHER,
)
_BACK: Final[Codes] = (
    ("hard_work", "The work was hard, not the lesson wrong"),
    ("other_lesson", "Another lesson caused the losses"),
    ("bad_outcomes", "The outcomes were judged wrongly"),
    ("fixed_since", "What made it fail is gone"),
    ("too_little", "Too little evidence"),
    OTHER,
)
_STAY: Final[Codes] = (
    ("evidence_holds", "The evidence is convincing"),
    ("seen_myself", "I saw it fail"),
    ("contradicts", "It contradicts a better lesson"),
    ("outdated", "It was right once"),
    ("wait", "Wait for more evidence"),
    OTHER,
)
_CHOOSE: Final[Codes] = (
    ("more_right", "The kept one is right"),
    ("more_evidence", "The kept one has the better record"),
    ("newer", "The other is outdated"),
    ("clearer", "The kept one is clearer"),
    ("wider", "The kept one fits more work"),
    OTHER,
)
_APART: Final[Codes] = (
    ("different_scope", "Each is right in its own place"),
    ("different_subject", "They are about different things"),
    ("same_claim", "They say the same"),
    ("complementary", "They go together"),
    ("detector", "The detector misread the wording"),
    OTHER,
)
_NOT_ITS_FAULT: Final[Codes] = (
    ("other_lesson", "Another lesson caused the loss"),
    ("hard_work", "The work was too hard"),
    ("not_followed", "The lesson was not followed"),
    ("environment", "Something outside failed"),
    ("bad_outcome", "The outcome was judged wrongly"),
    OTHER,
)
_JUDGED: Final[Codes] = (
    ("checked", "I checked the work"),
    ("obvious", "It is plain from the answer"),
    ("asked", "I asked who used it"),
    ("tests", "Tests show it"),
    ("partly", "Partly, but enough to say"),
    OTHER,
)

REASONS: Final[dict[str, Codes]] = {
    "reject": _OUT,
    "quarantine": _OUT,
    "uphold": _STAY,
    "release": _BACK,
    "release_to_trial": _BACK,
    "restore": _BACK,
    "merge": _CHOOSE,
    "keep_first": _CHOOSE,
    "keep_second": _CHOOSE,
    "keep_both": _APART,
    "not_a_contradiction": _APART,
    "exempt_row": _NOT_ITS_FAULT,
    "judge_outcome": _JUDGED,
}


def reasons_for(verdict: str) -> Codes:
    """The codes of a verdict with their words, in the order of their keys; none where it needs no reason."""
    return REASONS.get(verdict, ())


def reason_in_words(code: str) -> str:
    """What a code says; the code itself where no verdict knows it any more."""
    return next((words for codes in REASONS.values() for known, words in codes if known == code), code)
