"""The site's settings with a store of the tests' own, the model-free embedder, and no throttling."""

import os
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
os.environ.setdefault("SONDER_VAR", str(BASE / "var" / "test"))
os.environ.setdefault("SECRET_KEY", "only for tests, where nothing is secret and everything is thrown away")
os.environ["SONDER_EMBEDDING"] = "hashing"
os.environ["SONDER_TRUST_POLICY"] = "reference"
os.environ["SONDER_THROTTLE_LOOP"] = os.environ["SONDER_THROTTLE_READ"] = "1000000/min"
os.environ.setdefault("LOG_LEVEL", "ERROR")

from sonder_site import settings as site  # noqa: E402

globals().update({name: getattr(site, name) for name in dir(site) if name.isupper()})
DATABASES = site.DATABASES

# Nothing in a test needs to survive a crash of the machine. And tests insert the same few texts over and over and take
# them back: an approximate index full of dead twins finds others than a store's would, so tests search exactly (the
# tests of query plans turn index scans on).
DATABASES["default"]["OPTIONS"]["options"] = "-c synchronous_commit=off -c enable_indexscan=off"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # logins in tests need not be slow
