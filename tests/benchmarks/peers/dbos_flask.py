"""DBOS in the processes of its Flask front: a workflow per session, whose model calls and command are steps."""

import os

import cycle
from dbos import DBOS, SetWorkflowID

DBOS(
    config={
        "name": "peer",
        "system_database_url": os.environ["PEER_DATABASE"],
        "log_level": "ERROR",
        "executor_id": str(os.getpid()),
        "application_version": "1",
        "sys_db_pool_size": 20,
        "scheduler_polling_interval_sec": 30.0,
    }
)
ask, run = DBOS.step()(cycle.ask), DBOS.step()(cycle.run)


@DBOS.workflow()
def session(session_id: str) -> None:
    """Run one session, which waits in `recv` for its decision."""
    messages = [cycle.PROMPT, ask([cycle.PROMPT])]
    cycle.ask_people(session_id)
    assert DBOS.recv("decision", timeout_seconds=86_400), "denied"
    messages.append(run(session_id, messages[-1]))
    cycle.tell(session_id, "result")
    ask(messages)
    cycle.tell(session_id, "done")


def start(session_id: str) -> None:
    """Start the workflow in this process."""
    with SetWorkflowID(session_id):
        DBOS.start_workflow(session, session_id)


def prepare() -> None:
    """Create the tables: `launch` did."""
    DBOS.destroy()


DBOS.launch()
web = cycle.front(start, lambda session_id: DBOS.send(session_id, True, "decision"))
