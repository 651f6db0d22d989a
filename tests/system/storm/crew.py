"""The processes of a storm. What all of them need is loaded and made once, and each is forked from there.

Some change, others ask, and two are the product's own web process: one for lessons that all share, one for those of
accounts. Sampling is off but where one process asks, whose answers must name each sample in the log.
"""

import os
import signal
import socket
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from django.db import connections

from memory.services import space
from sonder_site import asgi, web
from tests.system.storm import stage
from tests.system.storm.asking import STARTED, Asker, Client
from tests.system.storm.changing import KINDS, Changer
from tests.system.storm.stage import Scope, have_model, with_settings
from tests.system.storm.tally import COUNTED, Tallies, Tally

Act = Callable[[Tally], None]
PLACES: Final = 16  # processes at most
LONG: Final = 10_000  # retrievals
LEAST: Final = 10  # answers of each who asks
IDLE: Final = 2.0  # seconds at most between two, so that a connection lasts
PATIENCE: Final = 240.0  # seconds, and more the more is asked
SLOWEST: Final = 20.0  # answers a second
PAUSE: Final = 0.002  # seconds, of one who has asked its share
WAITING: Final = 64  # connections
SHARED: Final = {"SONDER_LESSON_SCOPE": "global"}
OWN: Final = {"SONDER_LESSON_SCOPE": "account"}
SAMPLES: Final = {"SONDER_PROBATION_SHARE": 0.5, "SONDER_PROBATION_AFTER_HOURS": 0.0}


class Crew:
    """Who is in it."""

    def __init__(self, retrievals: int, accounts: int, seed: int, *, folder: Path) -> None:
        have_model("2")
        space.build_indexes(space.configured_space())
        have_model("1")
        space.open_first_space()
        self._retrievals, self._seed = retrievals, seed
        self._kept_out = 0.15 if retrievals > LONG else 0.0
        self._stage = stage.make(1 + accounts // 8, accounts)
        self._tallies = Tallies(PLACES, (*COUNTED, *KINDS), folder)
        self._names: dict[int, str] = {}  # of processes, by id

    def play(self) -> dict[str, Any]:
        """What it came to: how often what was counted, in how many seconds, and whatever was wrong in words."""
        shared, own = (self._stage.shared,), self._stage.own
        changers = [
            Changer(self._stage, scopes, self._seed + i, kept_out=self._kept_out)
            for i, scopes in enumerate((shared, own))
        ]
        for changer in changers:
            changer.fill()
        _disconnect()
        began = time.monotonic()
        webs = [self._side(changers[0], shared, SHARED), self._side(changers[1], own, OWN)]
        self._fork("asker, shared", SHARED, self._asking(shared, 0.15))
        self._fork("asker, other model", OWN, self._asking(own, 0.4, model="2"))
        self._fork("asker, sampled", OWN | SAMPLES, self._asking(own, 0.05, started=0.5))
        for n in range(3 if self._retrievals > LONG else 1):
            self._fork(f"asker {n}", OWN, self._asking(own, 1.0 + n))
        ended = self._wait(but=webs)
        seconds = time.monotonic() - began
        return {
            **{name: self._tallies.total(name) for name in (*COUNTED, *KINDS)},
            "seconds": seconds, "ended badly": ended, "told": self._tallies.told(),
        }  # fmt: skip

    def _side(self, changer: Changer, scopes: Sequence[Scope], settings: dict[str, Any]) -> int:
        """Who changes one kind of lessons, the web process that hands them out, and its client; the web's id."""
        name = "shared" if settings is SHARED else "own"
        listener = socket.create_server(("127.0.0.1", 0), backlog=WAITING)
        served = self._fork(f"web, {name}", settings, lambda _: web.main(listener.fileno()))
        self._fork(f"changer, {name}", settings, lambda tally: self._change(changer, tally))
        port = listener.getsockname()[1]

        def ask(tally: Tally) -> None:
            self._ask(Client(self._stage.board, tally, scopes, self._seed, port), tally, 0.005)

        self._fork(f"client, {name}", settings, ask)
        listener.close()
        return served

    def _asking(self, scopes: Sequence[Scope], share: float, *, model: str = "1", started: float = STARTED) -> Act:
        def act(tally: Tally) -> None:
            have_model(model)
            seed = self._seed + int(100 * share)
            self._ask(Asker(self._stage.board, tally, scopes, seed, started=started), tally, share)

        return act

    def _ask(self, asker: Asker, tally: Tally, share: float) -> None:
        """Until it is over; no more than its share of all, so that what is slow does not hold up the rest."""
        latest = 0.0
        while not self._is_over():
            wanted = tally.get("answers") <= LEAST + share * self._tallies.total("answers")
            if (wanted and self._is_due()) or time.monotonic() - latest > IDLE:
                asker.ask()
                latest = time.monotonic()
            else:
                time.sleep(PAUSE)

    def _is_due(self) -> bool:
        """Where little is asked, it is asked all the while in which changes of each kind are made."""
        if self._retrievals > LONG:
            return True
        made = sum(map(bool, map(self._tallies.total, KINDS)))
        return self._tallies.total("answers") <= self._retrievals * (made + 1) / len(KINDS)

    def _change(self, changer: Changer, tally: Tally) -> None:
        for kind in changer.changes():
            if self._is_over():
                break
            if kind:
                tally.add(kind)
                tally.add("changes")
        tally.add("refused", changer.refused.total())

    def _is_over(self) -> bool:
        """Once all has been asked and every kind of change was made; or when something was wrong."""
        done = self._tallies.total("answers") >= self._retrievals and all(map(self._tallies.total, KINDS))
        return done or self._tallies.total("faults") > 0

    # Processes

    def _fork(self, name: str, settings: dict[str, Any], act: Act) -> int:
        """A process that does this and ends; its id."""
        number = len(self._names)
        child = os.fork()
        if child:
            self._names[child] = name
            return child
        try:
            with_settings(**settings)
            act(Tally(self._tallies, number, name))
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(1)

    def _wait(self, but: Sequence[int]) -> list[str]:
        """Until all have ended, or one ends badly, or it takes too long; who did not end well. Nothing runs then."""
        living, deadline = set(self._names), time.monotonic() + PATIENCE + self._retrievals / SLOWEST
        bad = []
        while living - set(but) and not bad:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child:
                living.discard(child)
                bad += [self._names[child]] if status or child in but else []
            elif time.monotonic() > deadline:
                bad = [f"{self._names[child]}, not in time" for child in living - set(but)]
            else:
                time.sleep(PAUSE)
        for child in living:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        return bad


def _disconnect() -> None:
    """What is forked must not share a connection."""
    assert asgi.application, "what a web process needs is loaded"
    for connection in connections.all():
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]  # of Django's PostgreSQL backends
