"""Learning health: what the store learns from, what came of it, what waits, and whether somebody should look.

A report is of one account, or of the whole installation for an operator. An account's report has its own work and the
lessons that it may see as counts, and nothing of what others wrote.
"""

from memory.services.health.report import HealthReport
from memory.services.health.run import report
from memory.services.health.store import scheduled_jobs

__all__ = ["HealthReport", "report", "scheduled_jobs"]
