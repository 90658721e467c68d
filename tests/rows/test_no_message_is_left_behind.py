"""A message may arrive at any time, and the next turn reads it."""

from typing import Any

import pytest
from own_database import Clock
from rows.stage import Stage, call, say

from models.audit.acts import Audit
from models.database.rows import RowGone
from models.database.transactions import transaction
from models.errors import Conflict
from models.flow.begin import sessions
from models.session.row import Session


def test_sent_while_the_model_answers(stage: Stage) -> None:
    """A run that would end goes on with the message, and the count of turns starts again."""
    session = stage.session(max_turns=1)
    stage.message(session, "One")
    turn = stage.claim(session)
    late = stage.message(session, "Two")
    assert late.processed_at is None
    stage.reply(session, say("First."), turn=turn)
    assert stage.read(session).status == "running"
    assert stage.thread(session).turn_count == 1
    stage.reply(session, say("Second."))
    assert [m["content"][0]["text"] for m in stage.history(session)] == ["One", "First.", "Two", "Second."]
    stage.check(session)


def test_sent_while_a_call_waits(stage: Stage) -> None:
    """The history has one message with the results first, then the text."""
    session = stage.session(max_turns=2)
    stage.message(session, "One")
    [tool_call] = stage.reply(session, call())
    stage.message(session, "Two")
    assert stage.read(session).status == "waiting"
    stage.confirm(session, tool_call.id, "deny")
    assert stage.thread(session).turn_count == 1
    stage.claim(session)
    assert [b["type"] for b in stage.history(session)[-1]["content"]] == ["tool_result", "text"]


def test_sent_before_a_chat_word_that_decides(stage: Stage, clock: Clock) -> None:
    """The turn reads the message that waits, and not the word, which is a newer message."""
    session = stage.session(chat_approvals=True)
    stage.message(session, "One")
    stage.reply(session, call())
    stage.message(session, "Two")
    clock.advance(11)
    stage.message(session, "no")
    assert [block["text"] for block in stage.prompt(stage.claim(session))] == ["Two"]


def test_sent_before_a_failure(stage: Stage) -> None:
    """After a final failure the waiting message starts a new run."""
    session = stage.session()
    stage.message(session, "One")
    turn = stage.begin(session)
    stage.message(session, "Two")
    stage.fail(turn, retryable=False)
    assert stage.read(session).status == "running"
    stage.reply(session, say("Here."))
    stage.check(session)


def test_sent_while_a_run_is_being_stopped(stage: Stage) -> None:
    """The message starts the next run when the last call has ended."""
    session = stage.session(bash="always_allow")
    tool_call = stage.propose(session)
    held = stage.begin_call(tool_call)
    stage.send(session, {"type": "user.interrupt"}, {"type": "user.message", "content": [say("Do this instead.")]})
    assert stage.claim(session) is None
    stage.finish_call(held)
    stage.reply(session, say("Gladly."))
    assert [m["content"][-1]["text"] for m in stage.history(session)[-2:]] == ["Do this instead.", "Gladly."]
    stage.check(session)


def test_sent_while_the_model_answers_a_run_that_is_then_ended(stage: Stage) -> None:
    """The interrupt ends the run before the message, which starts the next run."""
    session = stage.session()
    stage.message(session, "First")
    stage.claim(session)
    stage.message(session, "Second")
    stage.send(session, {"type": "user.interrupt"})
    assert stage.read(session).status == "running"
    stage.check(session)
    stage.reply(session, say("Both."))
    assert "Second" in str(stage.history(session))
    stage.check(session)


def test_several_at_once_are_one_turn(stage: Stage) -> None:
    session = stage.session()
    stage.send(session, *({"type": "user.message", "content": [say(t)]} for t in ("a", "b", "c")))
    stage.reply(session, say("abc"))
    assert [b["text"] for b in stage.history(session)[0]["content"]] == ["a", "b", "c"]
    stage.check(session)


def test_a_retry_reads_messages_that_came_since_the_first_attempt(stage: Stage, clock: Any) -> None:
    session = stage.session()
    stage.message(session, "One")
    turn = stage.begin(session)
    stage.message(session, "Two")
    stage.fail(turn)
    clock.advance(120)
    stage.reply(session, say("Both."))
    assert [b["text"] for b in stage.history(session)[0]["content"]] == ["One", "Two"]


def test_an_archived_session_takes_no_messages(stage: Stage) -> None:
    """Archiving is refused while work goes on, and cancels waiting calls."""
    session = stage.session()
    stage.message(session)
    with pytest.raises(Conflict, match="interrupt"):
        stage.locked(session, sessions.archive)
    stage.reply(session, call())
    stage.message(session, "Too late")
    stage.locked(session, sessions.archive)
    assert stage.read(session).status == "terminated"
    assert stage.events(session)[-1].type == "session.status_terminated"
    with pytest.raises(Conflict, match="archived"):
        stage.message(session)
    stage.check(session)


def test_a_deleted_session_leaves_only_its_audit(stage: Stage) -> None:
    session = stage.session()
    stage.message(session)
    stage.reply(session, call())
    stage.locked(session, sessions.delete)
    assert stage.events(session) == []
    with pytest.raises(RowGone):
        stage.get(Session, session)
    with transaction(stage.workspace_id) as db:
        assert db.find(Audit, "WHERE chain = %(chain)s", chain=session)


def test_the_number_of_waiting_messages_is_bounded(stage: Stage) -> None:
    """The next turn reads all of them."""
    session = stage.session()
    stage.message(session)
    stage.claim(session)
    stage.send(session, *({"type": "user.message", "content": [say("more")]} for _ in range(100)))
    with pytest.raises(Conflict, match="100 messages"):
        stage.message(session)
