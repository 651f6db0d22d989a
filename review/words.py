"""What each verdict is called on its button, what follows from it, and what is said when it is done."""

from dataclasses import dataclass
from typing import Final

from memory.models.vocabulary import Verdict


@dataclass(frozen=True, kw_only=True)
class VerdictWords:
    """A verdict as people read it."""

    label: str  # verb and object, on the button
    consequence: str  # one line below it
    done: str  # said afterwards


VERDICTS: Final[dict[Verdict, VerdictWords]] = {
    Verdict.APPROVE: VerdictWords(label="Approve", consequence="Agents are handed it where it fits.", done="Approved."),
    Verdict.EDIT: VerdictWords(
        label="Edit wording",
        consequence="A new lesson takes its place. Evidence starts anew; the old value stays rejected.",
        done="Edited.",
    ),
    Verdict.REJECT: VerdictWords(
        label="Reject", consequence="It leaves retrieval, and its value is refused from now on.", done="Rejected."
    ),
    Verdict.QUARANTINE: VerdictWords(
        label="Quarantine", consequence="Kept out until a person lets it back.", done="Quarantined."
    ),
    Verdict.UPHOLD: VerdictWords(
        label="Uphold", consequence="It stays out. New evidence can still free it.", done="Upheld."
    ),
    Verdict.RELEASE_TO_TRIAL: VerdictWords(
        label="Release to trial",
        consequence="Served again with its record kept; a coin withholds it one time in five, and more if it loses on.",
        done="Released to trial.",
    ),
    Verdict.RELEASE: VerdictWords(
        label="Release", consequence="Served again, and its ledger starts anew.", done="Released."
    ),
    Verdict.RESTORE: VerdictWords(
        label="Restore", consequence="Back in service with its evidence; its tombstone goes.", done="Restored."
    ),
    Verdict.MERGE: VerdictWords(
        label="Merge as a duplicate",
        consequence="Its evidence becomes the other lesson's. A maintainer can restore it for 30 days.",
        done="Merged.",
    ),
    Verdict.EXEMPT_ROW: VerdictWords(
        label="Not caused by this lesson",
        consequence="The loss leaves this lesson's ledger; the counts keep it.",
        done="Loss excused.",
    ),
    Verdict.KEEP_FIRST: VerdictWords(label="Keep A", consequence="B is rejected, with a link to A.", done="Kept A."),
    Verdict.KEEP_SECOND: VerdictWords(label="Keep B", consequence="A is rejected, with a link to B.", done="Kept B."),
    Verdict.KEEP_BOTH: VerdictWords(
        label="Keep both",
        consequence="Both serve, each in the scope that you write down. The pair is not asked about again.",
        done="Kept both.",
    ),
    Verdict.MERGE_BOTH: VerdictWords(
        label="Merge",
        consequence="One new lesson takes the place of both. Evidence starts anew; the old values stay rejected.",
        done="Made one of two.",
    ),
    Verdict.NOT_A_CONTRADICTION: VerdictWords(
        label="Not a contradiction",
        consequence="Both serve. Asked again only when one of them is edited.",
        done="Marked as no contradiction.",
    ),
    Verdict.JUDGE_OUTCOME: VerdictWords(
        label="Judge", consequence="Recorded as an outcome of the source caller, with your name.", done="Judged."
    ),
}
