"""Endpoints of webhooks and the queue of their deliveries as PostgreSQL keeps them."""

from memory.models.base import new_id
from tests.models.refusals import Checks, Tables
from tests.models.rows import EARLIER, LATER, Row
from tests.models.rules import Check, at_least, digests, each, links, not_empty, together, words

CLAIM: Row = {"claim_token": new_id, "owner": "host:1:task", "claimed_at": EARLIER, "lease_expires_at": LATER}
DONE: Row = {"completed_at": LATER}
OFF: Row = {"disabled_at": EARLIER, "disabled_because": "operator"}
# What a delivery in each state says besides.
STATES: dict[str, Row] = {"pending": {}, "claimed": CLAIM, "delivered": DONE, "failed": DONE, "cancelled": DONE}
EVENTS = ("lesson.quarantined", "contradiction.found", "review.late")


def state(name: str, **changes: object) -> Row:
    """A delivery in a state, with some columns changed."""
    return {"state": name, **STATES[name], **changes}


class TestWebhooks(Tables, Checks):
    tables = {"webhook_endpoint": links("account_id"), "webhook_delivery": links("endpoint_id")}
    checks = [
        not_empty("webhook_endpoint", "url"),
        Check(
            name="webhook_endpoint_events_vocabulary",
            table="webhook_endpoint",
            passes=[*({"events": [event]} for event in EVENTS), {"events": list(EVENTS)}],
            refused=each("events", [], ["invented"], ["lesson.quarantined", "invented"], ["webhook.test"]),
        ),
        digests("webhook_endpoint", "salt"),
        words("webhook_endpoint", "review_told", "building", "watch", "attention"),
        Check(
            name="webhook_endpoint_disabled_because_vocabulary",
            table="webhook_endpoint",
            passes=[{**OFF, "disabled_because": word} for word in ("operator", "failing", "gone")],
            refused=[{**OFF, "disabled_because": word} for word in ("", "invented", "GONE")],
        ),
        together("webhook_endpoint", "disabled", OFF),
        words("webhook_delivery", "event", *EVENTS, "webhook.test"),
        Check(
            name="webhook_delivery_state_vocabulary",
            table="webhook_delivery",
            passes=[state(name) for name in STATES],
            refused=[{"state": name} for name in ("", "invented", "PENDING", "pending ")],
        ),
        at_least("webhook_delivery", "attempts", 0),
        together("webhook_delivery", "claim", CLAIM, state="claimed"),
        Check(
            name="webhook_delivery_claimed_has_holder",
            table="webhook_delivery",
            passes=[state("claimed")],
            refused=[{"state": "claimed"}, *(state(name, **CLAIM) for name in STATES if name != "claimed")],
        ),
        Check(
            name="webhook_delivery_terminal_is_complete",
            table="webhook_delivery",
            passes=[state("delivered")],
            refused=[
                *(state(name, completed_at=None) for name in ("delivered", "failed", "cancelled")),
                *(state(name, completed_at=LATER) for name in ("pending", "claimed")),
            ],
        ),
    ]
