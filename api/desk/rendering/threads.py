"""The threads of a session as a tree, each with its state and the calls that it waits for."""

from dataclasses import dataclass

from api.v1.sessions.waiting import WaitingForPerson, WaitingForResult, waiting_on
from models.database.rows import Db
from models.pure.state_words import StateWord, session_state
from models.session.approval.sentences import shortened
from models.session.event.tasks import tasks_of
from models.session.row import Session
from models.session.thread.row import Thread

_MOST_TASK = 120
"""Most characters of a sub-agent's task."""


@dataclass(frozen=True)
class ThreadNode:
    """One thread of the tree."""

    thread: Thread
    state: StateWord
    task: str
    """What the agent was told to do; empty for the session's own."""
    for_people: list[WaitingForPerson]
    for_clients: list[WaitingForResult]
    """The calls that wait for the client, or a worker of the session's environment."""
    children: "list[ThreadNode]"

    @classmethod
    def of(cls, db: Db, session: Session) -> "ThreadNode":
        """Return the session's own thread, with the threads below it."""
        [threads] = db.read(Thread.of_session(session.id))
        waiting = waiting_on(db, [session])[session.id]
        held_work = Session.held_work(db, [session])
        tasks = tasks_of(db, [(session.id, thread.id) for thread in threads])

        def node(thread: Thread) -> "ThreadNode":
            own = [call for call in waiting if call.session_thread_id == thread.id]
            return cls(
                thread=thread,
                state=session_state(thread.status, thread.stop_reason, is_held=(session.id, thread.id) in held_work.threads),
                task=shortened(" ".join(tasks.get(thread.id, "").split()), _MOST_TASK),
                for_people=[call for call in own if isinstance(call, WaitingForPerson)],
                for_clients=[call for call in own if isinstance(call, WaitingForResult)],
                children=[node(child) for child in threads if child.parent_id == thread.id],
            )

        return node(threads[0])

    @property
    def all(self) -> "list[ThreadNode]":
        """This thread and all below it."""
        return [self, *(below for child in self.children for below in child.all)]
