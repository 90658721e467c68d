"""A session's stream shows its own thread, and of the others what people decide, what clients run, and how each is."""

from typing import Any

from rows.stage import Stage, call, say
from rows.threads import Child

from models.database.rows import Db
from models.database.transactions import transaction
from models.flow.begin.sessions import archive_thread
from models.flow.run.results import lose_call
from models.session.event.row import Event, in_stream_of
from models.session.thread.row import own_id
from models.session.tool_call.row import ToolCall

THREAD = "session.thread_"


def stream(stage: Stage, session_id: str, thread_id: str = "") -> list[Event]:
    """The events of a thread's stream; without a thread, of the session's."""
    thread_id = thread_id or own_id(session_id)

    def find(db: Db) -> list[Event]:
        condition = f"WHERE session_id = %(session)s AND {in_stream_of(thread_id, session_id)} ORDER BY seq"
        return db.find(Event, condition, session=session_id, thread=thread_id)

    with transaction(stage.workspace_id) as db:
        events = find(db)
    assert [event.id for event in events] == [event.id for event in stage.events(session_id) if event.is_in(thread_id)]
    return events


def statuses(stage: Stage, session_id: str) -> list[tuple[str, str, list[str]]]:
    """What threads became: the end of each event's type, the agent's name, and the calls for which the thread waits."""
    events = [event for event in stream(stage, session_id) if event.type.startswith(THREAD)]
    bodies = [(event.type.removeprefix(THREAD).removeprefix("status_"), event.body) for event in events]
    return [(kind, body["agent_name"], body.get("stop_reason", {}).get("event_ids", [])) for kind, body in bodies]


def started(stage: Stage, **kinds: Any) -> tuple[str, Child]:
    """A session that runs, whose own thread began another one."""
    session_id = stage.session(**kinds)
    stage.message(session_id)
    return session_id, Child(stage, session_id)


def test_a_session_of_one_thread_says_nothing_of_threads(stage: Stage) -> None:
    session_id = stage.session()
    tool_call = stage.propose(session_id)
    stage.confirm(session_id, tool_call.id)
    stage.run_call(tool_call)
    stage.reply(session_id, say("Done."))
    assert statuses(stage, session_id) == []


def test_the_own_thread_says_its_status_before_any_other(stage: Stage) -> None:
    """The session had been running before it had a second thread."""
    session_id, child = started(stage)
    assert statuses(stage, session_id) == [("running", "Agent", []), ("created", "Child", []), ("running", "Child", [])]
    [first, created, last] = [event for event in stream(stage, session_id) if event.type.startswith(THREAD)]
    assert (first.body["session_thread_id"], created.body["session_thread_id"]) == (own_id(session_id), child.id)
    assert [event.thread_id for event in (created, last)] == [own_id(session_id), child.id], "the parent tells that it began"


def test_each_thread_says_what_it_becomes(stage: Stage) -> None:
    session_id, child = started(stage)
    first, second = child.reply(call(command="1"), call(command="2"))
    stage.confirm(session_id, first.id)
    stage.confirm(session_id, second.id, "deny")
    stage.run_call(first)
    child.reply(say("Done."))
    stage.reply(session_id, say("Done."))
    assert statuses(stage, session_id)[3:] == [
        ("idle", "Child", [first.id, second.id]),
        ("idle", "Child", [second.id]),
        ("running", "Child", []),
        ("idle", "Child", []),
        ("idle", "Agent", []),
    ]
    assert stream(stage, session_id)[-1].type == "session.status_idle", "nothing follows the session's idle event"
    stage.check(session_id)


def test_a_thread_that_ends_says_so_as_the_last_of_its_stream(stage: Stage) -> None:
    session_id, child = started(stage)
    asked = child.propose()
    stage.reply(session_id, say("Done."))
    stage.locked(session_id, lambda locked: archive_thread(locked.on(locked.threads[1])))
    stage.reply(session_id, say("It was archived."))
    of_child = [status for status in statuses(stage, session_id) if status[1] == "Child"]
    assert of_child[-2:] == [("idle", "Child", []), ("terminated", "Child", [])]
    assert stream(stage, session_id, child.id)[-1].type == "session.thread_status_terminated"
    idles = [event.body["stop_reason"] for event in stage.events(session_id, "session.status_idle")]
    assert [reason.get("event_ids") for reason in idles] == [[asked.id], None], "the session no longer waits for the thread"
    stage.check(session_id)


