"""Rule 5, R30, I2, I3: what began and never reported is never run again by itself, unless its tool is idempotent."""

from datetime import datetime
from typing import Any

import pytest
from rows.stage import Stage, call, say

from models import flow
from models.database.rows import Stale
from models.errors import Conflict, Invalid
from models.flow import readiness
from models.session.approval import Approval
from models.session.attempt import Attempt
from models.session.tool_call import ToolCall


@pytest.fixture
def lost(stage: Stage, clock: Any) -> ToolCall:
    """A bash call that was allowed by a person, began, and whose worker died."""
    session = stage.session(bash="always_ask")
    stage.message(session)
    [found] = stage.reply(session, call())
    stage.confirm(session, found.id)
    held = stage.claim_call(found)
    assert held
    clock.advance(60)
    stage.rescue(held)
    return stage.get(ToolCall, found.id)


def _question(stage: Stage, lost: ToolCall) -> Approval:
    return stage.approvals(lost.session_id)[-1]


def test_it_is_unknown_and_a_person_is_asked(stage: Stage, lost: ToolCall) -> None:
    """The session waits for the answer, with an approval of its own."""
    assert lost.status == "unknown"
    assert _question(stage, lost).kind == "unknown_outcome"
    assert _question(stage, lost).status == "pending"
    session = stage.read(lost.session_id)
    waits = {"type": "requires_action", "event_ids": [lost.id]}
    assert (session.status, session.stop_reason) == ("waiting", waits)
    idle = stage.events(lost.session_id, "session.status_idle")
    assert [event.body["stop_reason"] for event in idle] == [waits, waits], "for the allow, and for this"
    assert stage.claim_call(lost) is None
    stage.check(lost.session_id)


def test_the_first_allow_sent_again_is_never_a_rerun(stage: Stage, lost: ToolCall) -> None:
    """Fault 37: it belongs to the approval that it first decided."""
    stage.confirm(lost.session_id, lost.id, "allow")
    assert stage.get(ToolCall, lost.id).status == "unknown"
    with pytest.raises(Conflict):
        stage.confirm(lost.session_id, lost.id, "deny")
    assert stage.get(ToolCall, lost.id).status == "unknown"


def test_rerun(stage: Stage, lost: ToolCall) -> None:
    """At most once holds up to a person's rerun; the attempt counts on."""
    stage.decide(_question(stage, lost), outcome="rerun")
    held = stage.claim_call(lost)
    assert held
    assert held.attempt == 2
    stage.finish_call(held, "this time")
    stage.reply(lost.session_id, say("Done."))
    stage.check(lost.session_id)


def test_happened(stage: Stage, lost: ToolCall) -> None:
    """With the result that a person found out."""
    with pytest.raises(Invalid, match="result"):
        stage.decide(_question(stage, lost), outcome="happened")
    stage.decide(_question(stage, lost), outcome="happened", content=(say("I saw it."),))
    assert stage.result(lost) == "I saw it."
    assert stage.claim_call(lost) is None


def test_a_plain_allow_is_refused_and_a_plain_deny_gives_up(stage: Stage, lost: ToolCall) -> None:
    """By its own approval."""
    with pytest.raises(Invalid, match="outcome"):
        stage.decide(_question(stage, lost), result="allow")
    stage.decide(_question(stage, lost), result="deny")
    assert "may or may not" in stage.result(lost)


def test_nobody_answers(stage: Stage, lost: ToolCall, clock: Any) -> None:
    """The question expires like any other, and the model is told that nobody knows."""
    clock.advance(86_401)
    assert stage.expire(lost.session_id) == 1
    assert "outcome is unknown" in stage.result(lost)
    stage.reply(lost.session_id, say("I see."))
    stage.check(lost.session_id)


def test_an_end_of_the_run_takes_the_question_back(stage: Stage, lost: ToolCall) -> None:
    """And the model is told what is known: that nobody knows."""
    stage.send(lost.session_id, {"type": "user.interrupt"})
    assert _question(stage, lost).status == "cancelled"
    assert stage.get(ToolCall, lost.id).status == "cancelled"
    assert "may or may not" in stage.result(lost)
    stage.check(lost.session_id)


