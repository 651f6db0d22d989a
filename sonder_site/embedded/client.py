"""`manage.py dbshell` on the embedded server, with the psql that belongs to it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.db.backends.postgresql import client

from sonder_site.embedded import preflight
from sonder_site.embedded.server import ensure_running


class DatabaseClient(client.DatabaseClient):
    @classmethod
    def settings_to_cmd_args_env(
        cls, settings_dict: dict[str, Any], parameters: Iterable[str]
    ) -> tuple[list[str], dict[str, str] | None]:
        address = ensure_running(Path(settings_dict["VAR"]))
        place = {"HOST": address.host, "PORT": address.port, "USER": address.user}
        arguments, environment = super().settings_to_cmd_args_env(settings_dict | place, list(parameters))
        return [str(preflight.programs() / "psql"), *arguments[1:]], environment
