"""A model server on this machine that speaks /v1/chat/completions, well or badly."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-never-to-be-seen-0815"
LESSON = "Pass `timeout=30` to every `requests.get` call, because without it a dead peer blocks the worker forever."


def completion(content: Any, **message: Any) -> dict[str, Any]:
    """A whole answer whose message has this content."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content, **message}}
        ],
    }


def lesson(text: str | None, **more: Any) -> dict[str, Any]:
    """A whole answer that proposes this lesson."""
    return completion(json.dumps({"lesson": text, **more}))


class Server:
    """What it says next. `requests` keeps what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answer: Any = lesson(LESSON)  # as JSON
        self.raw: bytes | None = None  # in its place
        self.status = 200
        self.headers: dict[str, str] = {}
        self.delay = 0.0  # seconds before the head
        self.promised = 0  # bytes announced beyond those that are sent before the connection dies
        self.drip = 0.0  # seconds between single bytes
        self.takes_schema = True
        # Runs while the client waits; what it gives back, if anything, is the answer in place of the others.
        self.before: Callable[[dict[str, Any]], Any] = lambda request: None
        self.requests: list[dict[str, Any]] = []

    def content(self, answer: Any) -> bytes:
        return json.dumps(answer or self.answer).encode() if self.raw is None else self.raw


@contextmanager
def chat_server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.requests.append({"path": self.path, "key": self.headers["Authorization"], **sent})
            answer = server.before(sent)
            time.sleep(server.delay)
            refused = not server.takes_schema and sent["response_format"]["type"] == "json_schema"
            with suppress(ConnectionError):  # a client that gave up
                self.send(400 if refused else server.status, answer)

        def send(self, status, answer):
            quoted = {"error": {"message": f"bad key {self.headers['Authorization']}"}}
            content = server.content(answer) if status == 200 else json.dumps(quoted).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content) + server.promised))
            self.send_header("Connection", "close")  # said, or a client asks again on a connection that is about to go
            for name, value in server.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if server.drip:
                for byte in content:
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
                    time.sleep(server.drip)
            else:
                self.wfile.write(content)

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
