"""R45: in a session with `on_ask: deny`, what would be asked is denied at once, and the model is told so."""

from rows.stage import Stage, call, entry, rules, say

from models import flow
from models.database.transactions import transaction
from models.session.tool_call import ToolCall
from models.workspace import toolset
from models.workspace.workspace import Workspace


def test_what_would_be_asked_is_denied_at_once(stage: Stage) -> None:
    session = stage.session(on_ask="deny", bash=rules(("allow", "bash(ls *)")))
    stage.message(session)
    denied, allowed = stage.reply(session, call(command="rm x"), call(command="ls x"))
    assert (denied.status, allowed.status) == ("denied", "queued")
    assert "nobody can approve calls in this session" in stage.result(denied)
    assert "on_ask" in stage.get(ToolCall, denied.id).rule
    assert stage.events(session, "agent.tool_use")[0].body["evaluated_permission"] == "deny"
    assert stage.approvals(session) == []
    stage.run_call(allowed)
    stage.reply(session, say("Done."))
    stage.check(session)


def test_a_grant_allows_there_too(stage: Stage) -> None:
    first = stage.session()
    stage.message(first)
    [found] = stage.reply(first, call())
    stage.confirm(first, found.id, scope="always")
    session = stage.session(on_ask="deny", of_agent=stage.read(first).agent_id)
    stage.message(session)
    assert stage.reply(session, call())[0].status == "queued"


def test_a_policy_that_asks_meanwhile_refuses_what_is_queued(stage: Stage) -> None:
    session = stage.session(on_ask="deny", bash="always_allow")
    stage.message(session)
    [found] = stage.reply(session, call(command="rm x"))
    with transaction(stage.workspace_id) as db:
        db.get_one(Workspace, stage.workspace_id).policy = rules(("ask", "bash(rm *)"))
    assert stage.claim_call(found) is None
    assert stage.get(ToolCall, found.id).status == "refused"
    assert "nobody can approve" in stage.result(found)
    assert stage.approvals(session) == []


def test_neither_a_lost_call_nor_a_tool_s_question_waits_for_anybody(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session = stage.session(on_ask="deny", servers={"shop": "assent:orders"}, shop="always_allow", bash="always_allow")
    stage.message(session)
    lost, asking = stage.reply(session, call(), call("mcp__shop__refund", n=1))
    held = stage.claim_call(lost)
    assert held
    stage.locked(session, lambda db, locked: flow.lose_call(db, locked, ToolCall.held(db, held.id, held.fence)))
    assert stage.get(ToolCall, lost.id).status == "done"
    assert "its outcome is unknown" in stage.result(lost)
    held = stage.claim_call(asking)
    assert held
    stage.finish_call(held, question={"requests": {"why": {"message": "Why?", "schema": {}}}, "state": None})
    assert "nobody can answer in this session" in stage.result(asking)
    assert stage.approvals(session) == []
    stage.check(session)
