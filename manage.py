#!/usr/bin/env python
"""Django's command line for Sonder."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sonder_site.settings")
    from django.core.management import execute_from_command_line

    from memory.conf import SettingError
    from sonder_site.embedded.errors import EmbeddedError

    try:
        execute_from_command_line(sys.argv)
    except (EmbeddedError, SettingError) as error:
        sys.exit(str(error))  # a sentence that says what to do; a traceback would bury it


if __name__ == "__main__":
    main()
