"""Readies a deployment's store: `python -m sonder_site.prepare`, before web, worker and schedule start.

Migrates the database and opens the embedding space; run again it changes nothing. Accounts, keys and logins are made by
commands (docs/deployment.md): where others can reach the site, nothing is made with a password that was printed.
"""

import os
import sys

import django
from django.core.management import call_command


def main() -> None:
    """Raises what the migration raises; an embedding model that cannot be had is told and is no failure."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sonder_site.settings")
    django.setup()
    from memory.services.setup import open_space

    call_command("migrate", interactive=False)
    if told := open_space():
        sys.stderr.write(told + "\n")
    call_command("check", databases=["default"])


if __name__ == "__main__":
    main()
