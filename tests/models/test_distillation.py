"""The queue of distillations as PostgreSQL keeps it."""

from memory.models.base import new_id
from tests.models.refusals import Checks, Tables
from tests.models.rows import EARLIER, LATER, Row
from tests.models.rules import Check, at_least, links, together, words

CLAIM: Row = {"claim_token": new_id, "owner": "host:1:task", "claimed_at": EARLIER, "lease_expires_at": LATER}
DONE: Row = {"completed_at": LATER, "result_reason": "no_candidate"}
STORED: Row = {"completed_at": LATER, "result_reason": "stored", "lesson": new_id}
# What a row in each state says besides.
STATES: dict[str, Row] = {
    "pending": {},
    "claimed": CLAIM,
    "retryable": {},
    "stored": STORED,
    "no_lesson": DONE,
    "cancelled": DONE,
    "failed": DONE,
}
OPEN, TERMINAL = ("pending", "claimed", "retryable"), ("stored", "no_lesson", "cancelled", "failed")
REASONS = (
    "stored",
    "not_concrete",
    "exact_duplicate",
    "semantic_duplicate",
    "rejected_value",
    "private",
    "contradicted",
    "no_candidate",
    "distiller_error",
    "attempts_exhausted",
    "cancelled_by_operator",
)
SIGNALS = ("tests_passed", "used", "copied", "accepted", "edited", "compiled", "rejected", "failed", "retracted")


def state(name: str, **changes: object) -> Row:
    """A row in a state, with some columns changed."""
    return {"state": name, **STATES[name], **changes}


class TestDistillation(Tables, Checks):
    tables = {"lesson_distillation": links("interaction_id")}
    checks = [
        Check(
            name="lesson_distillation_state_vocabulary",
            table="lesson_distillation",
            passes=[state(name) for name in STATES],
            refused=[{"state": name} for name in ("", "invented", "PENDING", "pending ")],
        ),
        words("lesson_distillation", "signal", *SIGNALS),
        Check(
            name="lesson_distillation_result_reason_vocabulary",
            table="lesson_distillation",
            passes=[state("no_lesson", result_reason=reason) for reason in REASONS],
            refused=[state("no_lesson", result_reason=reason) for reason in ("", "invented", "PRIVATE")],
        ),
        at_least("lesson_distillation", "attempts", 0),
        together("lesson_distillation", "claim", CLAIM, state="claimed"),
        Check(
            name="lesson_distillation_claimed_has_holder",
            table="lesson_distillation",
            passes=[state("claimed")],
            refused=[{"state": "claimed"}, *(state(name, **CLAIM) for name in STATES if name != "claimed")],
        ),
        Check(
            name="lesson_distillation_terminal_is_complete",
            table="lesson_distillation",
            passes=[state("retryable", result_reason="distiller_error")],
            refused=[
                *(state(name, completed_at=None) for name in TERMINAL),
                *(state(name, result_reason=None) for name in TERMINAL),
                *(state(name, completed_at=LATER) for name in OPEN),
            ],
        ),
        Check(
            name="lesson_distillation_lesson_iff_stored",
            table="lesson_distillation",
            passes=[state("stored")],
            refused=[
                state("stored", lesson=None),
                *(state(name, lesson=new_id) for name in STATES if name != "stored"),
            ],
        ),
    ]
