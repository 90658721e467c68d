"""R16, I5, I6: an allow reaches its own call, as it was shown, while that call is still what the agent waits for."""

from typing import Any

import psycopg
import pytest
from rows.stage import Stage, call, say

from models import flow
from models.audit.acts import Audit
from models.database.transactions import transaction
from models.errors import Conflict
from models.pure.canonical import digest
from models.session.grant import Grant
from models.session.tool_call import ToolCall

HANDS = flow.Hands("worker", "stor_1", lambda _address: True)


def test_of_three_calls_only_the_allowed_one_runs(stage: Stage) -> None:
    """Fault 28: the others wait on, and the turn with them."""
    session = stage.session()
    stage.message(session)
    calls = stage.reply(session, *(call(command=one) for one in ("a", "b", "c")))
    stage.confirm(session, calls[1].id)
    assert [stage.claim_call(each) is not None for each in calls] == [False, True, False]
    assert [stage.get(ToolCall, each.id).status for each in calls] == ["asked", "running", "asked"]
    assert stage.read(session).stop_reason == {"type": "requires_action", "event_ids": [calls[0].id, calls[2].id]}


def test_an_allow_after_the_agent_moved_on_is_a_conflict_that_says_what_happened(stage: Stage) -> None:
    """Fault 26: the run was ended and goes on with something else."""
    session = stage.session()
    stage.message(session)
    [found] = stage.reply(session, call(command="rm x"))
    stage.send(session, {"type": "user.interrupt"})
    stage.message(session, "Something else.")
    [other] = stage.reply(session, call(command="ls"))
    with pytest.raises(Conflict) as refused:
        stage.confirm(session, found.id)
    assert refused.value.winner
    assert refused.value.winner["status"] == "cancelled"
    assert [stage.get(ToolCall, each.id).status for each in (found, other)] == ["cancelled", "asked"]


def test_a_decision_about_an_earlier_look_of_a_call_is_a_conflict(stage: Stage) -> None:
    """Who saw the input of one call cannot decide another by mistake."""
    session = stage.session()
    stage.message(session)
    first, second = stage.reply(session, call(command="ls"), call(command="rm x"))
    with pytest.raises(Conflict, match="Nothing was decided"):
        stage.confirm(session, second.id, expected_input_sha256=first.input_sha256)
    assert stage.get(ToolCall, second.id).status == "asked"


@pytest.mark.parametrize("name", ["approve", "user.tool_confirmation", "approvals", "refund"])
def test_the_model_can_call_neither_the_approvals_nor_a_tool_that_it_was_not_given(stage: Stage, name: str) -> None:
    """R26: refused, told to the model, and in the audit; nobody is asked. `refund` is a client's tool of another agent."""
    stage.session(custom=("refund",))
    session = stage.session()
    stage.message(session)
    [found] = stage.reply(session, call(name, tool_use_id="sevt_1", result="allow"))
    assert found.status == "refused"
    assert not stage.approvals(session)
    assert "no tool named" in stage.result(found)
    with transaction(stage.workspace_id) as db:
        acts = [act.action for act in db.find(Audit, "WHERE subject_id = %(id)s", id=found.id)]
    assert acts == ["tool_call.refused"]
    stage.reply(session, say("I see."))
    stage.check(session)


def test_a_call_whose_input_and_hash_were_both_changed_is_not_the_one_that_was_allowed(stage: Stage, clean_database: Any) -> None:
    """I5: the approval has the hash that was decided."""
    session = stage.session()
    stage.message(session)
    [found] = stage.reply(session, call(command="ls"))
    stage.confirm(session, found.id)
    with psycopg.connect(clean_database.admin) as db:
        db.execute("""UPDATE call_input SET input = '{"command": "rm -rf /"}'""")
        db.execute("UPDATE tool_call SET input_sha256 = decode(%s, 'hex')", [digest({"command": "rm -rf /"})])
    assert stage.claim_call(found) is None
    assert stage.get(ToolCall, found.id).status == "refused"


@pytest.mark.parametrize("result", [None, "deny"])
def test_a_call_that_got_into_the_queue_past_its_question_does_not_run(
    stage: Stage, clean_database: Any, result: str | None
) -> None:
    """I6: its approval is looked at, not what somebody made of its status; whether nobody has decided or a person said no."""
    session = stage.session()
    stage.message(session)
    found, _other = stage.reply(session, call(command="a"), call(command="b"))
    if result:
        stage.confirm(session, found.id, result)
    with psycopg.connect(clean_database.admin) as db:
        db.execute("UPDATE tool_call SET status = 'queued' WHERE id = %s", [found.id])
        db.execute("DELETE FROM call_result")
    assert stage.claim_call(found) is None
    assert stage.get(ToolCall, found.id).status == "refused"


def test_nothing_is_claimed_under_another_session_s_lock(stage: Stage) -> None:
    """Rule 2: a message that names the wrong session finds neither the turn nor the call."""
    ours, theirs = stage.session(bash="always_allow"), stage.session()
    for session in (ours, theirs):
        stage.message(session)
    turn = stage.read(theirs).turn_id or ""
    assert stage.locked(ours, lambda db, row: flow.claim_turn(db, row, turn, "worker", lambda _: stage.quote)) is None
    [found] = stage.reply(ours, call())
    assert stage.locked(theirs, lambda db, row: flow.claim_call(db, row, found.id, HANDS)) is None
    assert stage.claim_call(found)


def by(stage: Stage, found: ToolCall) -> str | None:
    """On whose word a worker may run it now."""
    taken = stage.locked(found.session_id, lambda db, row: flow.claim_call(db, row, found.id, HANDS))
    return taken.by if taken else None


def test_who_let_a_call_run_is_who_did_so_last(stage: Stage) -> None:
    """The policy, a person or a grant; a person again where the grant was revoked before the call began."""
    session = stage.session(read="always_allow", bash="always_ask")
    stage.message(session)
    free, first, second = stage.reply(session, call("read", file_path="x"), call(command="a"), call(command="b"))
    assert by(stage, free) == "policy"
    stage.confirm(session, first.id, scope="session")
    assert by(stage, first) == str(stage.principal)
    flow.release_waiting(stage.workspace_id, session)
    revoke(stage)
    assert by(stage, second) is None
    stage.confirm(session, second.id)
    assert by(stage, second) == str(stage.principal)


def test_a_call_that_a_grant_allowed_runs_on_its_word_and_without_it_on_a_person_s(stage: Stage) -> None:
    session = stage.session()
    stage.message(session)
    [found] = stage.reply(session, call(command="a"))
    stage.confirm(session, found.id, scope="session")
    stage.run_call(found)
    first, second = stage.reply(session, call(command="b"), call(command="c"))
    assert by(stage, first) == f"grant:{(first.grants or [''])[0]}"
    revoke(stage)
    assert by(stage, second) is None
    assert stage.get(ToolCall, second.id).permission == "ask"
    stage.confirm(session, second.id)
    assert by(stage, second) == str(stage.principal)


def revoke(stage: Stage) -> None:
    """The one grant that there is."""
    with transaction(stage.workspace_id) as db:
        db.find(Grant)[0].revoke(db, stage.principal)
