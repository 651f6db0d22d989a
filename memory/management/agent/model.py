"""The language model of the script: a server with /v1/chat/completions that fails where the story needs a failure."""

import json
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from memory.errors import SonderError
from memory.management.agent.script import LABEL, Script

HOST: Final = "127.0.0.1"
HELD: Final = ("withdrawn", "called_off")  # parts whose answer waits until the agent has changed its mind
HOLD_SECONDS: Final = 10.0  # at most: well below the time that a distiller waits for an answer
REST_SECONDS: Final = 1  # for which a server that is busy asks to be left alone
BABBLE: Final = "I would rather tell a story."


class PortTaken(SonderError):
    """The model cannot listen there."""

    title = "The port is taken"


class Model:
    """Takes the sentence that the agent called its lesson, as a language model would that reads what it is sent.

    On `garbled` work its answer is no lesson, and on `unanswered` work it has no answer (503). On the parts of HELD it
    takes its time, so that whoever changes his mind meanwhile is in time.
    """

    def __init__(self, script: Script, port: int) -> None:
        self._part_of = {
            lesson.task: part for part in (*HELD, "garbled", "unanswered") for lesson in script.lessons(part)
        }
        self._asked: defaultdict[str, threading.Event] = defaultdict(threading.Event)  # by task
        self._released: defaultdict[str, threading.Event] = defaultdict(threading.Event)
        try:
            self._http = ThreadingHTTPServer((HOST, port), _handler(self))
        except OSError as error:
            raise PortTaken(f"The model cannot listen on port {port} ({error.strerror}); choose another one.") from None
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)

    def __enter__(self) -> "Model":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    @property
    def url(self) -> str:
        """What SONDER_DISTILLER_URL has to be."""
        return f"http://{HOST}:{self._http.server_port}/v1"

    def is_asked(self, task: str, seconds: float) -> bool:
        """Waits until a worker has asked about a task; False if none has within `seconds`."""
        return self._asked[task].wait(seconds)

    def release(self, task: str) -> None:
        """Lets it answer about a task that is held."""
        self._released[task].set()

    def answer(self, record: dict[str, Any]) -> str | None:
        """The content of its message about a piece of work, or about a session's turns; None where it has no answer."""
        if "turns" in record:
            return json.dumps({"summary": f"Work on {len(record['turns'])} tasks: {record['turns'][0]['task']}"})
        task, part = record["task"], self._part_of.get(record["task"])
        self._asked[task].set()
        if part in HELD:
            self._released[task].wait(HOLD_SECONDS)
        if part == "unanswered":
            return None
        lines = str(record["response"]).splitlines()
        lesson = next((line.removeprefix(LABEL) for line in lines if line.startswith(LABEL)), None)
        return BABBLE if part == "garbled" else json.dumps({"lesson": lesson})


def _handler(model: Model) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            content = model.answer(json.loads(sent["messages"][-1]["content"]))
            message = {"role": "assistant", "content": content}
            body = json.dumps({"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}).encode()
            self.send_response(200 if content is not None else 503)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if content is None:
                self.send_header("Retry-After", str(REST_SECONDS))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """What agents write stays out of every log."""

    return Handler
