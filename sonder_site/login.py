"""Logging in: from which address somebody asks, and what they are told after too many wrong passwords.

Counting and locking are django-axes'. A name is locked for one address only, so that a stranger elsewhere, who need
only know the name, keeps nobody out of their own account.
"""

import math
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from http import HTTPStatus
from ipaddress import IPv6Address, IPv6Network, ip_address
from threading import BoundedSemaphore
from typing import Any, Final

from axes.models import AccessAttempt
from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone

View = Callable[..., HttpResponseBase]

LONGEST_NAME: Final = 255  # characters of a name that failures are counted by, as the column holds; no user has more
AT_ONCE: Final = 4  # passwords that a process checks at the same time
PATIENCE: Final = 10.0  # seconds that somebody waits for their turn
HOME: Final = 64  # bits of an IPv6 address that a provider gives to one customer, who chooses the rest anew at will


def client_address(request: HttpRequest) -> str | None:
    """The address that the outermost trusted proxy saw, without proxies that of the connection; None if it is none.

    Each proxy appends whom it was asked by to X-Forwarded-For. What stands before the entries of the TRUSTED_PROXIES
    was written by the client. Of an IPv6 address it is the network of a customer.
    """
    trusted: int = settings.TRUSTED_PROXIES
    hops = [hop.strip() for hop in request.headers.get("X-Forwarded-For", "").split(",")]
    named = hops[-trusted] if 0 < trusted <= len(hops) else request.META.get("REMOTE_ADDR", "")
    try:
        found = ip_address(named.strip("[]"))
    except ValueError:
        return None
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped:
            return str(found.ipv4_mapped)
        return str(IPv6Network((int(found), HOME), strict=False).network_address)
    return str(found)


def counted_name(request: HttpRequest, credentials: dict[str, Any] | None = None) -> str | None:
    """The name that failures are counted by: the beginning of what was entered, which may be of any length."""
    given = (request.POST if credentials is None else credentials).get("username")
    return None if given is None else str(given)[:LONGEST_NAME]


_turns = BoundedSemaphore(AT_ONCE)


def in_turn(view: View) -> View:
    """The view, of which AT_ONCE forms are looked at; the others wait without a connection, and not for ever (503).

    Checking a password takes long by design. Without turns, many at once take every connection from everybody else,
    and all are checked before the first failure is counted.
    """

    @wraps(view)
    def waiting(request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponseBase:
        if request.method != "POST":
            return view(request, *arguments, **named)
        if not connection.in_atomic_block:
            connection.close()
        if not _turns.acquire(timeout=PATIENCE):
            answer = render(request, "registration/busy.html", status=HTTPStatus.SERVICE_UNAVAILABLE)
            answer["Retry-After"] = str(int(PATIENCE))
            return answer
        try:
            return view(request, *arguments, **named)
        finally:
            _turns.release()

    return waiting


def locked(request: HttpRequest, _: HttpResponse | None = None, __: dict[str, Any] | None = None) -> HttpResponse:
    """The page that says how long it takes: 429 with Retry-After (RFC 6585, section 4)."""
    credentials: dict[str, Any] = getattr(request, "axes_credentials", None) or {}
    wait = _wait(counted_name(request, credentials) or "", client_address(request))
    minutes = max(1, math.ceil(wait / timedelta(minutes=1)))
    context = {"minutes": minutes, "until": timezone.now() + wait}
    answer = render(request, "registration/locked.html", context, status=HTTPStatus.TOO_MANY_REQUESTS)
    answer["Retry-After"] = str(max(1, math.ceil(wait.total_seconds())))
    return answer


def _wait(username: str, address: str | None) -> timedelta:
    """Until the latest failure is forgotten; attempts meanwhile do not prolong it."""
    failures = AccessAttempt.objects.filter(username=username, ip_address=address)
    latest = failures.order_by("-attempt_time").values_list("attempt_time", flat=True).first()
    pause: timedelta = settings.AXES_COOLOFF_TIME
    return pause if latest is None else max(latest + pause - timezone.now(), timedelta())
