"""A row of a queue that a worker holds for a while: who holds it, and until when."""

from typing import Final

from django.db import models
from django.db.models import Q

from memory.models.base import together

CLAIM_COLUMNS: Final = ("claim_token", "owner", "claimed_at", "lease_expires_at")
_CLAIMED: Final = Q(**{f"{c}__isnull": False for c in CLAIM_COLUMNS})
_UNCLAIMED: Final = Q(**{f"{c}__isnull": True for c in CLAIM_COLUMNS})


class Leased(models.Model):
    """The columns of a claim. Only the holder of the token may record what became of the row."""

    claim_token = models.UUIDField(null=True)
    owner = models.CharField(max_length=200, null=True)
    claimed_at = models.DateTimeField(null=True)
    lease_expires_at = models.DateTimeField(null=True)
    attempts = models.IntegerField()

    class Meta:
        abstract = True


def held_while_claimed(table: str) -> list[models.CheckConstraint]:
    """CHECKs that a table's claim columns are set together, and if and only if the state is `claimed`."""
    return [
        together(table, "claim", CLAIM_COLUMNS),
        models.CheckConstraint(
            name=f"{table}_claimed_has_holder",
            condition=(Q(state="claimed") & _CLAIMED) | (~Q(state="claimed") & _UNCLAIMED),
            violation_error_message="the claim columns are set if and only if the state is claimed.",
        ),
    ]
