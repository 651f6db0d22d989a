"""Rates by key, so that one runaway agent does not starve the others."""

import time
from typing import TYPE_CHECKING, ClassVar, Final

import structlog
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

from memory import conf
from memory.api.permissions import scope_of
from memory.models import ApiKey

if TYPE_CHECKING:  # DRF's settings load this module while its views are half loaded
    from rest_framework.views import APIView

log = structlog.get_logger(__name__)
PAUSE_SECONDS: Final = 10.0  # between attempts while the counters are away, so that not every request waits for them


class KeyThrottle(SimpleRateThrottle):
    """`SONDER_THROTTLE_LOOP` for the loop, `SONDER_THROTTLE_READ` for everything else; 429 says when to come back."""

    scope = "key"
    paused_until: ClassVar[float] = 0.0  # on the monotonic clock, for this process

    def __init__(self) -> None:
        """The rate depends on the view, so it is read when the request is known."""

    def allow_request(self, request: Request, view: "APIView") -> bool:
        """Counts the request. Without its counters the store goes on working: a lost outcome would cost more.

        Counters that are away cost one request in ten seconds a wait, and not each of them.
        """
        if time.monotonic() < KeyThrottle.paused_until:
            return True
        self.scope = scope_of(view, request.method or "GET")
        settings = conf.current()
        self.rate = settings.throttle_loop if self.scope == "loop" else settings.throttle_read
        self.num_requests, self.duration = self.parse_rate(self.rate)
        try:
            return bool(super().allow_request(request, view))
        except RedisError as error:
            KeyThrottle.paused_until = time.monotonic() + PAUSE_SECONDS
            log.warning("throttle_unavailable", error=type(error).__name__, pause_seconds=PAUSE_SECONDS)
            return True

    def wait(self) -> float:
        """Seconds until the next request may come; a whole period where a lowered rate leaves none in sight."""
        return super().wait() or float(self.duration or 1)

    def get_cache_key(self, request: Request, view: "APIView") -> str | None:
        if not isinstance(request.auth, ApiKey):
            return None
        return f"throttle:{self.scope}:{request.auth.prefix}"
