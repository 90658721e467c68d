"""A call whose worker was lost runs again only if its tool is idempotent or a person says so."""

from datetime import datetime
from typing import Any

import pytest
from people import member
from rows.stage import QUESTION, REFUND, Stage, call, entry, say

from models.database.rows import Stale
from models.database.transactions import transaction
from models.errors import Conflict, Invalid
from models.flow.run.results import Outcome, give_up_call, late_result, put_back_call
from models.operate import readiness
from models.session.approval.row import Approval
from models.session.tool_call.attempt import Attempt
from models.session.tool_call.row import ToolCall
from models.workspace import toolset


@pytest.fixture
def lost(stage: Stage, clock: Any) -> ToolCall:
    """A bash call that was allowed by a person, began, and whose worker died."""
    session = stage.session(bash="always_ask")
    tool_call = stage.propose(session)
    stage.confirm(session, tool_call.id)
    stage.lose(stage.begin_call(tool_call), clock)
    return stage.get(ToolCall, tool_call.id)


def _question(stage: Stage, lost: ToolCall) -> Approval:
    return stage.approvals(lost.session_id)[-1]


def test_the_outcome_is_unknown_and_a_person_is_asked(stage: Stage, lost: ToolCall) -> None:
    assert lost.status == "unknown"
    assert _question(stage, lost).kind == "unknown_outcome"
    assert _question(stage, lost).status == "pending"
    session = stage.read(lost.session_id)
    waits = {"type": "requires_action", "event_ids": [lost.id]}
    assert (session.status, session.stop_reason) == ("waiting", waits)
    idle = stage.events(lost.session_id, "session.status_idle")
    assert [event.body["stop_reason"] for event in idle] == [waits, waits], "for the allow, and for the outcome"
    assert stage.claim_call(lost) is None
    stage.check(lost.session_id)


def test_the_first_allow_sent_again_is_never_a_rerun(stage: Stage, lost: ToolCall) -> None:
    """It belongs to the approval that it first decided."""
    stage.confirm(lost.session_id, lost.id, "allow")
    assert stage.get(ToolCall, lost.id).status == "unknown"
    with pytest.raises(Conflict):
        stage.confirm(lost.session_id, lost.id, "deny")
    assert stage.get(ToolCall, lost.id).status == "unknown"


def test_a_person_may_have_the_call_run_again(stage: Stage, lost: ToolCall) -> None:
    stage.decide(_question(stage, lost), outcome="rerun")
    held = stage.begin_call(lost)
    assert held.attempt == 2
    stage.finish_call(held, "this time")
    stage.reply(lost.session_id, say("Done."))
    stage.check(lost.session_id)


def test_a_person_may_say_what_happened(stage: Stage, lost: ToolCall) -> None:
    with pytest.raises(Invalid, match="result"):
        stage.decide(_question(stage, lost), outcome="happened")
    stage.decide(_question(stage, lost), outcome="happened", content=(say("I saw it."),))
    assert stage.result(lost) == "I saw it."
    assert stage.claim_call(lost) is None


def test_a_plain_allow_is_refused_and_a_plain_deny_gives_up(stage: Stage, lost: ToolCall) -> None:
    with pytest.raises(Invalid, match="outcome"):
        stage.decide(_question(stage, lost), result="allow")
    stage.decide(_question(stage, lost), result="deny")
    assert "may or may not" in stage.result(lost)


def test_the_model_is_told_if_nobody_answers(stage: Stage, lost: ToolCall, clock: Any) -> None:
    clock.advance(86_401)
    assert stage.expire(lost.session_id) == 1
    assert "outcome is unknown" in stage.result(lost)
    stage.reply(lost.session_id, say("I see."))
    stage.check(lost.session_id)


def test_a_call_that_is_to_run_again_and_cannot_may_have_run_before(stage: Stage, lost: ToolCall) -> None:
    stage.decide(_question(stage, lost), outcome="rerun")
    with transaction(stage.workspace_id) as db:
        give_up_call(db, lost.session_id, lost.id, "its input cannot be read")
    assert "may or may not" in stage.result(lost)
    stage.check(lost.session_id)


def test_so_may_one_that_is_put_back_once_its_run_was_ended(stage: Stage, lost: ToolCall) -> None:
    stage.decide(_question(stage, lost), outcome="rerun")
    held = stage.begin_call(lost)
    stage.send(lost.session_id, {"type": "user.interrupt"})
    stage.worked(held, lambda locked: put_back_call(locked, locked.db.get_one(ToolCall, lost.id)))
    assert "may or may not" in stage.result(lost)
    stage.check(lost.session_id)


def test_an_end_of_the_run_withdraws_the_question(stage: Stage, lost: ToolCall) -> None:
    stage.send(lost.session_id, {"type": "user.interrupt"})
    assert _question(stage, lost).status == "cancelled"
    assert stage.get(ToolCall, lost.id).status == "cancelled"
    assert "may or may not" in stage.result(lost)
    stage.check(lost.session_id)


def test_the_approval_shows_the_attempt_s_worker_start_and_output(stage: Stage, clock: Any) -> None:
    session = stage.session(bash="always_allow")
    tool_call = stage.propose(session)
    held = stage.begin_call(tool_call)
    Attempt.say(held, "half\x00way")
    stage.lose(held, clock)
    attempt = stage.approvals(session)[-1].attempt_told
    assert attempt
    assert (attempt["number"], attempt["worker"], attempt["output"]) == (1, "worker", "half\ufffdway")
    assert datetime.fromisoformat(attempt["started_at"]) < stage.approvals(session)[-1].created_at


