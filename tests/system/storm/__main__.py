"""`python -m tests.system.storm RETRIEVALS ACCOUNTS SEED`: plays a storm on an empty store, and tells as JSON what came
of it."""

import json
import sys
import tempfile
from pathlib import Path

import django

if __name__ == "__main__":
    django.setup()
    from tests.system.storm.crew import Crew

    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(Crew(*map(int, sys.argv[1:]), folder=Path(folder)).play()), flush=True)