def test_what_people_decide_is_in_both_streams_and_what_a_thread_does_in_its_own(stage: Stage) -> None:
    session_id, child = started(stage, bash="always_ask", read="always_allow")
    asked, allowed = child.reply(say("I look."), call(), call("read", file_path="a"))
    stage.confirm(session_id, asked.id)
    for tool_call in (asked, allowed):
        stage.run_call(tool_call)
    of_child = [event for event in stage.events(session_id) if event.thread_id == child.id]
    crossed = [event.type for event in of_child if event.is_in(own_id(session_id)) and not event.type.startswith(THREAD)]
    assert crossed == ["agent.tool_use", "approval.requested", "user.tool_confirmation", "approval.decided"]
    assert [event.id for event in of_child if event.type == "agent.tool_use" and event.cross_posted] == [asked.id]
    assert [event.id for event in stream(stage, session_id, child.id)] == [event.id for event in of_child]


def test_a_cross_posted_event_names_its_thread(stage: Stage) -> None:
    """As the SDK has it: on the session's stream, and for what clients send, on the thread's own as well."""
    session_id, child = started(stage)
    asked = child.propose()
    confirmed = stage.confirm(session_id, asked.id)
    own = stage.propose(stage.session())
    use = next(event for event in stage.events(session_id) if event.id == asked.id)
    names = [
        event.shown(whole=True, thread_id=thread_id).get("session_thread_id")
        for event in (use, confirmed)
        for thread_id in (None, child.id)
    ]
    assert names == [child.id, None, child.id, child.id]
    [of_own] = stage.events(own.session_id, "agent.tool_use")
    assert "session_thread_id" not in of_own.shown(whole=True), "an event of the session's own thread names none"


def test_calls_that_the_client_runs_are_in_the_session_s_stream(stage: Stage) -> None:
    session_id, child = started(stage, custom=("look_up",))
    theirs = child.propose("look_up", n=1)
    stage.send(session_id, {"type": "user.custom_tool_result", "custom_tool_use_id": theirs.id, "content": [say("1")]})
    shown = [(event.type, event.thread_id) for event in stream(stage, session_id) if "custom" in event.type]
    assert shown == [("agent.custom_tool_use", child.id), ("user.custom_tool_result", child.id)]


def test_calls_of_a_self_hosted_session_are_in_its_stream_unless_they_are_denied(stage: Stage) -> None:
    session_id, child = started(stage, self_hosted=True, bash="always_ask", read="always_allow", write="always_deny")
    asked, allowed, _ = child.reply(call(), call("read", file_path="a"), call("write", file_path="a", content="b"))
    shown = [event.id for event in stream(stage, session_id) if event.type == "agent.tool_use"]
    assert shown == [asked.id, allowed.id]


def test_a_call_that_people_are_asked_about_later_comes_into_the_session_s_list(stage: Stage) -> None:
    session_id, child = started(stage, bash="always_allow")
    tool_call = child.propose()
    assert tool_call.id not in [event.id for event in stream(stage, session_id)]
    held = stage.claim_call(tool_call)
    assert held
    stage.worked(held, lambda locked: lose_call(locked, locked.db.get_one(ToolCall, held.id)))
    assert tool_call.id in [event.id for event in stream(stage, session_id)]
    assert statuses(stage, session_id)[-1] == ("idle", "Child", [tool_call.id])


def test_an_interrupt_of_a_thread_names_it_in_both_streams(stage: Stage) -> None:
    session_id, child = started(stage)
    [sent] = stage.send(session_id, {"type": "user.interrupt", "session_thread_id": child.id})
    assert sent.shown(whole=True)["session_thread_id"] == child.id
    assert all(sent.id in [event.id for event in stream(stage, session_id, thread_id)] for thread_id in ("", child.id))
    [sent] = stage.send(session_id, {"type": "user.interrupt", "session_thread_id": own_id(session_id)})
    assert sent.shown(whole=True)["session_thread_id"] == own_id(session_id), "as the client sent it"


def test_chat_words_decide_what_the_session_s_own_conversation_lists(stage: Stage) -> None:
    session_id, child = started(stage, chat_approvals=True)
    stage.reply(session_id, say("I wait for my agent."))
    asked = child.propose()
    listing = stage.events(session_id, "agent.message")[-1]
    assert (listing.thread_id, listing.body["assent"]["kind"]) == (own_id(session_id), "waiting")
    stage.send(session_id, {"type": "user.message", "content": [say("ok")], "seen": stage.events(session_id)[-1].id})
    assert stage.get(ToolCall, asked.id).status == "queued"
    stage.check(session_id)
