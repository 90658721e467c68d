"""R9, R23, R24, R26, R30: calls of toolsets and MCP servers, from what was announced to what a worker claims."""

from typing import Any

import pytest
from rows.stage import Stage, call, entry, rules, say

from models.database.transactions import transaction
from models.errors import Invalid
from models.flow import queued, readiness
from models.pure.naming import full_name
from models.session.call_input import CallInput
from models.session.tool_call import ToolCall
from models.workspace import toolset

SHOP = {"shop": "assent:orders"}
URL = "https://tools.example/mcp"
REFUND = "mcp__shop__refund"


def begun(stage: Stage, *blocks: dict[str, Any], **options: Any) -> tuple[str, list[ToolCall]]:
    """A session whose model has asked for these calls."""
    session = stage.session(servers=options.pop("servers", SHOP), **options)
    stage.message(session)
    return session, stage.reply(session, *blocks)


def test_the_model_knows_it_by_its_full_name_and_clients_by_server_and_tool(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session, [found] = begun(stage, call(REFUND, n=1))
    [event] = stage.events(session, "agent.mcp_tool_use")
    assert (event.id, event.body["name"], event.body["mcp_server_name"]) == (found.id, "refund", "shop")
    assert event.body["evaluated_permission"] == "ask"
    stage.confirm(session, found.id)
    stage.run_call(found, "Refunded.")
    [result] = stage.events(session, "agent.mcp_tool_result")
    assert result.body == {"mcp_tool_use_id": found.id, "content": [say("Refunded.")], "is_error": False}
    assert stage.history(session)[-1]["content"][0]["content"] == [say("Refunded.")]
    stage.reply(session, say("Done."))
    stage.check(session)


def test_without_any_policy_it_asks_and_rules_know_its_full_name(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund"), entry("look")]})
    nine = {"tool": "mcp__shop__refund", "input": [{"path": "/n", "equals": 9}]}
    held = rules(("allow", "mcp__shop__look"), ("deny", nine))
    _, found = begun(stage, call(REFUND, n=1), call("mcp__shop__look", n=1), call(REFUND, n=9), agent_policy=held)
    assert [each.status for each in found] == ["asked", "queued", "denied"]


def test_what_its_author_says_holds_where_nobody_else_says_anything(stage: Stage) -> None:
    """The author's rules are always among those that are weighed; the author's default is the last but the setting's."""
    said = rules(("deny", {"tool": "refund", "input": [{"path": "/n", "gt": 500}]}), default="allow")
    toolset.announce({"orders": [entry("refund", policy=said)]})
    _, found = begun(stage, call(REFUND, n=1), call(REFUND, n=501))
    assert [each.status for each in found] == ["queued", "denied"]
    _, found = begun(stage, call(REFUND, n=1), call(REFUND, n=501), shop="always_ask")
    assert [each.status for each in found] == ["asked", "denied"]


def test_a_server_of_a_client_s_cannot_say_what_is_allowed(stage: Stage) -> None:
    """Its listing is its own word, and no policy."""
    toolset.keep_listing(stage.workspace_id, URL, lambda: [entry("refund", policy={"type": "always_allow"})])
    _, [found] = begun(stage, call(REFUND, n=1), servers={"shop": URL})
    assert found.status == "asked"


def test_people_are_shown_what_its_server_says_it_does(stage: Stage) -> None:
    hints = {"destructiveHint": True}
    toolset.keep_listing(stage.workspace_id, URL, lambda: [entry("refund", annotations=hints)])
    session, [found] = begun(stage, call(REFUND, n=1), servers={"shop": URL})
    assert stage.approvals(session)[0].annotations == hints
    assert found.idempotent is False
    [event] = stage.events(session, "agent.mcp_tool_use")
    assert event.body["approval"]["annotations"] == hints


@pytest.mark.parametrize("name", ["refund", "mcp__shop__nothing", "mcp__other__refund", "mcp__shop__hidden"])
def test_what_the_model_was_not_given_it_cannot_call(stage: Stage, name: str) -> None:
    """R26: neither by its short name, nor of another server, nor what is disabled."""
    toolset.announce({"orders": [entry("refund"), entry("hidden")]})
    session = stage.session(servers=SHOP)
    hidden = {"name": "hidden", "enabled": False, "permission_policy": {"type": "always_ask"}, "policy_from": "default"}
    stage.change_agent(session, lambda agent: agent["tools"][-1]["configs"].append(hidden))
    stage.message(session)
    [found] = stage.reply(session, call(name))
    assert found.status == "refused"
    assert "no tool named" in stage.result(found)


def test_names_that_models_do_not_take_are_changed_and_stay_apart() -> None:
    odd = [full_name("my server", tool) for tool in ("a.b", "a/b", "x" * 100, "x" * 101)]
    assert len(set(odd)) == 4
    assert all(len(name) <= 64 and name.replace("_", "").replace("-", "").isalnum() for name in odd)
    assert full_name("shop", "refund") == REFUND


@pytest.mark.parametrize("queue", [None, "tools.orders"])
def test_a_worker_without_the_toolset_leaves_the_call_and_readiness_says_so(stage: Stage, clock: Any, queue: str | None) -> None:
    toolset.announce({"orders": [entry("refund", queue=queue)]})
    _, [found] = begun(stage, call(REFUND, n=1), shop="always_allow")
    assert found.hint.queue == queue
    assert stage.claim_call(found, has=lambda address: address != "assent:orders") is None
    [said] = readiness.held_back(stage.workspace_id)
    assert "toolset orders" in said
    assert not readiness.without_a_worker(stage.workspace_id)
    clock.advance(toolset.SEEN_SECONDS + 1)
    [said] = readiness.without_a_worker(stage.workspace_id)
    assert said == "calls wait: no worker has toolset orders"
    assert stage.claim_call(found)
    assert not readiness.held_back(stage.workspace_id) + readiness.without_a_worker(stage.workspace_id)


def test_a_waiting_call_is_hinted_to_the_workers_that_have_its_toolset(stage: Stage, clock: Any) -> None:
    toolset.announce({"orders": [entry("refund", queue="tools.orders")]})
    _, [found, other] = begun(stage, call(REFUND, n=1), call("bash"), shop="always_allow", bash="always_allow")
    clock.advance(60)
    assert set(queued.queues()) == {None, "tools.orders"}
    assert [(hint.args[0], hint.queue) for hint in queued.hints(ToolCall, queue="tools.orders")] == [(found.id, "tools.orders")]
    assert [(hint.args[0], hint.queue) for hint in queued.hints(ToolCall)] == [(other.id, None)]


def test_a_call_that_still_fits_its_changed_tool_runs(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session, [found] = begun(stage, call(REFUND, n=1))
    stage.confirm(session, found.id)
    wider = entry("refund")["input_schema"] | {"properties": {"n": {"type": "number"}, "why": {"type": "string"}}}
    toolset.announce({"orders": [entry("refund", input_schema=wider)]})
    assert stage.claim_call(found)


def test_a_call_that_began_goes_on_as_it_began_though_its_tool_has_changed(stage: Stage, clock: Any) -> None:
    """I3: the same key, the same input; people were asked before it began, and what they would edit may have happened."""
    toolset.announce({"orders": [entry("refund", idempotent=True)]})
    _, [found] = begun(stage, call(REFUND, n=1), shop="always_allow")
    held = stage.claim_call(found)
    assert held
    clock.advance(60)
    stage.rescue(held)
    changed = {"type": "object", "required": ["cents"]}
    toolset.announce({"orders": [entry("refund", idempotent=True, input_schema=changed)]})
    assert stage.claim_call(found)


def test_a_call_that_needs_no_files_runs_wherever_its_session_s_are(stage: Stage) -> None:
    """Nor does it tie the session to where it ran."""
    toolset.announce({"orders": [entry("refund")]})
    session, [found, other] = begun(stage, call(REFUND, n=1), call("bash"), shop="always_allow", bash="always_allow")
    assert stage.claim_call(found, "stor_1")
    assert stage.read(session).storage_id is None
    assert stage.claim_call(other, "stor_2")


@pytest.mark.parametrize("asked", [True, False])
def test_a_call_that_fits_no_more_is_asked_again_and_not_run(stage: Stage, asked: bool) -> None:
    """Whether a person had allowed it or a policy had; it can then be edited or denied, not allowed as it is."""
    toolset.announce({"orders": [entry("refund")]})
    session, [found] = begun(stage, call(REFUND, n=1), shop="always_ask" if asked else "always_allow")
    if asked:
        stage.confirm(session, found.id)
    other = {"type": "object", "properties": {"cents": {"type": "integer"}}, "required": ["cents"], "additionalProperties": False}
    toolset.announce({"orders": [entry("refund", input_schema=other)]})
    assert stage.claim_call(found) is None
    again = stage.approvals(session)[-1]
    assert (again.status, again.kind, again.input_schema) == ("pending", "tool_call", other)
    assert "has changed" in again.prompt
    with pytest.raises(Invalid, match="no longer fits"):
        stage.decide(again, result="allow")
    stage.decide(again, result="allow", updated_input={"cents": 100})
    held = stage.claim_call(found)
    assert held
    assert stage.get(CallInput, held.id).input == {"cents": 100}
    stage.finish_call(held)
    stage.reply(session, say("Done."))
    stage.check(session)


def test_a_grant_is_for_the_tool_as_it_was_described(stage: Stage) -> None:
    """What takes another input, or says that it does something else, is another tool."""
    toolset.announce({"orders": [entry("refund")]})
    session, [found] = begun(stage, call(REFUND, n=1))
    stage.confirm(session, found.id, scope="session")
    stage.run_call(found)
    [granted] = stage.reply(session, call(REFUND, n=2))
    assert granted.status == "queued"
    stage.run_call(granted)
    toolset.announce({"orders": [entry("refund", description="Refund everything")]})
    [changed] = stage.reply(session, call(REFUND, n=3))
    assert changed.status == "asked"


def test_an_edited_call_stays_with_its_server(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session, [found] = begun(stage, call(REFUND, n=5))
    stage.decide(stage.approvals(session)[0], result="allow", updated_input={"n": 4})
    held = stage.claim_call(found)
    assert held
    assert (stage.get(CallInput, held.id).input, held.address, held.tool) == ({"n": 4}, "assent:orders", "refund")


def test_a_change_that_a_server_tells_of_while_it_is_asked_is_not_missed(stage: Stage) -> None:
    """What it answered may be from before the change: the next turn asks again."""

    def age() -> float:
        with transaction(stage.workspace_id) as db:
            told = toolset.listed(db, {"mcp_servers": [{"name": "shop", "url": URL}]})["shop"]
        assert told.age is not None
        return told.age

    def ask() -> list[dict[str, Any]]:
        toolset.mark_stale(URL)
        return [entry("refund")]

    toolset.keep_listing(stage.workspace_id, URL, lambda: [entry("refund")])
    assert age() < 3600
    toolset.keep_listing(stage.workspace_id, URL, ask)
    assert age() > 3600
    toolset.keep_listing(stage.workspace_id, URL, lambda: [entry("refund")])
    assert age() < 3600
