"""The distiller and the summariser in force, and when the distiller wants to be left alone.

A rest keeps an outage or a rate limit from using up the attempts of everything that waits. It is this process's own:
each process finds out for itself, at the price of one attempt.
"""

import time
from functools import lru_cache

from memory import conf
from memory.distillers.base import Distiller, Summariser
from memory.distillers.factory import distiller_from, summariser_from

REST_SECONDS = 30.0  # after a failure that names no time
MAX_REST_SECONDS = 3600.0  # a server may ask for less
_rests_until = 0.0  # on the monotonic clock


@lru_cache(maxsize=1)
def _distiller(settings: conf.Conf) -> Distiller | None:
    return distiller_from(settings)


def distiller() -> Distiller | None:
    """The configured distiller; None while it rests, or if distillation is off. Raises DistillerUnavailable."""
    return None if time.monotonic() < _rests_until else _distiller(conf.current())


@lru_cache(maxsize=1)
def _summariser(settings: conf.Conf) -> Summariser:
    return summariser_from(settings)


def summariser() -> Summariser:
    """The configured summariser. Raises DistillerUnavailable."""
    return _summariser(conf.current())


def rest(seconds: float | None = None) -> None:
    """Leaves the distiller alone for so long; what was not said is REST_SECONDS."""
    global _rests_until
    _rests_until = time.monotonic() + min(REST_SECONDS if seconds is None else max(0.0, seconds), MAX_REST_SECONDS)


def wake() -> None:
    """Ends a rest."""
    rest(0.0)
