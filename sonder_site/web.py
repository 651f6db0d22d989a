"""The web process of `manage.py up`: uvicorn on a socket that its parent opened.

Run as `python -m sonder_site.web DESCRIPTOR`. The parent keeps the socket open, so a restart of this process refuses no
request; and uvicorn's own `--fd` would treat it as a unix socket and leave Nagle's algorithm on.
"""

import socket
import sys

import uvicorn

KEEP_ALIVE_SECONDS = 75  # an agent thinks between two calls, and should not have to connect anew
DRAIN_SECONDS = 5  # for requests in flight when the server is asked to stop


def main(descriptor: int) -> None:
    """Serves until SIGTERM."""
    listener = socket.socket(fileno=descriptor)
    # Logging is Django's, and its request middleware writes the access log.
    config = uvicorn.Config(
        "sonder_site.asgi:application",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,  # TRUSTED_PROXIES says whose word counts; uvicorn would believe everybody on this machine
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(int(sys.argv[1]))
