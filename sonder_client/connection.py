"""Where requests go and who sends them."""

from typing import Any, Final

import httpx

AGENT: Final = "sonder-client/0.1.0"


def settings(url: str, key: str, timeout: float) -> dict[str, Any]:
    """What httpx's client is made with. Raises ValueError for an address or a key that is none, without repeating it.

    Redirects are not followed: the key is for this server.
    """
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        address = httpx.URL()
    if address.scheme not in ("http", "https") or not address.host or address.userinfo or address.query:
        raise ValueError("url: give the server's address, such as https://sonder.example.com.")
    if not key.isascii() or not key.isprintable() or not key or " " in key:
        raise ValueError("key: this is no API key.")
    headers = {"Authorization": f"Bearer {key}", "User-Agent": AGENT}
    return {
        "base_url": f"{url.rstrip('/')}/api/v1/", "headers": headers, "timeout": timeout, "follow_redirects": False
    }  # fmt: skip