def test_the_person_is_told_what_is_known(stage: Stage, clock: Any) -> None:
    """Which worker, when it began, and what it had printed when it last said so."""
    session = stage.session(bash="always_allow")
    stage.message(session)
    [found] = stage.reply(session, call())
    held = stage.claim_call(found)
    assert held
    Attempt.say(stage.workspace_id, held.id, held.attempt, "half\x00way")
    clock.advance(60)
    stage.rescue(held)
    told = stage.approvals(session)[-1].attempt_told
    assert told
    assert (told["number"], told["worker"], told["output"]) == (1, "worker", "half\ufffdway")
    assert datetime.fromisoformat(told["started_at"]) < stage.approvals(session)[-1].created_at


def test_what_a_zombie_reports_is_recorded_beside_and_never_used(stage: Stage, clock: Any) -> None:
    """Fault 6: whoever must say what became of the call can read it; nothing else follows from it."""
    session = stage.session(bash="always_allow")
    stage.message(session)
    [found] = stage.reply(session, call())
    zombie = stage.claim_call(found)
    assert zombie
    clock.advance(60)
    stage.rescue(zombie)
    late = flow.Outcome([say("I am late")], is_error=False)
    stage.locked(session, lambda db, session: flow.late_result(db, session, zombie.id, zombie.attempt, late))
    assert stage.get(ToolCall, found.id).status == "unknown"
    kept = stage.get(Attempt, found.id, 1).late_result
    assert kept
    assert (kept["content"], kept["is_error"]) == ([say("I am late")], False)
    stage.check(session)


def test_a_result_that_was_kept_is_not_late_when_its_worker_could_not_know(stage: Stage) -> None:
    """Its commit came through though an error said otherwise: told again, it is nothing new."""
    session = stage.session(bash="always_allow")
    stage.message(session)
    [found] = stage.reply(session, call())
    stage.run_call(found)
    again = flow.Outcome([say("ok")], is_error=False)
    stage.locked(session, lambda db, session: flow.late_result(db, session, found.id, 1, again))
    assert stage.get(Attempt, found.id, 1).late_result is None


def test_a_zombie_that_comes_back_writes_nothing(stage: Stage, clock: Any) -> None:
    """Fault 6, I7: its result is not taken."""
    session = stage.session(bash="always_allow")
    stage.message(session)
    [found] = stage.reply(session, call())
    zombie = stage.claim_call(found)
    assert zombie
    clock.advance(60)
    stage.rescue(zombie)
    with pytest.raises(Exception, match="no longer held"):
        stage.finish_call(zombie, "I am late")
    assert stage.get(ToolCall, found.id).status == "unknown"


def test_an_idempotent_call_goes_again_under_its_key_at_most_three_times(stage: Stage, clock: Any) -> None:
    """I3: the same id and input each time; then it fails and says so."""
    session = stage.session(write="always_allow")
    stage.message(session)
    [found] = stage.reply(session, call("write", file_path="a", content="b"))
    for attempt in (1, 2, 3):
        held = stage.claim_call(found)
        assert held
        assert (held.id, held.attempt, held.input_sha256) == (found.id, attempt, found.input_sha256)
        clock.advance(60)
        stage.rescue(held)
    assert stage.get(ToolCall, found.id).status == "done"
    assert "lost 3 times" in stage.result(found)
    stage.check(session)


def test_a_zombie_s_result_is_not_its_heir_s(stage: Stage, clock: Any) -> None:
    """I7: the call runs again, by another claim, when its first worker comes back."""
    session = stage.session(write="always_allow")
    stage.message(session)
    [found] = stage.reply(session, call("write", file_path="a", content="b"))
    zombie = stage.claim_call(found)
    assert zombie
    clock.advance(60)
    stage.rescue(zombie)
    lost = stage.get(Attempt, found.id, 1)
    assert (lost.outcome, lost.ended_at is not None) == ("lost", True)
    heir = stage.claim_call(found)
    assert heir
    with pytest.raises(Stale):
        stage.finish_call(zombie, "I am late")
    assert stage.get(ToolCall, found.id).status == "running"
    stage.finish_call(heir, "I am in time")
    assert stage.result(found) == "I am in time"


def test_a_worker_with_other_files_leaves_the_call(stage: Stage) -> None:
    """The session's files are on one storage; a worker of another cannot claim its calls."""
    session = stage.session(bash="always_allow")
    stage.message(session)
    first, second = stage.reply(session, call(), call())
    assert stage.claim_call(first, "stor_1")
    assert stage.claim_call(second, "stor_2") is None
    assert stage.get(ToolCall, second.id).status == "queued"
    assert any("stor_1" in reason for reason in readiness.held_back(stage.workspace_id))
    assert stage.claim_call(second, "stor_1")
    assert readiness.held_back(stage.workspace_id) == []
