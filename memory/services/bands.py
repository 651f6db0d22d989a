"""How often lessons of each band lose, measured in this store."""

from django.db import transaction
from django.utils import timezone

from memory.models import BandRate
from memory.models.sql import fetch
from memory.rules.bands import BANDS, live_rate
from memory.services.policies import policy


def measure() -> int:
    """Measures every band of every scope anew; returns how many rows were written.

    A lesson belongs to the band of its scored retrievals, by the sources that the policy counts.
    """
    lessons = fetch(
        """
        SELECT l.account_id, sum(t.n)::bigint, sum(t.losses)::bigint
        FROM lesson_source_sum t JOIN lesson l ON l.id = t.lesson_id
        WHERE t.source = ANY(%s) GROUP BY l.account_id, l.id
        """,
        [list(policy().sources)],
    )
    scopes = {account for account, _, _ in lessons}
    with transaction.atomic():
        BandRate.objects.all().delete()
        for account in scopes:
            for band in BANDS:
                inside = [
                    (n, losses)
                    for own, n, losses in lessons
                    if own == account and n >= band.lower and (band.upper is None or n <= band.upper)
                ]
                scored, lost = sum(n for n, _ in inside), sum(losses for _, losses in inside)
                BandRate.objects.create(
                    account_id=account,
                    lower=band.lower,
                    upper=band.upper,
                    scored=scored,
                    losses=lost,
                    prior=band.prior,
                    rate=live_rate(prior=band.prior, losses=lost, scored=scored),
                    measured_at=timezone.now(),
                )
    return len(scopes) * len(BANDS)
