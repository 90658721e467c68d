"""Messages between the threads of a session. Each is stored twice: for its sender, and for its receiver."""

from models.session.event.fields import Text
from models.session.event.of_thread import MessageReceived, MessageSent
from models.session.locked import Locked
from models.session.thread.row import Thread
from models.session.turn.row import Turn
from models.session.work import Work


def deliver(locked: Locked, to: Thread, text: str, *, wakes: bool = True) -> None:
    """Send a message from the thread at hand to another thread. If `wakes`, an idle receiver begins a run, else it keeps it."""
    content = [Text(type="text", text=text)]
    receiver = locked.on(to)
    outgoing = MessageSent(type="agent.thread_message_sent", content=content, to_session_thread_id=to.id)
    if to.parent_id:
        outgoing["to_agent_name"] = to.name
    locked.emit(outgoing)
    incoming = MessageReceived(type="agent.thread_message_received", content=content, from_session_thread_id=locked.thread.id)
    if locked.thread.parent_id:
        incoming["from_agent_name"] = locked.thread.name
    row = receiver.emit(incoming, queued=True)
    locked.note("message.sent_to_thread", row.id, thread=to.id)
    if to.status != "idle":
        return
    if wakes:
        receiver.run_again()
        Turn.queue(receiver, 1)
        Work.want(receiver)
    else:
        keep(receiver)


def keep(locked: Locked) -> None:
    """Have the messages that wait in the thread at hand belong to a turn that never runs, so that its next turn knows them.

    Messages without a turn would start a run: a thread with unread messages does not rest.
    """
    Turn.queue(locked, locked.thread.turn_count).cancel(locked)
