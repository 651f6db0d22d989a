"""Celery's broker for the embedded store: kombu's filesystem transport, made safe for several processes at once.

kombu creates a file first and fills it afterwards; a reader in between sees no JSON and fails. Here a message and an
exchange's table appear whole, under their final name. Messages are hints: the tables in PostgreSQL are the queue, so a
message that is lost costs only the time until the next sweep.
"""
# kombu has no types.
# mypy: allow-untyped-calls

import os
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

from kombu.transport import filesystem
from kombu.utils.json import dumps


class Channel(filesystem.Channel):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for folder in (self.data_folder_out, self.control_folder):
            Path(folder).mkdir(parents=True, exist_ok=True)

    def _put(self, queue: str, payload: dict[str, Any], **_: Any) -> None:  # type: ignore[override]  # as kombu's own
        folder = Path(self.data_folder_out)
        draft = folder / f".{uuid4()}"
        draft.write_text(dumps(payload))
        draft.rename(folder / f"{round(monotonic() * 1000)}_{uuid4()}.{queue}.msg")  # the name kombu's reader expects

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