def test_a_late_result_is_kept_for_people_and_settles_nothing(stage: Stage, clock: Any) -> None:
    session = stage.session(bash="always_allow")
    tool_call = stage.propose(session)
    zombie = stage.begin_call(tool_call)
    stage.lose(zombie, clock)
    with pytest.raises(Stale):
        stage.finish_call(zombie, "I am late")
    late = Outcome([say("I am late")], is_error=False)
    stage.worked(zombie, lambda locked: late_result(locked, zombie, late))
    assert stage.get(ToolCall, tool_call.id).status == "unknown"
    kept = stage.get(Attempt, tool_call.id, 1).late_result
    assert kept
    assert (kept["content"], kept["is_error"]) == ([say("I am late")], False)
    stage.check(session)


def test_a_result_reported_twice_is_not_late(stage: Stage) -> None:
    """The worker may have seen an error though its commit succeeded."""
    session = stage.session(bash="always_allow")
    tool_call = stage.propose(session)
    held = stage.begin_call(tool_call)
    stage.finish_call(held)
    again = Outcome([say("ok")], is_error=False)
    stage.worked(tool_call, lambda locked: late_result(locked, held, again))
    assert stage.get(Attempt, tool_call.id, 1).late_result is None


def test_an_idempotent_call_runs_under_one_key_at_most_three_times(stage: Stage, clock: Any) -> None:
    session = stage.session(write="always_allow")
    tool_call = stage.propose(session, call("write", file_path="a", content="b"))
    for attempt in (1, 2, 3):
        held = stage.begin_call(tool_call)
        assert (held.id, held.attempt, held.input_sha256) == (tool_call.id, attempt, tool_call.input_sha256)
        stage.lose(held, clock)
    assert stage.get(ToolCall, tool_call.id).status == "done"
    assert "lost 3 times" in stage.result(tool_call)
    stage.check(session)


def test_a_late_result_does_not_settle_the_next_attempt(stage: Stage, clock: Any) -> None:
    session = stage.session(write="always_allow")
    tool_call = stage.propose(session, call("write", file_path="a", content="b"))
    zombie = stage.begin_call(tool_call)
    stage.lose(zombie, clock)
    lost = stage.get(Attempt, tool_call.id, 1)
    assert (lost.outcome, lost.ended_at is not None) == ("lost", True)
    heir = stage.begin_call(tool_call)
    with pytest.raises(Stale):
        stage.finish_call(zombie, "I am late")
    assert stage.get(ToolCall, tool_call.id).status == "running"
    stage.finish_call(heir, "I am in time")
    assert stage.result(tool_call) == "I am in time"


def test_only_a_worker_with_the_session_s_files_claims_the_call(stage: Stage) -> None:
    session = stage.session(bash="always_allow")
    stage.message(session)
    first, second = stage.reply(session, call(), call())
    assert stage.claim_call(first, "stor_1")
    assert stage.claim_call(second, "stor_2") is None
    assert stage.get(ToolCall, second.id).status == "queued"
    assert any("stor_1" in reason for reason in readiness.held_back(stage.workspace_id))
    assert stage.claim_call(second, "stor_1")
    assert readiness.held_back(stage.workspace_id) == []


def test_a_call_that_a_person_has_run_again_is_not_said_not_to_have_run(stage: Stage, lost: ToolCall) -> None:
    stage.decide(_question(stage, lost), outcome="rerun")
    stage.send(lost.session_id, {"type": "user.interrupt"})
    assert "not run" not in stage.result(lost)


def test_nor_if_its_next_question_expires(stage: Stage, clock: Any, lost: ToolCall) -> None:
    stage.decide(_question(stage, lost), outcome="rerun")
    member(stage), member(stage)
    stage.change_policies(approval={"required_approvals": 2})
    assert stage.claim_call(lost) is None
    clock.advance(90_000)
    stage.expire(lost.session_id)
    assert stage.get(ToolCall, lost.id).status == "expired"
    assert "not run" not in stage.result(lost)


def test_nor_an_idempotent_call_that_lost_its_worker(stage: Stage, clock: Any) -> None:
    session = stage.session(read="always_allow")
    tool_call = stage.propose(session, call("read", file_path="a"))
    stage.lose(stage.begin_call(tool_call), clock)
    assert stage.get(ToolCall, tool_call.id).status == "queued"
    stage.send(session, {"type": "user.interrupt"})
    assert "not run" not in stage.result(tool_call)


def test_nor_a_call_that_its_client_has(stage: Stage) -> None:
    session = stage.session(custom=("lookup",))
    tool_call = stage.propose(session, call("lookup", n=1))
    stage.send(session, {"type": "user.interrupt"})
    assert "not run" not in stage.result(tool_call)


def test_only_lost_workers_count_as_losses(stage: Stage, clock: Any) -> None:
    toolset.announce({"orders": [entry("refund", idempotent=True)]})
    session = stage.session(servers={"shop": "assent:orders"})
    tool_call = stage.propose(session, call(REFUND, n=1))
    stage.confirm(session, tool_call.id)
    for _ in range(3):
        stage.finish_call(stage.begin_call(tool_call), "", question=QUESTION)
        [pending] = [each for each in stage.approvals(session) if each.status == "pending"]
        stage.decide(pending, result="allow", answers={"who": {"action": "accept", "content": {}}})
    stage.lose(stage.begin_call(tool_call), clock)
    assert stage.get(ToolCall, tool_call.id).status == "queued", "its worker was lost once"
