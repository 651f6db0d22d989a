"""Celery's broker for the embedded store: kombu's filesystem transport, made safe for several processes at once.

kombu creates a file first and fills it afterwards; a reader in between sees no JSON and fails. Here a message and an
exchange's table appear whole, under their final name. kombu also reads and sorts the names of all messages of all
queues for each one that it takes, so that a worker which has fallen behind falls further; here each queue has a folder,
whose names are read once for as many messages as it held. Messages are hints: the tables in PostgreSQL are the queue,
so a message that is lost costs only the time until the next sweep.
"""
# kombu has no types.
# mypy: allow-untyped-calls

import os
from collections import deque
from contextlib import suppress
from pathlib import Path
from queue import Empty
from time import monotonic
from typing import Any
from uuid import uuid4

from kombu.transport import filesystem
from kombu.utils.json import dumps, loads


class Channel(filesystem.Channel):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._known: dict[str, deque[Path]] = {}  # messages of each queue as of the last look, oldest first
        for folder in (self.data_folder_out, self.control_folder):
            Path(folder).mkdir(parents=True, exist_ok=True)
        for left in Path(self.data_folder_out).glob("*.msg"):  # by a release that kept all queues in one folder
            left.unlink(missing_ok=True)

    def _put(self, queue: str, payload: dict[str, Any], **_: Any) -> None:  # type: ignore[override]  # as kombu's own
        folder = self._folder(queue)
        draft = folder / f".{uuid4()}"
        draft.write_text(dumps(payload))
        draft.rename(folder / f"{round(monotonic() * 1000):016d}_{uuid4()}.msg")

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        """The oldest message. Whoever removes its file has it; raises Empty if there is none."""
        known = self._known.setdefault(queue, deque())
        if not known:
            known.extend(self._messages(queue))
        while known:
            message = known.popleft()
            with suppress(FileNotFoundError):  # another process was faster
                text = message.read_text()
                message.unlink()
                return loads(text)
        raise Empty

    def _size(self, queue: str) -> int:
        return len(self._messages(queue))

    def _purge(self, queue: str) -> int:
        messages = self._messages(queue)
        for message in messages:
            message.unlink(missing_ok=True)
        return len(messages)

    def _messages(self, queue: str) -> list[Path]:
        return sorted(self._folder(queue).glob("*.msg"))

    def _folder(self, queue: str) -> Path:
        folder = Path(self.data_folder_out) / queue
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        table: Path = self._exchange_file(exchange)
        if not table.exists():
            draft = table.with_name(f".{uuid4()}")
            draft.write_text("[]")
            with suppress(FileExistsError):
                os.link(draft, table)
            draft.unlink()
        super()._queue_bind(exchange, routing_key, pattern, queue)


class Transport(filesystem.Transport):
    Channel = Channel
    driver_name = "sonder-files"
