"""Django's PostgreSQL backend, on a server that is started when the first connection is made."""

from pathlib import Path
from typing import Any

from django.db.backends.postgresql import base

from sonder_site.embedded.client import DatabaseClient
from sonder_site.embedded.server import ensure_running


class DatabaseWrapper(base.DatabaseWrapper):
    """A command that touches no database starts none."""

    client_class = DatabaseClient

    def get_connection_params(self) -> dict[str, Any]:
        address = ensure_running(Path(self.settings_dict["VAR"]))
        place = {"host": address.host, "port": address.port, "user": address.user}
        return super().get_connection_params() | place
