"""Calls of toolsets and MCP servers, from the announcement of a tool to the claim of a call."""

from typing import Any

import pytest
from rows.stage import REFUND, Stage, call, entry, rules, say

from models.database.transactions import transaction
from models.errors import Invalid
from models.operate import queued, readiness
from models.pure.naming import full_name
from models.session.tool_call.input import CallInput
from models.session.tool_call.row import ToolCall
from models.workspace import toolset

SHOP = {"shop": "assent:orders"}
URL = "https://tools.example/mcp"


def begun(stage: Stage, *blocks: dict[str, Any], **options: Any) -> tuple[str, list[ToolCall]]:
    """A session whose model proposes these calls."""
    session = stage.session(servers=options.pop("servers", SHOP), **options)
    stage.message(session)
    return session, stage.reply(session, *blocks)


def test_the_model_uses_a_tool_s_full_name_and_clients_see_server_and_tool(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session, [tool_call] = begun(stage, call(REFUND, n=1))
    [event] = stage.events(session, "agent.mcp_tool_use")
    assert (event.id, event.body["name"], event.body["mcp_server_name"]) == (tool_call.id, "refund", "shop")
    assert event.body["evaluated_permission"] == "ask"
    stage.confirm(session, tool_call.id)
    stage.run_call(tool_call, "Refunded.")
    [result] = stage.events(session, "agent.mcp_tool_result")
    assert result.body == {"mcp_tool_use_id": tool_call.id, "content": [say("Refunded.")], "is_error": False}
    assert stage.history(session)[-1]["content"][0]["content"] == [say("Refunded.")]
    stage.reply(session, say("Done."))
    stage.check(session)


def test_a_tool_without_a_policy_asks_and_rules_match_its_full_name(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund"), entry("look")]})
    nine = {"tool": "mcp__shop__refund", "input": [{"path": "/n", "equals": 9}]}
    policy = rules(("allow", "mcp__shop__look"), ("deny", nine))
    _, calls = begun(stage, call(REFUND, n=1), call("mcp__shop__look", n=1), call(REFUND, n=9), agent_policy=policy)
    assert [each.status for each in calls] == ["asked", "queued", "denied"]


def test_the_author_s_rules_always_apply_and_the_author_s_default_only_without_another(stage: Stage) -> None:
    policy = rules(("deny", {"tool": "refund", "input": [{"path": "/n", "gt": 500}]}), default="allow")
    toolset.announce({"orders": [entry("refund", policy=policy)]})
    _, calls = begun(stage, call(REFUND, n=1), call(REFUND, n=501))
    assert [each.status for each in calls] == ["queued", "denied"]
    _, calls = begun(stage, call(REFUND, n=1), call(REFUND, n=501), shop="always_ask")
    assert [each.status for each in calls] == ["asked", "denied"]


def test_the_listing_of_an_mcp_server_sets_no_policy(stage: Stage) -> None:
    stage.list_tools(URL, entry("refund", policy={"type": "always_allow"}))
    _, [tool_call] = begun(stage, call(REFUND, n=1), servers={"shop": URL})
    assert tool_call.status == "asked"


def test_people_see_the_annotations_of_an_mcp_server_s_tool(stage: Stage) -> None:
    hints = {"destructiveHint": True}
    stage.list_tools(URL, entry("refund", annotations=hints))
    session, [tool_call] = begun(stage, call(REFUND, n=1), servers={"shop": URL})
    assert stage.approvals(session)[0].annotations == hints
    assert tool_call.idempotent is False
    [event] = stage.events(session, "agent.mcp_tool_use")
    assert event.body["approval"]["annotations"] == hints


@pytest.mark.parametrize("name", ["refund", "mcp__shop__nothing", "mcp__other__refund", "mcp__shop__hidden"])
def test_the_model_cannot_call_a_tool_that_the_agent_does_not_have(stage: Stage, name: str) -> None:
    """A short name, an unknown tool, another server's tool, or a disabled tool."""
    toolset.announce({"orders": [entry("refund"), entry("hidden")]})
    session = stage.session(servers=SHOP)
    hidden = {"name": "hidden", "enabled": False, "permission_policy": {"type": "always_ask"}, "policy_from": "default"}
    stage.change_agent(session, lambda agent: agent["tools"][-1]["configs"].append(hidden))
    tool_call = stage.propose(session, call(name))
    assert tool_call.status == "refused"
    assert "no tool named" in stage.result(tool_call)


def test_names_that_models_do_not_accept_are_changed_and_stay_distinct() -> None:
    odd = [full_name("my server", tool) for tool in ("a.b", "a/b", "x" * 100, "x" * 101)]
    assert len(set(odd)) == 4
    assert all(len(name) <= 64 and name.replace("_", "").replace("-", "").isalnum() for name in odd)
    assert full_name("shop", "refund") == REFUND


@pytest.mark.parametrize("queue", [None, "tools.orders"])
def test_a_worker_without_the_toolset_leaves_the_call_and_readiness_says_so(stage: Stage, clock: Any, queue: str | None) -> None:
    toolset.announce({"orders": [entry("refund", queue=queue)]})
    _, [tool_call] = begun(stage, call(REFUND, n=1), shop="always_allow")
    assert tool_call.queue == queue
    assert stage.claim_call(tool_call, has=lambda address: address != "assent:orders") is None
    [reason] = readiness.held_back(stage.workspace_id)
    assert "toolset orders" in reason
    assert not readiness.without_a_worker(stage.workspace_id)
    clock.advance(toolset.SEEN_SECONDS + 1)
    [reason] = readiness.without_a_worker(stage.workspace_id)
    assert reason == "calls wait: no worker has toolset orders"
    assert stage.claim_call(tool_call)
    assert not readiness.held_back(stage.workspace_id) + readiness.without_a_worker(stage.workspace_id)


def test_a_waiting_call_is_hinted_to_the_workers_that_have_its_toolset(stage: Stage, clock: Any) -> None:
    toolset.announce({"orders": [entry("refund", queue="tools.orders")]})
    _, [tool_call, other] = begun(stage, call(REFUND, n=1), call("bash"), shop="always_allow", bash="always_allow")
    clock.advance(60)
    assert set(queued.queues()) == {None, "tools.orders"}
    assert [(hint.args[0], hint.queue) for hint in queued.hints(ToolCall, queue="tools.orders")] == [(tool_call.id, "tools.orders")]
    assert [(hint.args[0], hint.queue) for hint in queued.hints(ToolCall)] == [(other.id, None)]


def test_a_call_that_still_fits_its_changed_tool_runs(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session, [tool_call] = begun(stage, call(REFUND, n=1))
    stage.confirm(session, tool_call.id)
    wider = entry("refund")["input_schema"] | {"properties": {"n": {"type": "number"}, "why": {"type": "string"}}}
    toolset.announce({"orders": [entry("refund", input_schema=wider)]})
    assert stage.claim_call(tool_call)


def test_a_lost_idempotent_call_runs_again_though_its_tool_has_changed(stage: Stage, clock: Any) -> None:
    """Under the same key and input, because the first attempt may have taken effect."""
    toolset.announce({"orders": [entry("refund", idempotent=True)]})
    _, [tool_call] = begun(stage, call(REFUND, n=1), shop="always_allow")
    stage.lose(stage.begin_call(tool_call), clock)
    changed = {"type": "object", "required": ["cents"]}
    toolset.announce({"orders": [entry("refund", idempotent=True, input_schema=changed)]})
    assert stage.claim_call(tool_call)


def test_a_call_that_needs_no_files_runs_on_any_storage(stage: Stage) -> None:
    """And does not bind the session to a storage."""
    toolset.announce({"orders": [entry("refund")]})
    session, [tool_call, other] = begun(stage, call(REFUND, n=1), call("bash"), shop="always_allow", bash="always_allow")
    assert stage.claim_call(tool_call, "stor_1")
    assert stage.read(session).storage_id is None
    assert stage.claim_call(other, "stor_2")


@pytest.mark.parametrize("asked", [True, False])
def test_a_call_that_no_longer_fits_its_tool_is_asked_again(stage: Stage, asked: bool) -> None:
    """Whether a person or a policy had allowed it. People can edit or deny the call, and not allow it as it is."""
    toolset.announce({"orders": [entry("refund")]})
    session, [tool_call] = begun(stage, call(REFUND, n=1), shop="always_ask" if asked else "always_allow")
    if asked:
        stage.confirm(session, tool_call.id)
    other = {"type": "object", "properties": {"cents": {"type": "integer"}}, "required": ["cents"], "additionalProperties": False}
    toolset.announce({"orders": [entry("refund", input_schema=other)]})
    assert stage.claim_call(tool_call) is None
    again = stage.approvals(session)[-1]
    assert (again.status, again.kind, again.input_schema) == ("pending", "tool_call", other)
    assert "has changed" in again.prompt
    with pytest.raises(Invalid, match="no longer fits"):
        stage.decide(again, result="allow")
    stage.decide(again, result="allow", updated_input={"cents": 100})
    held = stage.begin_call(tool_call)
    assert stage.get(CallInput, held.id).input == {"cents": 100}
    stage.finish_call(held)
    stage.reply(session, say("Done."))
    stage.check(session)


def test_a_grant_does_not_cover_a_tool_whose_description_or_schema_changed(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session, [tool_call] = begun(stage, call(REFUND, n=1))
    stage.confirm(session, tool_call.id, scope="session")
    stage.run_call(tool_call)
    [granted] = stage.reply(session, call(REFUND, n=2))
    assert granted.status == "queued"
    stage.run_call(granted)
    toolset.announce({"orders": [entry("refund", description="Refund everything")]})
    [changed] = stage.reply(session, call(REFUND, n=3))
    assert changed.status == "asked"


def test_an_edited_call_stays_with_its_server(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session, [tool_call] = begun(stage, call(REFUND, n=5))
    stage.decide(stage.approvals(session)[0], result="allow", updated_input={"n": 4})
    held = stage.begin_call(tool_call)
    assert (stage.get(CallInput, held.id).input, held.address, held.tool) == ({"n": 4}, "assent:orders", "refund")


def test_a_change_during_the_request_for_a_listing_makes_the_listing_stale(stage: Stage) -> None:
    """The server may have answered before the change, so the next turn asks again."""

    def age() -> float:
        with transaction(stage.workspace_id) as db:
            listing = toolset.listings_of(db, {"mcp_servers": [{"name": "shop", "url": URL}]})["shop"]
        assert listing.age is not None
        return listing.age

    stage.list_tools(URL, entry("refund"))
    assert age() < 3600
    asked_at = toolset.time_before_listing(stage.workspace_id)
    toolset.mark_stale(URL)
    toolset.keep_listing(stage.workspace_id, URL, [entry("refund")], asked_at)
    assert age() > 3600
    stage.list_tools(URL, entry("refund"))
    assert age() < 3600
