"""Webhooks: telling other systems of quarantines, contradictions and a review queue that nobody looks at.

Read in this order: `endpoints` (who wants to hear), `events` (what is told, in the transaction of what happened),
`review_age` (the one event that a clock causes), `lease` (who sends a delivery), `transport` (one request, and nowhere
that it must not go), `sending` (an attempt and what follows from it).
"""
