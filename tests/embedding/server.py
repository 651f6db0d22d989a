"""An embedding server on this machine that speaks /v1/embeddings, well or badly."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-never-to-be-seen-4711"


def vector(text: str) -> list[float]:
    return [1.0 + text.count("a"), float(len(text)), -1.0]


def good(texts: list[str]) -> dict[str, Any]:
    return {"data": [{"index": i, "embedding": vector(text)} for i, text in enumerate(texts)]}


class Server:
    """`body` makes the answer's content from the texts, `status` its code; `requests` keeps what was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.body: Callable[[list[str]], Any] = good
        self.status = 200
        self.delay = 0.0
        self.drip = 0.0  # seconds after each byte of an answer
        self.refuses = ""  # answers 400 to texts that hold it
        self.missing = 0  # bytes by which an answer is shorter than it says
        self.raw: bytes | None = None
        self.requests: list[dict[str, Any]] = []
        self.failures_first = 0


@contextmanager
def embedding_server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.requests.append({"path": self.path, "key": self.headers["Authorization"], **asked})
            time.sleep(server.delay)
            failing = len(server.requests) <= server.failures_first
            status = 500 if failing else server.status
            if server.refuses and any(server.refuses in text for text in asked["input"]):
                status = 400
            good_answer = json.dumps(server.body(asked["input"])).encode() if status == 200 else b""
            refusal = json.dumps({"error": {"message": f"bad key {self.headers['Authorization']}"}}).encode()
            content = (good_answer if status == 200 else refusal) if server.raw is None else server.raw
            with suppress(ConnectionError):  # a client that gave up
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                sent = content[: len(content) - server.missing]
                size = 1 if server.drip else len(sent) or 1
                for start in range(0, len(sent), size):
                    self.wfile.write(sent[start : start + size])
                    time.sleep(server.drip)
                self.close_connection = bool(server.missing)

        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server = Server(f"http://127.0.0.1:{http.server_port}/v1")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
