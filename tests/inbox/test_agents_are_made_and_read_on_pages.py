"""The pages of agents: a table with what each did, one agent with its tools and versions, and a form that keeps what it hides."""

import httpx2
import pytest
from inbox.accessibility import check_at_desk_and_phone
from inbox.plain import Plain
from inbox.visitor import Visitor
from own_database import Clock
from people import member
from rows.spending import PRICED
from rows.stage import Stage, call

from models.database.transactions import transaction
from models.operate.metrics.adding_up import add_up
from models.session.row import Session
from models.workspace.agent import Agent

RULES = {"type": "auto", "rules": [{"effect": "deny", "match": "bash(git push *)", "reason": "CI releases"}], "default": "ask"}


@pytest.fixture
def agent_id(stage: Stage, clock: Clock) -> str:
    """An agent with rules, whose session asked twice: one call was denied, one waits."""
    stage.quote = PRICED
    session = stage.session(bash="always_ask", read="always_allow", agent_policy=RULES, custom=("lookup",))
    stage.message(session)
    stage.reply(session, call(command="make"), call(command="make test"), charge=PRICED)
    stage.decide(stage.approvals(session)[0], result="deny")
    clock.advance(61)
    add_up(60)
    return str(stage.read(session).agent_id)


def body_of(stage: Stage, agent_id: str) -> dict[str, object]:
    """Return the newest version of the agent."""
    with transaction(stage.workspace_id) as db:
        return dict(Agent.find(db, agent_id).at(db).body)


def test_the_table_says_what_each_agent_may_and_did(plain: Plain, agent_id: str) -> None:
    plain.open("/inbox/agents")
    cells = [text.strip() for text in plain.page.texts(f"#{agent_id} td")]
    assert cells[:2] == ["bash, read, lookup", "allows read, lookup · asks about bash · 1 rule"]
    cost = f"${PRICED.cost or 0:.2f}"
    assert cells[2:] == ["1", "2", cost, "1"], "sessions, asks, cost and what waits"
    plain.follow("Agent", within=plain.page.one(f"#{agent_id}"))
    assert len(plain.page.all(".tile")) == 4
    tiles = [" ".join(text.split()[:2]) for text in plain.page.texts(".tile")]
    assert tiles == ["Sessions 1", "Asks 2", f"Cost {cost}", "Waits now"]


def test_an_agent_is_created_and_tried(plain: Plain, stage: Stage) -> None:
    plain.open("/inbox/agents/new")
    plain.fill("Name", "Release captain")
    plain.fill("Model", "stand-in")
    plain.fill("System prompt", "You release.")
    plain.fill("bash", "deny")
    plain.fill("glob", "off")
    plain.press("Create the agent")
    assert plain.page.one("h1").text == "Release captain"
    agent_id = plain.response.url.path.rpartition("/")[2]
    body = body_of(stage, agent_id)
    configs = {config["name"]: config for config in body["tools"][0]["configs"]}  # type: ignore[index]
    assert configs["bash"]["permission_policy"] == {"type": "auto", "rules": [], "default": "deny"}
    assert configs["read"]["permission_policy"] == {"type": "always_allow"}
    assert not configs["glob"]["enabled"]
    assert body["system"] == "You release."
    plain.fill("Message", "Release 4.2.")
    plain.press("Start a session")
    assert "Release 4.2." in plain.page.one("main")
    with transaction(stage.workspace_id) as db:
        [session] = db.find(Session)
    assert session.agent_id == agent_id


def test_what_the_form_does_not_show_is_kept_and_said(plain: Plain, stage: Stage) -> None:
    session = stage.session(bash=RULES, agent_policy=RULES, custom=("lookup",))
    agent_id = stage.read(session).agent_id
    before = body_of(stage, agent_id)
    plain.open(f"/inbox/agents/{agent_id}/edit")
    assert "The agent also has rules of its own and tools that the client runs." in plain.page.one("main")
    assert plain.page.field("bash").value == "keep"
    plain.fill("Name", "Renamed")
    plain.press("Save a new version")
    assert body_of(stage, agent_id) == before | {"name": "Renamed"}
    plain.open(f"/inbox/agents/{agent_id}/edit")
    plain.fill("grep", "allow")
    plain.press("Save a new version")
    after = body_of(stage, agent_id)
    assert after["permission_policy"] == before["permission_policy"]
    assert after["tools"][1] == before["tools"][1]  # type: ignore[index]
    configs = {config["name"]: config for config in after["tools"][0]["configs"]}  # type: ignore[index]
    assert configs["bash"]["permission_policy"] == RULES
    assert configs["grep"]["permission_policy"] == {"type": "always_allow"}


