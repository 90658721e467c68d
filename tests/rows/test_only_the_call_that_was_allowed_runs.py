"""R16, I5, I6: an allow reaches its own call, as it was shown, while that call is still what the agent waits for."""

import pytest
import sqlalchemy as sa
from rows.stage import Stage, call, say

from models.audit import Audit
from models.db import transaction
from models.errors import Conflict
from models.tool_call import ToolCall


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
        acts = db.scalars(sa.select(Audit.action).where(Audit.subject_id == found.id)).all()
    assert acts == ["tool_call.refused"]
    stage.reply(session, say("I see."))
    stage.check(session)
