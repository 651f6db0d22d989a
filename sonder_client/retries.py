"""When a request is sent again: only where the same one twice is one, and never for ever."""

import random
from dataclasses import dataclass

import httpx

#: A proxy without a server behind it, a server that is busy or starting, and an allowance that is used up.
PASSING = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, kw_only=True)
class Retries:
    """How patient a client is."""

    attempts: int = 5  # in all; 1 never tries again
    first_pause: float = 0.5  # seconds, doubled after each attempt, and up to half of it left to chance
    longest_backoff: float = 8.0  # seconds
    longest_wait: float = 65.0  # seconds that a server may ask for: its allowances are by the minute

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError("attempts: use 1 or more.")

    def pause(self, attempt: int, asked: float | None = None) -> float | None:
        """Seconds to wait after this attempt (from 1); None if it was the last, or the server asks for too long."""
        if attempt >= self.attempts or (asked is not None and asked > self.longest_wait):
            return None
        backoff = min(self.longest_backoff, self.first_pause * 2.0 ** (attempt - 1))
        return max(backoff * random.uniform(0.5, 1), asked or 0.0)  # noqa: S311 - spreads clients, guards nothing


def asked_by(answer: httpx.Response) -> float | None:
    """Seconds of a Retry-After header; None without one, or for one that is a date."""
    raw = answer.headers.get("Retry-After", "").strip()
    return float(raw) if raw.isascii() and raw.isdecimal() and len(raw) < 10 else None
