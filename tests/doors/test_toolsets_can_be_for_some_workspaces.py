"""The operator can limit a toolset or MCP server to some workspaces. For the others it does not exist."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from doors.served import MODEL, Caller, bad, good, key
from pydantic import ValidationError
from rows.stage import Stage, call, entry

from models.database.transactions import transaction
from models.flow.run.claims import ClaimedCall
from models.flow.run.results import Outcome
from models.session.tool_call.input import CallInput
from models.session.tool_call.row import ToolCall
from models.settings import settings
from models.workspace import toolset
from workers import tool as tasks
from workers.leases import Lease
from workers.tools import sources

REFUND = "mcp__shop__refund"
SERVERS = [{"type": "url", "name": "shop", "url": "assent:orders"}]
TOOLS = [{"type": "mcp_toolset", "mcp_server_name": "shop"}]


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """A function that limits toolsets to workspaces in this process, and announces `orders` and `other` as a tools worker does."""

    def run(**workspaces: list[str]) -> None:
        monkeypatch.setenv("ASSENT_TOOLSET_WORKSPACES", json.dumps(workspaces))
        settings.cache_clear()
        toolset.announce({"orders": [entry("refund")], "other": [entry("look")]})

    yield run
    monkeypatch.undo()
    settings.cache_clear()


def agent(caller: Caller, name: str = "orders") -> Any:
    """Try to create an agent that names the toolset. Returns the response."""
    servers = [{**SERVERS[0], "url": f"assent:{name}"}]
    return caller.post("/v1/agents", json={"name": "A", "model": MODEL, "mcp_servers": servers, "tools": TOOLS})


def queued(stage: Stage) -> ToolCall:
    """Return a queued call of the toolset's tool."""
    session = stage.session(servers={"shop": "assent:orders"}, shop="always_allow")
    stage.message(session)
    [tool_call] = stage.reply(session, call(REFUND, n=1))
    assert tool_call.status == "queued"
    return tool_call


def test_agents_and_sessions_of_its_workspaces_can_name_it(caller: Caller, stage: Stage, limit: Callable[..., None]) -> None:
    limit(orders=[stage.workspace_id])
    good(agent(caller))
    plain = caller.agent()
    override = {"type": "agent_with_overrides", "id": plain["id"], "mcp_servers": SERVERS, "tools": TOOLS}
    good(caller.post("/v1/sessions", json={"agent": override, "environment_id": caller.environment_id()}))


def test_other_workspaces_get_the_response_of_an_unknown_toolset(api: str, stage: Stage, limit: Callable[..., None]) -> None:
    limit(orders=[stage.workspace_id])
    with Caller(api, key(Stage())) as stranger:
        hidden, none = bad(agent(stranger), 400, "mcp_servers.0.url"), bad(agent(stranger, "nothing"), 400)
        assert hidden["message"] == none["message"].replace("assent:nothing", "assent:orders")
        assert "Known addresses: assent:other." in hidden["message"]
        plain = stranger.agent()
        override = {"type": "agent_with_overrides", "id": plain["id"], "mcp_servers": SERVERS, "tools": TOOLS}
        body: dict[str, Any] = {"agent": override, "environment_id": stranger.environment_id()}
        bad(stranger.post("/v1/sessions", json=body), 400, "assent:orders is unknown here")
        session = stranger.session(plain)
        body = {"agent": {"mcp_servers": SERVERS, "tools": TOOLS}}
        bad(stranger.post(f"/v1/sessions/{session['id']}", json=body), 400, "assent:orders is unknown here")
        good(agent(stranger, "other"))


def test_a_call_that_was_queued_before_the_limit_is_refused_when_a_worker_claims_it(
    stage: Stage, limit: Callable[..., None]
) -> None:
    limit()
    waiting = queued(stage)
    limit(orders=["wrkspc_other"])
    assert stage.claim_call(waiting) is None
    refused = stage.get(ToolCall, waiting.id)
    assert (refused.status, refused.is_error, refused.attempt) == ("refused", True, 0)


def test_a_worker_with_the_limit_refuses_the_call_also_if_others_announced_the_toolset_without_it(
    stage: Stage, limit: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    limit()
    claimed = stage.claim_call(queued(stage))
    assert claimed is not None
    monkeypatch.setenv("ASSENT_TOOLSET_WORKSPACES", '{"orders": ["wrkspc_other"]}')
    settings.cache_clear()
    taken = ClaimedCall(claimed, stage.get(CallInput, claimed.id), entry("refund"), "policy", {})
    outcome = tasks._prepare(taken, tasks._context(taken, Lease(claimed.id, claimed.fence)))
    assert isinstance(outcome, Outcome)
    assert outcome.is_error
    assert "has no tool 'mcp__shop__refund'" in outcome.content[0]["text"]
    assert sources.serves("assent:orders", "wrkspc_other")
    assert sources.serves(None, stage.workspace_id)
    assert sources.serves("https://tools.example/mcp", stage.workspace_id)


def test_the_database_hides_its_row_from_other_workspaces(stage: Stage, limit: Callable[..., None]) -> None:
    """Row-level security hides the row, so no query has to filter."""
    limit(orders=[stage.workspace_id])
    for workspace_id, names in ((stage.workspace_id, ["orders", "other"]), (Stage().workspace_id, ["other"]), ("", ["other"])):
        with transaction(workspace_id) as db:
            assert [name for name in toolset.names(db) if name in {"orders", "other"}] == names, "a living worker may add its own"


def test_a_workspace_is_named_by_its_id(monkeypatch: pytest.MonkeyPatch, limit: Callable[..., None]) -> None:
    with pytest.raises(ValidationError, match="toolset_workspaces"):
        limit(orders=["default"])
