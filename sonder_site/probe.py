"""Asks the site once whether it answers: `python -m sonder_site.probe http://127.0.0.1:8000/healthz`.

Ends with 0 if the answer is 200. For the health checks of containers, whose images have no curl.
"""

import http.client
import os
import sys
from collections.abc import Sequence
from http import HTTPStatus
from urllib.parse import urlsplit

SECONDS = 2.0  # of patience, for connecting and for the answer
LOCAL = "127.0.0.1"


def status(address: str, names: Sequence[str]) -> int:
    """The status of a GET of this http address as if through the proxy; 0 if there is no answer within two seconds.

    `names` are those that the site answers to (ALLOWED_HOSTS). ValueError if it is no http address.
    """
    parts = urlsplit(address)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError(f"{address!r} is no http address.")
    client = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=SECONDS)
    try:
        client.request("GET", parts.path or "/", headers={"Host": allowed(names)})
        answer = client.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        client.close()
    return answer.status


def allowed(names: Sequence[str]) -> str:
    """A name that the site answers to, whatever ALLOWED_HOSTS says."""
    known = [name.lstrip(".") for name in names if name != "*"]
    return LOCAL if LOCAL in known or not known else known[0]


def main(address: str) -> int:
    """0 if the site answers, else 1."""
    names = [name.strip() for name in os.environ.get("ALLOWED_HOSTS", "").split(",") if name.strip()]
    return int(status(address, names) != HTTPStatus.OK)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
