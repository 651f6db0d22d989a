"""What a process of the evaluation does: `python -m evaluation.loop prepare`, or `play SEED HARMFUL COUNT ARM`.

It works on the database and the broker that `settings.py` finds in the environment, and prints a JSON document a line:
how far it is, and at last what came of it.
"""

import json
import os
import sys
from typing import Any

import django


def say(**told: Any) -> None:
    """One line of what is told."""
    print(json.dumps(told), flush=True)


def prepare() -> None:
    """Makes the schema and what every arm begins with."""
    from django.core.management import call_command

    from evaluation.loop import agent

    call_command("migrate", interactive=False, verbosity=0)
    agent.prepare()


def play(seed: str, harmful: str, count: str, arm: str) -> None:
    """Plays `count` interactions of the world of a seed."""
    from evaluation.loop.agent import Agent, stock, wait_for_worker
    from evaluation.loop.arms import ARMS
    from evaluation.loop.world import World

    world = World(int(seed), float(harmful))
    if ARMS[arm].retrieves:
        stock(world)
    agent = Agent(world, retrieves=ARMS[arm].retrieves, settle=wait_for_worker)
    say(played=agent.play(list(world.jobs(int(count))), lambda done: say(done=done)).to_json())


if __name__ == "__main__":
    # Before numpy is imported: a second thread would cost more in waking up than it computes.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    os.environ["DJANGO_SETTINGS_MODULE"] = "evaluation.loop.settings"
    django.setup()
    if sys.argv[1] == "prepare":
        prepare()
    else:
        play(*sys.argv[2:])
