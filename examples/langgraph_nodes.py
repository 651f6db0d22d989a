"""Two nodes that make a LangGraph remember: `recall` before the work, `report` after something has judged it.

    graph = StateGraph(State)
    graph.add_node("recall", recall(sonder))
    graph.add_node("work", work)      # yours: reads `task` and `context`, writes `answer`
    graph.add_node("judge", judge)    # yours: writes `signal`, one of Sonder's, and perhaps `detail`
    graph.add_node("report", report(sonder))

What is handed out is recorded when `recall` runs, so a graph runs it once for each piece of work. A graph with a
checkpointer may be stopped in between and go on in another process: the state holds all that `report` needs.
"""

from typing import Any, Protocol, TypedDict

from langgraph.graph import END, START, StateGraph

from sonder_client import Sonder


class State(TypedDict, total=False):
    """What the nodes hand on."""

    task: str
    project: str
    session: str  # your id of the conversation
    interaction: str  # of `recall`: names the piece of work
    context: str  # of `recall`: for the prompt
    answer: str
    signal: str  # what the judge says; absent where nothing has judged
    detail: str


class Node(Protocol):
    """A step of the graph: what it adds to the state."""

    def __call__(self, state: State) -> State: ...


def recall(sonder: Sonder) -> Node:
    """The node that begins a piece of work."""

    def node(state: State) -> State:
        started = sonder.start_interaction(state["task"], project=state.get("project"), session=state.get("session"))
        return {"interaction": str(started.id), "context": started.context}

    return node


def report(sonder: Sonder) -> Node:
    """The node that hands the answer in, and the verdict if there is one."""

    def node(state: State) -> State:
        sonder.finish_interaction(state["interaction"], response=state.get("answer", ""))
        if "signal" in state:
            sonder.record_outcome(state["interaction"], state["signal"], detail=state.get("detail", ""))
        return {}

    return node


def remembering(sonder: Sonder, *, work: Node, judge: Node) -> "StateGraph[State, Any, State, State]":
    """A graph from the task to the report, with your two nodes in the middle."""
    graph = StateGraph(State)
    graph.add_sequence([("recall", recall(sonder)), ("work", work), ("judge", judge), ("report", report(sonder))])
    graph.add_edge(START, "recall")
    graph.add_edge("report", END)
    return graph
