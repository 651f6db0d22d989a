"""A receiver of webhooks on this machine, well-behaved or not."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


@dataclass(frozen=True, kw_only=True)
class Received:
    """One request."""

    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes


class Receiver:
    """What it says next; `received` keeps what it was sent."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}/in"
        self.forget()

    def forget(self) -> None:
        self.received: list[Received] = []
        self.answer = OK  # as it stands on the wire
        self.before: Callable[[], object] = lambda: None  # runs while the sender waits
        self.drips = False  # sends a byte now and then, until the sender is gone

    def says(self, status: int, *headers: str) -> None:
        head = "".join(f"{header}\r\n" for header in headers)
        self.answer = f"HTTP/1.1 {status} X\r\n{head}Content-Length: 0\r\nConnection: close\r\n\r\n".encode()


class Quiet(ThreadingHTTPServer):
    """Says nothing of senders that break off."""

    daemon_threads = True

    def handle_error(self, *_):
        pass


@contextmanager
def receiving(tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """A receiver that runs, over TLS if it is given a certificate's context."""
    gone = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers["content-length"]))
            receiver.received.append(Received(path=self.path, headers=headers, body=body))
            receiver.before()
            with suppress(OSError):  # a sender that has heard enough
                self.wfile.write(receiver.answer)
                self.wfile.flush()
                while receiver.drips and not gone.wait(0.02):
                    self.wfile.write(b"x")
                    self.wfile.flush()

        def log_message(self, *_):
            pass

    http = Quiet(("127.0.0.1", 0), Handler)
    if tls is not None:
        http.socket = tls.wrap_socket(http.socket, server_side=True)
    receiver = Receiver(http.server_port)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield receiver
    finally:
        gone.set()
        http.shutdown()
        thread.join()
        http.server_close()