def test_a_change_behind_the_form_s_back_is_not_overwritten(plain: Plain, stage: Stage, agent_id: str) -> None:
    plain.open(f"/inbox/agents/{agent_id}/edit")
    with transaction(stage.workspace_id) as db:
        Agent.lock(db, agent_id).update(db, stage.principal, {"name": "Another's"})
    plain.fill("Name", "Mine")
    plain.press("Save a new version")
    assert "Version 2 was saved since this page was opened." in plain.page.one("[role=alert]")
    assert body_of(stage, agent_id)["name"] == "Another's"


@pytest.mark.parametrize("version", ["", "9" * 5000, "\u0661", "-1"])
def test_a_form_that_names_no_version_changes_no_agent(api: str, stage: Stage, agent_id: str, version: str) -> None:
    before = body_of(stage, agent_id)
    with member(stage, "admin").client(api) as client:
        response: httpx2.Response = client.post(
            f"/inbox/agents/{agent_id}/edit", data={"version": version, "name": "Mine", "model": "stand-in"}
        )
    assert response.status_code == 400
    assert "does not say which version of the agent you change" in response.text
    assert body_of(stage, agent_id) == before


def test_each_tool_has_its_effect_and_policy(plain: Plain, agent_id: str) -> None:
    plain.open(f"/inbox/agents/{agent_id}?show=tools")
    plain.page.fold()
    bash, read, lookup = plain.page.texts("tbody tr")
    assert bash.startswith("bash built in Run a command in bash.")
    assert "Input of bash as JSON Schema writes ask the tool's own policy deny every bash command that starts with" in bash
    assert read.startswith("read built in Read a text file in the working directory.")
    assert read.endswith("Input of read as JSON Schema reads allow the tool's own policy none")
    assert lookup.startswith("lookup run by the client lookup Input of lookup as JSON Schema not declared allow")


def test_a_tool_s_schema_is_folded(plain: Plain, agent_id: str) -> None:
    plain.open(f"/inbox/agents/{agent_id}?show=tools")
    for tool, field in (("lookup", '"n": {'), ("bash", '"command": {')):
        row = next(row for row in plain.page.all("tbody tr") if tool in row.texts("th > code"))
        assert field in row.one("details.schema:not([open]) pre")


def test_an_agent_is_archived_once_that_is_confirmed(plain: Plain, stage: Stage, agent_id: str) -> None:
    plain.open(f"/inbox/agents/{agent_id}")
    assert "its 1 approval still waits" in plain.page.one("#archive")
    plain.press("Archive for good", within=plain.page.one("details#archive:not([open])"))
    assert plain.page.one(".page-head .state").text == "archived"
    assert not plain.page.all("summary", name="Archive…")
    with transaction(stage.workspace_id) as db:
        assert Agent.find(db, agent_id).archived_at


def test_a_version_says_what_it_changed(plain: Plain, stage: Stage, agent_id: str) -> None:
    with transaction(stage.workspace_id) as db:
        row = Agent.lock(db, agent_id)
        row.update(db, stage.principal, {"system": "One.\nTwo.\n"})
        row.update(db, stage.principal, {"system": "One.\nThree.\n", "max_turns": 9})
    plain.open(f"/inbox/agents/{agent_id}?show=versions")
    assert "max_turns, system" in plain.page.all(".versions li")[0]
    change = plain.page.one("table", name="The change of system")
    assert "Two." in change.one("tr.del")
    assert "Three." in change.one("tr.add")
    plain.follow("Version 1")
    assert "The agent was created with this version." in plain.page.one("main")


@pytest.mark.parametrize(("role", "status"), [("viewer", 403), ("developer", 200)])
def test_only_who_may_change_agents_has_the_form(api: str, stage: Stage, agent_id: str, role: str, status: int) -> None:
    with member(stage, role).client(api) as client:  # type: ignore[arg-type]
        listed: httpx2.Response = client.get("/inbox/agents")
        assert listed.status_code == 200
        assert ("New agent" in listed.text) == (status == 200)
        for path in ("new", f"{agent_id}/edit"):
            assert client.get(f"/inbox/agents/{path}").status_code == status


def test_everybody_can_use_them(admin: Visitor, agent_id: str) -> None:
    paths = ("", "/new", f"/{agent_id}", f"/{agent_id}/edit", f"/{agent_id}?show=tools", f"/{agent_id}?show=versions")
    for path in paths:
        admin.open(f"/inbox/agents{path}")
        check_at_desk_and_phone(admin.page)
