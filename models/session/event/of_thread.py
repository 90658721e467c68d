"""The events of threads: that one began, what its status became, and what threads wrote to each other.

`Locked.emit` stores each in the stream of its thread. `session.thread_created` stands in that of the new thread's parent.
"""

from typing import Annotated, Literal, NotRequired, cast

from pydantic import Field
from typing_extensions import TypedDict

from models.database import ids
from models.session.event.fields import Text
from models.session.event.of_session import Json, StopReason
from models.session.thread.row import Thread

ThreadId = Annotated[str, Field(examples=[ids.example("sthr")])]


class OfThread(TypedDict):
    """The thread that the event is about."""

    session_thread_id: ThreadId
    agent_name: str
    """The name of the thread's agent."""


class ThreadCreated(OfThread):
    """A thread began another one, for a sub-agent."""

    type: Literal["session.thread_created"]


class ThreadRunning(OfThread):
    """The thread is running."""

    type: Literal["session.thread_status_running"]


class ThreadRescheduled(OfThread):
    """The thread's turn will be retried later."""

    type: Literal["session.thread_status_rescheduled"]


class _Details(TypedDict, total=False):
    stop_details: Json


class ThreadIdle(OfThread, _Details):
    """The thread is idle, for the reason in `stop_reason`."""

    type: Literal["session.thread_status_idle"]
    stop_reason: StopReason


class ThreadTerminated(OfThread):
    """The thread is archived. It takes no more messages and no results."""

    type: Literal["session.thread_status_terminated"]


class MessageSent(TypedDict):
    """The thread sent a message to another thread."""

    type: Literal["agent.thread_message_sent"]
    content: list[Text]
    to_session_thread_id: ThreadId
    to_agent_name: NotRequired[str]
    """Absent if the message went to the session's own thread."""


class MessageReceived(TypedDict):
    """The thread received a message from another thread. The thread's next turn reads the message."""

    type: Literal["agent.thread_message_received"]
    content: list[Text]
    from_session_thread_id: ThreadId
    from_agent_name: NotRequired[str]
    """Absent if the session's own thread sent the message."""


StatusChange = ThreadRunning | ThreadRescheduled | ThreadIdle | ThreadTerminated


def status_of(thread: Thread, stop_details: Json | None) -> StatusChange | None:
    """Return the event of a thread's status; None for `stopping`, which no event tells. `stop_details`: why the model refused."""
    about = OfThread(session_thread_id=thread.id, agent_name=thread.name)
    match thread.status:
        case "running":
            return ThreadRunning(type="session.thread_status_running", **about)
        case "rescheduling":
            return ThreadRescheduled(type="session.thread_status_rescheduled", **about)
        case "terminated":
            return ThreadTerminated(type="session.thread_status_terminated", **about)
        case "idle" | "waiting":
            reason = cast("StopReason", thread.stop_reason or {"type": "end_turn"})
            details = _Details(stop_details=stop_details) if stop_details else _Details()
            return ThreadIdle(type="session.thread_status_idle", stop_reason=reason, **about, **details)
    return None
