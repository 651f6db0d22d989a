"""The site's settings on a database of the benchmark's own, made and dropped by it."""

import os

os.environ.setdefault("SONDER_THROTTLE_LOOP", "100000/min")  # one client in a loop is the measurement, not an accident
os.environ.setdefault("LOG_LEVEL", "ERROR")

from sonder_site.settings import *  # noqa: F403 - what tests/settings.py does, for the same reason
from sonder_site.settings import DATABASES

DATABASES["default"]["NAME"] = "sonder_bench"
