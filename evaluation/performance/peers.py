"""The same lessons and tasks in other stores that agents use: their vectors alone, and a whole retrieval."""

import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from uuid import UUID

import numpy as np
from django.conf import settings
from django.db import transaction

from evaluation.performance.bench import EVERYTHING, TOP, Bench
from evaluation.performance.finding import Finding, compared
from evaluation.performance.peer import Peer, batches
from evaluation.performance.semantic import RECALL, exact
from evaluation.performance.store import empty
from evaluation.performance.timing import Estimate, Floats, Side, in_turns, mean
from memory.models import Account
from memory.search.semantic import EF_SEARCH, semantic
from memory.services import interaction
from memory.services.caller import Caller
from memory.services.keys import create_key

PACKAGES: Final = ("chromadb", "langgraph.store.postgres")
LARGEST: Final = 100_000  # lessons; to fill the peers with more takes an hour
WHOLE: Final = 100_000  # lessons from which whole jobs are judged: in small stores, who needs no server is faster
WORK: Final = 100  # effort of a peer that is to find 60 lessons
FEW: Final = 20  # rounds of what takes long
#: Multiples of a peer's time that the search of vectors may take, and from how many lessons on.
VECTORS: Final = {"chroma": (1.5, 100_000), "LangGraph": (1.0, 10_000)}


def installed() -> bool:
    """Whether the peers are there: `make bench-peers` brings them into an environment of their own."""
    try:
        return all(find_spec(name) is not None for name in PACKAGES)
    except ModuleNotFoundError:  # of a package around one of them
        return False


def measure(bench: Bench) -> list[Finding]:
    from evaluation.performance.peer_chroma import Chroma
    from evaluation.performance.peer_langgraph import LangGraph

    folder = tempfile.TemporaryDirectory(dir=settings.SONDER_VAR)
    with folder as path, empty(f"{bench.shape.database}_peer") as database:
        found = []
        for peer in (Chroma(bench, Path(path)), LangGraph(bench, database)):
            peer.fill(batches(bench))
            found += [*_vectors(bench, peer), _filter(bench, peer), *_work(bench, peer)]
            peer.close()
        return found


def _ours(bench: Bench) -> Side:
    return Side(act=lambda i: semantic(bench.space, bench.tasks.vectors[i], EVERYTHING, TOP, ("active",)))


def _vectors(bench: Bench, peer: Peer) -> list[Finding]:
    """With the effort that the peer comes with and, if its answers then lack more than ours may, with ours."""
    everything = exact(bench, "account_id IS NULL", tuple(EF_SEARCH))
    found: list[Finding] = []
    for effort in (peer.effort, EF_SEARCH["active"]):
        peer.try_harder(effort)
        with transaction.atomic():
            taken = in_turns({"peer": Side(act=peer.nearest), "ours": _ours(bench)})
        shares = [
            len(everything.top(v) & set(map(UUID, peer.nearest(i)))) / TOP for i, v in enumerate(bench.tasks.vectors)
        ]
        recall = mean(np.array(shares))
        enough = recall.value >= RECALL.limit
        found += _vectors_at(bench, peer, effort, taken, recall, judged=enough or effort == EF_SEARCH["active"])
        if enough:
            break
    return found


def _vectors_at(
    bench: Bench, peer: Peer, effort: int, taken: Mapping[str, Floats], recall: Estimate, *, judged: bool
) -> list[Finding]:
    factor, since = VECTORS[peer.name]
    return [
        compared(
            bench.lessons,
            f"peers.{peer.name}.vectors_{effort}",
            "nearest 20 of vectors alone; ours with its filter, theirs without",
            ours=taken["ours"],
            floor=taken["peer"],
            against=f"{peer.name}, ef_search {effort}",
            at_most=factor if judged and bench.lessons >= since else None,
        ),
        Finding(
            key=f"peers.{peer.name}.recall_{effort}",
            lessons=bench.lessons,
            what=f"recall@20 of {peer.name}, ef_search {effort}",
            result=recall,
            unit="share",
        ),
    ]


def _filter(bench: Bench, peer: Peer) -> Finding:
    with transaction.atomic():
        taken = in_turns({"peer": Side(act=peer.filtered), "ours": _ours(bench)}, rounds=FEW, warm_up=2)
    return compared(
        bench.lessons,
        f"peers.{peer.name}.filter",
        "nearest 20, both with a filter of state and scope",
        ours=taken["ours"],
        floor=taken["peer"],
        against=f"{peer.name} with a filter of metadata",
    )


def _work(bench: Bench, peer: Peer) -> list[Finding]:
    """One retrieval each, written durably."""
    account = Account.objects.order_by("pk")[0]
    key = create_key(account, name=f"beside {peer.name}", source="caller", scopes=["loop"]).key
    caller = Caller(account_id=account.pk, source="caller", actor=f"api_key:{key.prefix}", key_id=key.pk)
    tasks = bench.tasks.texts
    peer.try_harder(WORK)
    taken = in_turns(
        {
            "ours": Side(act=lambda i: interaction.start(caller, interaction.Start(task=tasks[i]), bench.query(i))),
            "words": Side(act=lambda i: peer.work(i, words=True)),
            "alone": Side(act=lambda i: peer.work(i, words=False)),
        }
    )
    told = {"words": f"{peer.name} and {peer.words}", "alone": f"{peer.name} alone, which searches no words"}
    return [
        compared(
            bench.lessons,
            f"peers.{peer.name}.work_{which}",
            "the whole job: searched, gated, varied, exposures written",
            ours=taken["ours"],
            floor=taken[which],
            against=told[which],
            at_most=1.0 if which == "words" and bench.lessons >= WHOLE else None,
        )
        for which in told
    ]
