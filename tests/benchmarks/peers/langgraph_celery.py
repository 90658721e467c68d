"""LangGraph with its Postgres checkpointer, in Celery tasks, behind Flask. The messages are plain dicts, which cost it least."""

import operator
import os
from functools import cache
from typing import Annotated, Any, TypedDict

import cycle
from celery import Celery
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

app = Celery("langgraph_celery", broker=os.environ["PEER_REDIS"])
app.conf.update(task_ignore_result=True, task_acks_late=True, worker_prefetch_multiplier=8, worker_enable_remote_control=False)


class State(TypedDict):
    """The conversation."""

    messages: Annotated[list[cycle.Message], operator.add]


def prepare() -> None:
    """Create the checkpointer's tables."""
    with PostgresSaver.from_conn_string(os.environ["PEER_DATABASE"]) as saver:
        saver.setup()


def _model(state: State) -> dict[str, Any]:
    return {"messages": [cycle.ask(state["messages"])]}


def _tool(state: State, config: RunnableConfig) -> dict[str, Any]:
    assert interrupt(state["messages"][-1]["content"][-1]), "denied"
    session_id = config["configurable"]["thread_id"]
    result = cycle.run(session_id, state["messages"][-1])
    cycle.tell(session_id, "result")
    return {"messages": [result]}


def _next(state: State) -> str:
    return "tool" if state["messages"][-1]["content"][-1]["type"] == "tool_use" else END


@cache
def graph() -> Any:
    """Return the graph of this process."""
    builder = StateGraph(State)
    builder.add_node("model", _model)
    builder.add_node("tool", _tool)
    builder.add_edge(START, "model")
    builder.add_edge("tool", "model")
    builder.add_conditional_edges("model", _next, ["tool", END])
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    pool = ConnectionPool(os.environ["PEER_DATABASE"], min_size=1, max_size=1, kwargs=options, open=True)
    return builder.compile(checkpointer=PostgresSaver(pool))


@app.task
def start(session_id: str) -> None:
    """Run until the interrupt."""
    state = graph().invoke({"messages": [cycle.PROMPT]}, {"configurable": {"thread_id": session_id}})
    assert state["__interrupt__"]
    cycle.ask_people(session_id)


@app.task
def resume(session_id: str) -> None:
    """Run to the end."""
    graph().invoke(Command(resume=True), {"configurable": {"thread_id": session_id}})
    cycle.tell(session_id, "done")


web = cycle.front(start.delay, resume.delay)
