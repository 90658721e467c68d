"""In a session with `on_ask: deny`, a call that would ask is denied at once, and the model is told why."""

from rows.stage import Stage, call, entry, rules, say

from models.flow.run.results import lose_call
from models.session.tool_call.row import ToolCall
from models.workspace import toolset


def test_a_call_that_would_ask_is_denied_at_once(stage: Stage) -> None:
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


def test_a_grant_allows_in_such_a_session_too(stage: Stage) -> None:
    first = stage.session()
    tool_call = stage.propose(first)
    stage.confirm(first, tool_call.id, scope="always")
    session = stage.session(on_ask="deny", of_agent=stage.read(first).agent_id)
    stage.message(session)
    assert stage.reply(session, call())[0].status == "queued"


def test_a_policy_that_asks_by_now_refuses_a_queued_call(stage: Stage) -> None:
    session = stage.session(on_ask="deny", bash="always_allow")
    tool_call = stage.propose(session, call(command="rm x"))
    stage.change_policies(policy=rules(("ask", "bash(rm *)")))
    assert stage.claim_call(tool_call) is None
    assert stage.get(ToolCall, tool_call.id).status == "refused"
    assert "nobody can approve" in stage.result(tool_call)
    assert stage.approvals(session) == []


def test_neither_a_lost_call_nor_a_tool_s_question_waits_for_anybody(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session = stage.session(on_ask="deny", servers={"shop": "assent:orders"}, shop="always_allow", bash="always_allow")
    stage.message(session)
    lost, asking = stage.reply(session, call(), call("mcp__shop__refund", n=1))
    held = stage.begin_call(lost)
    stage.worked(held, lambda locked: lose_call(locked, held.as_held(locked.db)))
    assert stage.get(ToolCall, lost.id).status == "done"
    assert "its outcome is unknown" in stage.result(lost)
    held = stage.begin_call(asking)
    stage.finish_call(held, question={"requests": {"why": {"message": "Why?", "schema": {}}}, "state": None})
    assert "nobody can answer in this session" in stage.result(asking)
    assert stage.approvals(session) == []
    stage.check(session)
