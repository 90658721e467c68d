"""The pages of agents: a table with what each did, one agent with its tools and versions, and a form that keeps what it hides."""

import httpx2
import pytest
from inbox.accessibility import check_at_desk_and_phone
from inbox.visitor import Visitor
from own_database import Clock
from people import member
from playwright.sync_api import expect
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


def test_the_table_says_what_each_agent_may_and_did(plain: Visitor, agent_id: str) -> None:
    plain.open("/inbox/agents")
    cells = [text.strip() for text in plain.page.locator(f"#{agent_id} td").all_inner_texts()]
    assert cells[:2] == ["bash, read, lookup", "allows read, lookup · asks about bash · 1 rule"]
    cost = f"${PRICED.cost or 0:.2f}"
    assert cells[2:] == ["1", "2", cost, "1"], "sessions, asks, cost and what waits"
    plain.page.locator(f"#{agent_id}").get_by_role("link", name="Agent").click()
    expect(plain.page.locator(".tile")).to_have_count(4)
    tiles = [" ".join(text.split()[:2]) for text in plain.page.locator(".tile").all_inner_texts()]
    assert tiles == ["Sessions 1", "Asks 2", f"Cost {cost}", "Waits now"]


def test_an_agent_is_created_and_tried(plain: Visitor, stage: Stage) -> None:
    plain.open("/inbox/agents/new")
    plain.page.get_by_label("Name").fill("Release captain")
    plain.page.get_by_label("Model").fill("stand-in")
    plain.page.get_by_label("System prompt").fill("You release.")
    plain.page.get_by_label("bash").select_option("deny")
    plain.page.get_by_label("glob").select_option("off")
    plain.button("Create the agent").click()
    expect(plain.page.get_by_role("heading", level=1)).to_have_text("Release captain")
    agent_id = plain.page.url.rpartition("/")[2]
    body = body_of(stage, agent_id)
    configs = {config["name"]: config for config in body["tools"][0]["configs"]}  # type: ignore[index]
    assert configs["bash"]["permission_policy"] == {"type": "auto", "rules": [], "default": "deny"}
    assert configs["read"]["permission_policy"] == {"type": "always_allow"}
    assert not configs["glob"]["enabled"]
    assert body["system"] == "You release."
    plain.page.get_by_label("Message").fill("Release 4.2.")
    plain.button("Start a session").click()
    expect(plain.page.get_by_text("Release 4.2.").first).to_be_visible()
    with transaction(stage.workspace_id) as db:
        [session] = db.find(Session)
    assert session.agent_id == agent_id


def test_what_the_form_does_not_show_is_kept_and_said(plain: Visitor, stage: Stage) -> None:
    session = stage.session(bash=RULES, agent_policy=RULES, custom=("lookup",))
    agent_id = stage.read(session).agent_id
    before = body_of(stage, agent_id)
    plain.open(f"/inbox/agents/{agent_id}/edit")
    expect(plain.page.get_by_text("The agent also has rules of its own and tools that the client runs.")).to_be_visible()
    expect(plain.page.get_by_label("bash")).to_have_value("keep")
    plain.page.get_by_label("Name").fill("Renamed")
    plain.button("Save a new version").click()
    assert body_of(stage, agent_id) == before | {"name": "Renamed"}
    plain.open(f"/inbox/agents/{agent_id}/edit")
    plain.page.get_by_label("grep").select_option("allow")
    plain.button("Save a new version").click()
    after = body_of(stage, agent_id)
    assert after["permission_policy"] == before["permission_policy"]
    assert after["tools"][1] == before["tools"][1]  # type: ignore[index]
    configs = {config["name"]: config for config in after["tools"][0]["configs"]}  # type: ignore[index]
    assert configs["bash"]["permission_policy"] == RULES
    assert configs["grep"]["permission_policy"] == {"type": "always_allow"}


def test_a_change_behind_the_form_s_back_is_not_overwritten(plain: Visitor, stage: Stage, agent_id: str) -> None:
    plain.open(f"/inbox/agents/{agent_id}/edit")
    with transaction(stage.workspace_id) as db:
        Agent.lock(db, agent_id).update(db, stage.principal, {"name": "Another's"})
    plain.page.get_by_label("Name").fill("Mine")
    plain.button("Save a new version").click()
    expect(plain.page.get_by_role("alert")).to_contain_text("Version 2 was saved since this page was opened.")
    assert body_of(stage, agent_id)["name"] == "Another's"


def test_each_tool_has_its_effect_and_policy(plain: Visitor, agent_id: str) -> None:
    plain.open(f"/inbox/agents/{agent_id}?show=tools")
    bash, read, lookup = (" ".join(text.split()) for text in plain.page.locator("tbody tr").all_inner_texts())
    assert bash.startswith("bash built in Run a command in bash.")
    assert "Input of bash as JSON Schema writes ask the tool's own policy deny every bash command that starts with" in bash
    assert read.startswith("read built in Read a text file in the working directory.")
    assert read.endswith("Input of read as JSON Schema reads allow the tool's own policy none")
    assert lookup.startswith("lookup run by the client lookup Input of lookup as JSON Schema not declared allow")


def test_a_tool_s_schema_is_folded(plain: Visitor, agent_id: str) -> None:
    plain.open(f"/inbox/agents/{agent_id}?show=tools")
    for tool, field in (("lookup", '"n": {'), ("bash", '"command": {')):
        schema = plain.page.locator("tr", has=plain.page.locator("th > code", has_text=tool)).locator("details.schema")
        expect(schema.locator("pre")).to_be_hidden()
        schema.locator("summary").click()
        expect(schema.locator("pre")).to_contain_text(field)


def test_an_agent_is_archived_once_that_is_confirmed(plain: Visitor, stage: Stage, agent_id: str) -> None:
    plain.open(f"/inbox/agents/{agent_id}")
    button = plain.button("Archive for good")
    expect(button).to_be_hidden()
    plain.page.get_by_text("Archive…").click()
    expect(plain.page.locator("#archive")).to_contain_text("its 1 approval still waits")
    button.click()
    expect(plain.page.locator(".page-head .state")).to_have_text("archived")
    expect(plain.page.get_by_text("Archive…")).to_have_count(0)
    with transaction(stage.workspace_id) as db:
        assert Agent.find(db, agent_id).archived_at


def test_a_version_says_what_it_changed(plain: Visitor, stage: Stage, agent_id: str) -> None:
    with transaction(stage.workspace_id) as db:
        row = Agent.lock(db, agent_id)
        row.update(db, stage.principal, {"system": "One.\nTwo.\n"})
        row.update(db, stage.principal, {"system": "One.\nThree.\n", "max_turns": 9})
    plain.open(f"/inbox/agents/{agent_id}?show=versions")
    assert "max_turns, system" in plain.page.locator(".versions li").first.inner_text()
    change = plain.page.get_by_label("The change of system")
    expect(change.locator("tr.del")).to_contain_text("Two.")
    expect(change.locator("tr.add")).to_contain_text("Three.")
    plain.page.get_by_role("link", name="Version 1").click()
    expect(plain.page.get_by_text("The agent was created with this version.")).to_be_visible()


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
