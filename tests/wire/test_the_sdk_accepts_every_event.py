"""The strict SDK accepts every type of event, in a list and in a stream."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from anthropic import Anthropic
from doors.served import MODEL, message
from rows.stage import QUOTE, Stage, call, say
from rows.threads import Child

from models.flow.begin.sessions import archive_thread
from models.flow.run import folds
from models.flow.run.folds import Folding
from models.flow.run.results import lose_call
from models.session.approval.row import Approval
from models.session.locked import Locked
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Served, Turn

CUSTOM: Any = {"type": "custom", "name": "look_up", "description": "d", "input_schema": {"type": "object", "properties": {}}}
CONFIGS: Any = [
    {"name": "read", "permission_policy": {"type": "always_allow"}},
    {"name": "write", "permission_policy": {"type": "always_deny"}},
]

Play = Callable[[Stage, str], None]


def finish(stage: Stage, session_id: str) -> None:
    """A reply that ends."""
    stage.reply(session_id, say("Done."))


def think(stage: Stage, session_id: str) -> None:
    """A reply after thinking."""
    stage.reply(session_id, {"type": "thinking", "thinking": "...", "signature": "s"}, say("Done."))


def allow(stage: Stage, session_id: str) -> None:
    """A call that asks, is allowed, and runs."""
    [tool_call] = stage.reply(session_id, say("I will."), call())
    stage.confirm(session_id, tool_call.id)
    stage.run_call(tool_call)
    finish(stage, session_id)


def decide_by_words(stage: Stage, session_id: str) -> None:
    """Calls that are listed, asked back about, and decided by chat words."""
    first, second = stage.reply(session_id, say("I will."), call(), call())
    for text in ("What is it?", "maybe", "ok"):
        stage.message(session_id, text)
    assert len(stage.events(session_id, "agent.message")) == 5
    word = {"type": "user.message", "content": [say("approve all")], "seen": stage.events(session_id)[-1].id}
    stage.send(session_id, word)
    for tool_call in (first, second):
        stage.run_call(tool_call)
    finish(stage, session_id)


def deny(stage: Stage, session_id: str) -> None:
    """A call that is denied."""
    [tool_call] = stage.reply(session_id, call())
    stage.confirm(session_id, tool_call.id, "deny", deny_message="No.")
    finish(stage, session_id)


def end(stage: Stage, session_id: str) -> None:
    """A call that is denied and ends the run."""
    [tool_call] = stage.reply(session_id, call())
    stage.confirm(session_id, tool_call.id, "deny", interrupt=True)


def every_policy(stage: Stage, session_id: str) -> None:
    """Calls that are allowed, denied, unknown and wrong."""
    calls = [
        call("read", file_path="a"),
        call("write", file_path="a", content="b"),
        call("rm"),
        call("read", wrong=1),
        call("look_up", n=1),
    ]
    tool_calls = stage.reply(session_id, *calls)
    [queued] = [c for c in tool_calls if c.status == "queued"]
    stage.run_call(queued, is_error=True)
    [theirs] = [c for c in tool_calls if c.status == "with_client"]
    stage.send(session_id, {"type": "user.custom_tool_result", "custom_tool_use_id": theirs.id, "content": [say("42")]})
    finish(stage, session_id)


def interrupt(stage: Stage, session_id: str) -> None:
    """An interrupt while the model answers."""
    stage.claim(session_id)
    stage.send(session_id, {"type": "user.interrupt"})


def interrupt_calls(stage: Stage, session_id: str) -> None:
    """An interrupt while calls wait."""
    stage.reply(session_id, call(), call("look_up", n=1))
    stage.send(session_id, {"type": "user.interrupt"})


def expire(stage: Stage, session_id: str) -> None:
    """A call that nobody decides in time."""
    stage.reply(session_id, call())
    stage.locked(session_id, lambda locked: _overdue(locked.db, locked.session.id))
    assert stage.expire(session_id) == 1
    finish(stage, session_id)


def _overdue(db: Any, session_id: str) -> None:
    for approval in Approval.pending(db, session_id):
        approval.expires_at = approval.created_at


def lose(stage: Stage, session_id: str) -> None:
    """A call whose worker dies, settled by a person."""
    [tool_call] = stage.reply(session_id, call())
    stage.confirm(session_id, tool_call.id)
    held = stage.claim_call(tool_call)
    assert held
    stage.worked(held, lambda locked: lose_call(locked, locked.db.get_one(ToolCall, held.id)))
    stage.decide(stage.approvals(session_id)[-1], outcome="give_up")
    finish(stage, session_id)


def fail(stage: Stage, session_id: str) -> None:
    """A model that fails in passing, then for good."""
    turn = stage.claim(session_id)
    assert turn
    stage.fail(turn, retryable=True)
    stage.locked(session_id, lambda locked: _due(locked.db, locked.thread.turn_id))
    turn = stage.claim(session_id)
    assert turn
    stage.fail(turn, retryable=False)


def _due(db: Any, turn_id: str | None) -> None:
    turn = db.get_one(Turn, turn_id)
    turn.due_at = turn.created_at


def refuse(stage: Stage, session_id: str) -> None:
    """A model that refuses."""
    stage.reply(session_id, say("No."), stop_reason="refusal")


def run_out(stage: Stage, session_id: str) -> None:
    """A reply that is cut."""
    stage.reply(session_id, say("Once upon"), stop_reason="max_tokens")


def reach_the_limit(stage: Stage, session_id: str) -> None:
    """More turns than allowed."""
    for _ in range(5):
        for held in stage.reply(session_id, call("read", file_path="a")):
            if held.status == "queued":
                stage.run_call(held)


def compact(stage: Stage, session_id: str) -> None:
    """A summary before the reply."""
    turn = stage.claim(session_id)
    assert turn
    what = Folding(through=0, seq=0, messages=[])

    def verb(locked: Locked) -> None:
        served, summary = Served("anthropic", "stand-in"), {"type": "summary", "text": "They met."}
        folds.fold(locked, turn.as_held(locked.db), what, folds.Summary(summary, [QUOTE], served))

    stage.worked(turn, verb)
    finish(stage, session_id)


def delegate(stage: Stage, session_id: str) -> None:
    """Two sub-agents: one asks, fails in passing, and reports; the other one refuses, and is archived."""
    one, two = Child(stage, session_id, "One"), Child(stage, session_id, "Two")
    [asked, theirs] = one.reply(call(), call("look_up", n=1))
    stage.confirm(session_id, asked.id)
    stage.run_call(asked)
    stage.send(session_id, {"type": "user.custom_tool_result", "custom_tool_use_id": theirs.id, "content": [say("42")]})
    stage.fail(one.begin(), retryable=True)
    stage.locked(session_id, lambda locked: _due(locked.db, one.row.turn_id))
    one.reply(say("Done."))
    stage.reply(session_id, say("No."), turn=two.begin(), stop_reason="refusal")
    stage.locked(session_id, lambda locked: archive_thread(locked.on(locked.threads[2])))
    finish(stage, session_id)
    types = {event.type for event in stage.events(session_id)}
    statuses = {f"session.thread_status_{status}" for status in ("running", "idle", "rescheduled", "terminated")}
    assert types >= {"session.thread_created", "agent.thread_message_sent", "agent.thread_message_received", *statuses}


PLAYS: list[Play] = [
    delegate,
    compact,
    finish,
    think,
    allow,
    decide_by_words,
    deny,
    end,
    every_policy,
    interrupt,
    interrupt_calls,
    expire,
    lose,
    fail,
    refuse,
    run_out,
    reach_the_limit,
]


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.__name__)
def test_a_run_is_listed_and_streamed_alike(sdk: Anthropic, stage: Stage, play: Play) -> None:
    agent = sdk.beta.agents.create(name="A", model=MODEL, tools=[{"type": "agent_toolset_20260401", "configs": CONFIGS}, CUSTOM])
    environment = sdk.beta.environments.list().data[0]
    words = {"chat_approvals": play is decide_by_words}
    session_id = sdk.beta.sessions.create(agent=agent.id, environment_id=environment.id, extra_body=words).id
    with sdk.beta.sessions.events.stream(session_id, event_deltas=["agent.message"]) as stream:
        streamed: list[Any] = []
        reader = threading.Thread(target=streamed.extend, args=(stream,), daemon=True)
        reader.start()
        first: Any = message("Go.")
        sdk.beta.sessions.events.send(session_id, events=[first])
        play(stage, session_id)
        sdk.beta.sessions.update(session_id, title="T", metadata={"k": "v"}, agent={"tools": []})
        sdk.beta.sessions.archive(session_id)
        reader.join(15)
        assert not reader.is_alive()
    listed = list(sdk.beta.sessions.events.list(session_id, limit=1000))
    assert [e.id for e in streamed] == [e.id for e in listed]
    assert listed[-1].type == "session.status_terminated"
    assert "session.updated" in [e.type for e in listed]
    for thread in sdk.beta.sessions.threads.list(session_id):
        assert list(sdk.beta.sessions.threads.events.list(thread.id, session_id=session_id)), "in the strict mode"
    stage.check(session_id)
