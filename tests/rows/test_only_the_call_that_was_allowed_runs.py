"""An allow applies to its own call, as shown, while the agent still waits for that call."""

from typing import Any

import psycopg
import pytest
from rows.stage import Stage, call, say

from models.audit.acts import Audit
from models.database.transactions import transaction
from models.errors import Conflict
from models.flow.judge.grants import release_waiting
from models.flow.run.claims import ClaimedCall
from models.flow.run.turns import queued_turn
from models.pure.json.canonical import digest
from models.session.tool_call.row import ToolCall


def test_of_three_calls_only_the_allowed_one_runs(stage: Stage) -> None:
    session = stage.session()
    stage.message(session)
    calls = stage.reply(session, *(call(command=one) for one in ("a", "b", "c")))
    stage.confirm(session, calls[1].id)
    assert [stage.claim_call(each) is not None for each in calls] == [False, True, False]
    assert [stage.get(ToolCall, each.id).status for each in calls] == ["asked", "running", "asked"]
    assert stage.read(session).stop_reason == {"type": "requires_action", "event_ids": [calls[0].id, calls[2].id]}


def test_an_allow_after_the_run_was_ended_is_a_conflict_that_names_the_outcome(stage: Stage) -> None:
    session = stage.session()
    tool_call = stage.propose(session, call(command="rm x"))
    stage.send(session, {"type": "user.interrupt"})
    stage.message(session, "Something else.")
    [other] = stage.reply(session, call(command="ls"))
    with pytest.raises(Conflict) as refused:
        stage.confirm(session, tool_call.id)
    assert refused.value.winner
    assert refused.value.winner["status"] == "cancelled"
    assert [stage.get(ToolCall, each.id).status for each in (tool_call, other)] == ["cancelled", "asked"]


@pytest.mark.parametrize("name", ["approve", "user.tool_confirmation", "approvals", "refund"])
def test_the_model_can_call_neither_approvals_nor_a_tool_of_another_agent(stage: Stage, name: str) -> None:
    """`refund` is a client tool of another agent."""
    stage.session(custom=("refund",))
    session = stage.session()
    tool_call = stage.propose(session, call(name, tool_use_id="sevt_1", result="allow"))
    assert tool_call.status == "refused"
    assert not stage.approvals(session)
    assert "no tool named" in stage.result(tool_call)
    with transaction(stage.workspace_id) as db:
        acts = [act.action for act in db.find(Audit, "WHERE subject_id = %(id)s", id=tool_call.id)]
    assert acts == ["tool_call.refused"]
    stage.reply(session, say("I see."))
    stage.check(session)


def test_a_call_whose_input_and_hash_were_both_changed_does_not_run(stage: Stage, clean_database: Any) -> None:
    """The approval has the hash that people decided about."""
    session = stage.session()
    tool_call = stage.propose(session, call(command="ls"))
    stage.confirm(session, tool_call.id)
    with psycopg.connect(clean_database.admin) as db:
        db.execute("""UPDATE call_input SET input = '{"command": "rm -rf /"}'""")
        db.execute("UPDATE tool_call SET input_sha256 = decode(%s, 'hex')", [digest({"command": "rm -rf /"})])
    assert stage.claim_call(tool_call) is None
    assert stage.get(ToolCall, tool_call.id).status == "refused"


@pytest.mark.parametrize("result", [None, "deny"])
def test_a_call_queued_without_an_allow_does_not_run(stage: Stage, clean_database: Any, result: str | None) -> None:
    """The claim checks the approval, and not only the status of the call."""
    session = stage.session()
    stage.message(session)
    tool_call, _other = stage.reply(session, call(command="a"), call(command="b"))
    if result:
        stage.confirm(session, tool_call.id, result)
    with psycopg.connect(clean_database.admin) as db:
        db.execute("UPDATE tool_call SET status = 'queued' WHERE id = %s", [tool_call.id])
        db.execute("DELETE FROM call_result")
    assert stage.claim_call(tool_call) is None
    assert stage.get(ToolCall, tool_call.id).status == "refused"


def test_nothing_is_claimed_under_another_session_s_lock(stage: Stage) -> None:
    ours, theirs = stage.session(bash="always_allow"), stage.session()
    for session in (ours, theirs):
        stage.message(session)
    turn = stage.thread(theirs).turn_id or ""
    with transaction(stage.workspace_id) as db:
        assert queued_turn(db, ours, turn) is None
    [tool_call] = stage.reply(ours, call())
    assert stage.take(theirs, tool_call.id) is None
    assert stage.claim_call(tool_call)


def allowed_by(stage: Stage, tool_call: ToolCall) -> str | None:
    """Claim a call. Returns who allowed it, or None if it is not free to claim."""
    taken = stage.take(tool_call.session_id, tool_call.id)
    return taken.by if isinstance(taken, ClaimedCall) else None


def test_a_claim_names_the_last_one_to_allow_the_call(stage: Stage) -> None:
    session = stage.session(read="always_allow", bash="always_ask")
    stage.message(session)
    free, first, second = stage.reply(session, call("read", file_path="x"), call(command="a"), call(command="b"))
    assert allowed_by(stage, free) == "policy"
    stage.confirm(session, first.id, scope="session")
    assert allowed_by(stage, first) == str(stage.principal)
    release_waiting(stage.workspace_id, session)
    stage.revoke_grants()
    assert allowed_by(stage, second) is None
    stage.confirm(session, second.id)
    assert allowed_by(stage, second) == str(stage.principal)


def test_a_claim_names_the_grant_or_after_its_revocation_a_person(stage: Stage) -> None:
    session = stage.session()
    tool_call = stage.propose(session, call(command="a"))
    stage.confirm(session, tool_call.id, scope="session")
    stage.run_call(tool_call)
    first, second = stage.reply(session, call(command="b"), call(command="c"))
    assert allowed_by(stage, first) == f"grant:{(first.grants or [''])[0]}"
    stage.revoke_grants()
    assert allowed_by(stage, second) is None
    assert stage.get(ToolCall, second.id).permission == "ask"
    stage.confirm(session, second.id)
    assert allowed_by(stage, second) == str(stage.principal)
