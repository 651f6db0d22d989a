"""The site's settings on a database of the benchmark's own, which `store.py` makes and drops."""

import os

os.environ.setdefault("SONDER_THROTTLE_LOOP", "100000/min")  # one client in a loop is the measurement, not an accident
os.environ.setdefault("LOG_LEVEL", "ERROR")

from sonder_site.settings import *  # noqa: F403 - every setting of the site, as tests/settings.py has them
from sonder_site.settings import DATABASES

DATABASES["default"]["NAME"] = os.environ.get("BENCH_DATABASE", "sonder_bench")
