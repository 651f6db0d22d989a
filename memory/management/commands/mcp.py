"""`manage.py mcp`: the loop for an agent whose host starts its tools as programs."""

import asyncio
import os
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rest_framework.exceptions import APIException

from memory.mcp.rights import authenticate
from memory.mcp.stdio import serve

NO_KEY = "There is no key. Put one into the environment variable MCP_API_KEY, or into a file that --key-file names."


class Command(BaseCommand):
    help = "Serves the loop over MCP on standard input and output, with the key in MCP_API_KEY."

    def add_arguments(self, parser: CommandParser) -> None:
        # The key itself is no argument: every user of the machine can read those.
        parser.add_argument("--key-file", type=Path, metavar="FILE", help="a file that holds the key and nothing else")

    def handle(self, *, key_file: Path | None, **options: Any) -> None:
        token = _token(key_file)
        try:
            authenticate({"Authorization": f"Bearer {token}"})
        except APIException as refusal:
            raise CommandError(str(refusal.detail)) from None
        try:
            asyncio.run(serve(token))
        except KeyboardInterrupt:
            raise CommandError("Interrupted.", returncode=130) from None


def _token(key_file: Path | None) -> str:
    if key_file is None:
        token = os.environ.get("MCP_API_KEY", "")
    else:
        try:
            token = key_file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{key_file} cannot be read: {error}.") from None
    if not token.strip():
        raise CommandError(NO_KEY)
    return token.strip()
