"""The setting of toolsets and MCP servers: their tools with effect and policy, and the agents that have them and are given them."""

import pytest
from inbox.accessibility import check_at_desk_and_phone
from inbox.plain import Plain
from inbox.visitor import Visitor
from people import member
from rows.stage import Stage, entry

from models.database.transactions import transaction
from models.workspace import toolset
from models.workspace.agent import Agent

URL = "https://mcp.example.com/tickets?team=a"


@pytest.fixture
def agent_id(stage: Stage) -> str:
    """An agent with a toolset and an MCP server. Another toolset is there for it."""
    toolset.announce({"shop": [entry("refund"), entry("look", effect="read")], "billing": [entry("charge", idempotent=True)]})
    stage.list_tools(URL, entry("close_ticket"))
    session = stage.session(servers={"shop": "assent:shop", "tickets": URL}, shop="always_ask")
    return str(stage.read(session).agent_id)


def body_of(stage: Stage, agent_id: str) -> dict[str, list[dict[str, object]]]:
    with transaction(stage.workspace_id) as db:
        return dict(Agent.find(db, agent_id).at(db).body)


def lines(plain: Plain) -> list[str]:
    """The rows of the page's table."""
    plain.page.fold()
    return plain.page.texts("tbody tr")


def test_toolsets_and_servers_stand_with_their_agents(plain: Plain, agent_id: str) -> None:
    plain.open("/inbox/servers")
    of_this_test = [line for line in lines(plain) if line.startswith(("shop", "billing", URL))]
    assert of_this_test == [
        "billing a toolset of this server 1 none served",
        "shop a toolset of this server 2 Agent served",
        f"{URL} an MCP server 1 Agent asked just now",
    ]
    plain.follow(URL)
    assert lines(plain) == ["close_ticket close_ticket Input of close_ticket as JSON Schema writes at most once ask Agent"]


def test_each_tool_has_its_effect_and_the_policies_of_its_agents(plain: Plain, agent_id: str) -> None:
    plain.open("/inbox/servers/tools?address=assent:shop")
    refund, look = lines(plain)
    assert refund.endswith("writes at most once ask Agent")
    assert look.endswith("reads may run again ask Agent")


def test_a_toolset_is_given_to_an_agent_and_taken_from_it(plain: Plain, stage: Stage, agent_id: str) -> None:
    plain.open("/inbox/servers/tools?address=assent:billing")
    plain.follow("Give to an agent")
    plain.fill("Name", "bills")
    plain.fill("Its calls", "deny")
    plain.press("Save a new version of the agent")
    assert "mcp__bills__charge" in plain.page.one("[role=region]", name="Tools")
    assert body_of(stage, agent_id)["mcp_servers"][-1] == {"type": "url", "name": "bills", "url": "assent:billing"}
    plain.open("/inbox/servers/tools?address=assent:billing")
    assert plain.page.field("Its calls").value == "deny"
    plain.press("Remove from Agent")
    body = body_of(stage, agent_id)
    assert [server["name"] for server in body["mcp_servers"]] == ["shop", "tickets"]
    assert [tool["mcp_server_name"] for tool in body["tools"] if "mcp_server_name" in tool] == ["shop", "tickets"]


def test_a_change_of_the_policy_keeps_what_single_tools_have(plain: Plain, stage: Stage, agent_id: str) -> None:
    with transaction(stage.workspace_id) as db:
        row = Agent.find(db, agent_id)
        tools = row.at(db).body["tools"]
        shop = next(tool for tool in tools if tool.get("mcp_server_name") == "shop")
        own = {"name": "look", "enabled": True, "permission_policy": {"type": "always_allow"}, "policy_from": "tool"}
        other = {"name": "refund", "enabled": True, "permission_policy": {"type": "always_ask"}, "policy_from": "toolset"}
        row.update(
            db, stage.principal, {"tools": [*(tool for tool in tools if tool is not shop), {**shop, "configs": [own, other]}]}
        )
    plain.open("/inbox/servers/tools?address=assent:shop")
    plain.fill("Its calls", "deny")
    plain.press("Save a new version")
    shop = next(tool for tool in body_of(stage, agent_id)["tools"] if tool.get("mcp_server_name") == "shop")
    denied = {"type": "auto", "rules": [], "default": "deny"}
    assert shop["default_config"]["permission_policy"] == denied  # type: ignore[index]
    policies = {config["name"]: config["permission_policy"] for config in shop["configs"]}  # type: ignore[attr-defined]
    assert policies == {"look": {"type": "always_allow"}, "refund": denied}


def test_what_the_api_refuses_is_said_in_the_form(plain: Plain, agent_id: str) -> None:
    plain.open("/inbox/servers/new")
    plain.fill("Tools of", "url")
    plain.fill("Name", "mine")
    plain.press("Save a new version of the agent")
    assert "Write the https URL" in plain.page.one("#fault-url")
    plain.fill("URL", "http://mcp.example.com/")
    plain.press("Save a new version of the agent")
    assert "https" in plain.page.one("[role=alert]")
    assert plain.page.field("Name").value == "mine"


@pytest.mark.parametrize(("role", "status"), [("viewer", 403), ("approver", 403), ("developer", 200)])
def test_only_who_may_change_agents_gives_tools(api: str, stage: Stage, agent_id: str, role: str, status: int) -> None:
    with member(stage, role).client(api) as client:  # type: ignore[arg-type]
        assert client.get("/inbox/servers/new").status_code == status
        listing = client.get("/inbox/servers")
        assert listing.status_code == (403 if role == "approver" else 200)
        assert ("Give to an agent" in listing.text) == (status == 200)


def test_everybody_can_use_it(admin: Visitor, agent_id: str) -> None:
    for path in ("", "/tools?address=assent:shop", "/new"):
        admin.open(f"/inbox/servers{path}")
        for summary in admin.page.locator("summary").all():
            summary.click()
        check_at_desk_and_phone(admin.page)
