"""One request to a receiver, and to no address that it must not reach.

The name is resolved once, each address it has is vetted, and the connection is made to a vetted address itself: a name
that leads elsewhere a moment later (DNS rebinding) leads nobody there. Redirects are not followed, variables of the
environment name no proxy, and of the answer nothing but the head is read: what a receiver says is of no use and may
hold anything. Each step has its time, and so has the whole: a receiver that sends a byte now and then holds nobody.
"""

import socket
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import httpcore

from memory.rules.webhooks import Networks, Target, refusal

CONNECT_SECONDS: Final = 5.0  # for each address
READ_SECONDS: Final = 10.0  # for each read, and each write
TOTAL_SECONDS: Final = 15.0  # from the first connection on

Resolve = Callable[..., Any]  # as socket.getaddrinfo


class Undelivered(Exception):
    """The receiver gave no answer; the message says why in a sentence, without anything that the receiver wrote."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The head of an answer."""

    status: int
    retry_after: float | None  # seconds that it asks for, where it says a number of them (RFC 9110, 10.2.3)


def post(
    target: Target,
    headers: Sequence[tuple[str, str]],
    body: bytes,
    *,
    allowed: Networks,
    resolve: Resolve = socket.getaddrinfo,
    total: float = TOTAL_SECONDS,
) -> Answer:
    """Sends a body once. `allowed` are networks that may be reached though they are not public. Raises Undelivered."""
    backend = _Vetted(plain=target.scheme == "http", allowed=allowed, resolve=resolve, total=total)
    url = httpcore.URL(
        scheme=target.scheme.encode(), host=target.host.encode(), port=target.port, target=target.path.encode()
    )
    named = [("Host", target.authority), *headers]
    times = {"connect": CONNECT_SECONDS, "read": READ_SECONDS, "write": READ_SECONDS, "pool": CONNECT_SECONDS}
    try:
        with (
            httpcore.ConnectionPool(ssl_context=_tls(), network_backend=backend, max_connections=1) as pool,
            pool.stream("POST", url, headers=named, content=body, extensions={"timeout": times}) as answer,
        ):
            asked = next((value for name, value in answer.headers if name.lower() == b"retry-after"), b"")
            return Answer(status=answer.status, retry_after=float(asked) if asked.isdigit() else None)
    except httpcore.TimeoutException:
        raise Undelivered("It did not answer in time.") from None
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise Undelivered(f"It could not be reached ({type(error).__name__}).") from None


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    """Certificates are checked against those that the system trusts."""
    return ssl.create_default_context()


class _Vetted(httpcore.NetworkBackend):
    """Connects to vetted addresses alone, and keeps the time."""

    def __init__(self, *, plain: bool, allowed: Networks, resolve: Resolve, total: float) -> None:
        self._plain, self._allowed, self._resolve, self._total = plain, allowed, resolve, total
        self._within = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        addresses = self._vetted(host, port)
        clock = _Clock(self._total)
        for address in addresses[:-1]:
            try:
                return _Timed(self._within.connect_tcp(address, port, clock.within(timeout)), clock)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue  # another of its addresses may answer
        return _Timed(self._within.connect_tcp(addresses[-1], port, clock.within(timeout)), clock)

    def _vetted(self, host: str, port: int) -> list[str]:
        """The addresses of a host to which a request may go. Raises Undelivered if it has none."""
        try:
            found = self._resolve(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise Undelivered("Its name cannot be resolved.") from None
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        reasons = {each: refusal(each, plain=self._plain, allowed=self._allowed) for each in addresses}
        good = [each for each in addresses if not reasons[each]]
        if not good:
            first = next(iter(reasons.items()), ("no address", "is reached"))
            raise Undelivered(f"Its name leads to {first[0]}, which {first[1]}.")
        return good


class _Clock:
    """What is left of the whole time."""

    def __init__(self, total: float) -> None:
        self._end = time.monotonic() + total

    def within(self, timeout: float | None) -> float:
        """The time that a step may take. Raises httpcore.ReadTimeout when all of it is gone."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout
        return left if timeout is None else min(timeout, left)


class _Timed(httpcore.NetworkStream):
    """A connection whose steps together take no longer than the clock allows."""

    def __init__(self, within: httpcore.NetworkStream, clock: _Clock) -> None:
        self._within, self._clock = within, clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._within.read(max_bytes, self._clock.within(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._within.write(buffer, self._clock.within(timeout))

    def close(self) -> None:
        self._within.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        secured = self._within.start_tls(ssl_context, server_hostname, self._clock.within(timeout))
        return _Timed(secured, self._clock)

    def get_extra_info(self, info: str) -> Any:
        return self._within.get_extra_info(info)
