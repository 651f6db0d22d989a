"""Webhooks: how a message is signed, when it is tried again, and where it may go."""

import base64
import hashlib
import hmac
import math
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

Address = IPv4Address | IPv6Address
Networks = Sequence[IPv4Network | IPv6Network]

SCHEME: Final = "whsec_"  # how a signing secret begins, as receivers' libraries know it
MAX_URL: Final = 500  # characters
PORTS: Final = {"https": 443, "http": 80}

#: Seconds from the first failure to the second attempt; each further wait is four times as long, up to LONGEST_WAIT.
FIRST_WAIT: Final = 30.0
GROWTH: Final = 4.0
LONGEST_WAIT: Final = 12 * 3600.0
#: Part of a wait by which it may be shorter or longer, so that what failed together does not come back together.
JITTER: Final = 0.25
#: Seconds from the making of a delivery after which it is not tried again: a long weekend.
GIVE_UP_AFTER: Final = 3 * 24 * 3600.0
#: Seconds without one delivery among failures after which an endpoint is switched off.
DISABLE_AFTER: Final = 5 * 24 * 3600.0
#: Where clouds tell machines their credentials, beside the link-local addresses: Oracle's in the IETF's own network,
#: Alibaba's among the shared addresses, Amazon's for IPv6.
_METADATA: Final = (IPv4Network("192.0.0.0/24"), IPv4Network("100.100.100.200/32"), IPv6Network("fd00:ec2::254/128"))
#: Shared by a provider's customers, and by those of private overlay networks (RFC 6598); neither private nor global.
_SHARED: Final = IPv4Network("100.64.0.0/10")
_NAT64: Final = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
#: Seconds that a receiver may ask for at most in Retry-After.
MOST_ASKED: Final = 24 * 3600.0


def secret_of(installation: bytes, salt: str) -> bytes:
    """An endpoint's signing secret, 32 bytes: HMAC-SHA-256 (RFC 2104) of its salt under the installation's secret."""
    return hmac.digest(installation, f"endpoint:{salt}".encode(), "sha256")


def written(secret: bytes) -> str:
    """The secret as it is shown and configured at a receiver (Standard Webhooks, "Symmetric signatures")."""
    return SCHEME + base64.b64encode(secret).decode()


def signature(secret: bytes, message: str, timestamp: int, body: bytes) -> str:
    """The header `webhook-signature`: `v1,` and the base64 of HMAC-SHA-256 over `id.timestamp.body`.

    `timestamp` is in seconds since 1970. Source: Standard Webhooks 1.0.0, "Signature scheme".
    """
    signed = f"{message}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(secret, signed, "sha256")).decode()


def wait_after(delivery: UUID, attempt: int, asked: float | None = None) -> float:
    """Seconds to wait after a failed attempt (from 1): 30, 120, 480 and so on up to 12 hours, a quarter more or less.

    What is more or less follows from the delivery's id and the attempt, not from chance, so that a schedule can be
    repeated. `asked` is what the receiver's Retry-After said, in seconds, and counts where it is longer.
    """
    digest = hashlib.sha256(f"{delivery}:{attempt}".encode()).digest()
    share = int.from_bytes(digest[:8], "big") / 2**64  # in [0, 1)
    wait = min(LONGEST_WAIT, FIRST_WAIT * GROWTH ** min(attempt - 1, 16)) * (1 + JITTER * (2 * share - 1))
    return wait if asked is None or not math.isfinite(asked) else max(wait, min(asked, MOST_ASKED))


def gives_up(age: float, wait: float) -> bool:
    """Whether a delivery of this age is not tried again after that wait; both in seconds."""
    return age + wait > GIVE_UP_AFTER


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where a request goes, taken apart."""

    scheme: str  # https or http
    host: str  # a name or an address, in lower case and without brackets
    port: int
    path: str  # with the query

    @property
    def authority(self) -> str:
        """The header `Host` (RFC 9110, 7.2): IPv6 addresses in brackets, the port where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def target(url: str) -> Target:
    """The parts of an endpoint's address. Raises ValueError with a sentence for one that is not to be used."""
    if not url or len(url) > MAX_URL:
        raise ValueError(f"use 1 to {MAX_URL} characters.")
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise ValueError("use printable ASCII without spaces; write other names in their xn-- form.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("this is no address that can be used.") from None
    if parts.scheme not in PORTS:
        raise ValueError("write it as https://host/path.")
    if parts.username is not None or parts.password is not None:
        raise ValueError("leave user and password out: a signature says who sends, and logs keep addresses.")
    if parts.fragment or not parts.hostname or "%" in parts.hostname or port == 0:
        raise ValueError("this is no address that can be used; write it as https://host/path.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(scheme=parts.scheme, host=parts.hostname, port=port or PORTS[parts.scheme], path=path)


def networks(words: str) -> Networks:
    """Networks as a setting has them, separated by commas. Raises ValueError naming the one that is none."""
    found: list[IPv4Network | IPv6Network] = []
    for word in filter(None, (part.strip() for part in words.split(","))):
        try:
            found.append(ip_network(word))
        except ValueError:
            raise ValueError(f"{word!r} is no network; write it as 10.1.0.0/16 or fd00::/8.") from None
    return tuple(found)


def refusal(address: str, *, plain: bool, allowed: Networks) -> str:
    """Why no request may go to an address that a name resolved to; '' if one may.

    Public addresses may be reached over TLS. Loopback, private and shared ones only within `allowed`, `plain` HTTP only
    on loopback. What leads to a cloud's metadata, to many (multicast), to nobody (unspecified), to what is
    reserved or into a tunnel with another address in it is never reached.
    """
    found = ip_address(address.partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None)
    ip: Address = mapped or found
    if ip.is_link_local or ip.is_multicast or ip.is_unspecified or _is_tunnel(ip) or _tells_of_the_machine(ip):
        return "is never reached from here"
    if ip.is_loopback or ip.is_private or ip in _SHARED or getattr(ip, "is_site_local", False):
        if not any(ip in network for network in allowed):
            return "is not public"
        return "" if ip.is_loopback or not plain else "is reached by https only"
    if ip.is_reserved or not ip.is_global:
        return "is not public"
    return "is reached by https only" if plain else ""


def _tells_of_the_machine(ip: Address) -> bool:
    return any(ip in network for network in _METADATA)


def _is_tunnel(ip: Address) -> bool:
    """6to4 (RFC 3056), Teredo (RFC 4380) and NAT64 (RFC 6052): an IPv4 address within, which would go unseen."""
    if isinstance(ip, IPv4Address):
        return False
    return ip.sixtofour is not None or ip.teredo is not None or any(ip in net for net in _NAT64)
