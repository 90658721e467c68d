"""The list has groups in one order, a decided row tells what came of it, and the way back from a card leads to its row."""

import re

import people
from inbox.visitor import Visitor
from inbox.waiting import asked, asks_back, unknown_outcome
from playwright.sync_api import expect
from rows.spending import QUOTE, spent
from rows.stage import Stage, call

from models.session.tool_call.row import ToolCall

FORM = {"type": "object", "properties": {"count": {"type": "integer"}}}


def test_what_is_due_comes_first_and_then_what_only_people_can_settle(api: str, stage: Stage) -> None:
    [plain] = asked(stage, call(command="ls"))
    stage.quote = QUOTE
    spent(stage)
    asks_back(stage, {"who": {"message": "For whom?", "schema": FORM}})
    unknown_outcome(stage)
    asked(stage, call(command="make"), approval={"timeout_seconds": 600})
    with people.member(stage, "admin").client(api) as client:
        groups = re.findall(r'id="group-([^"]+)"', client.get("/inbox").text)
        decided = re.findall(r'id="group-([^"]+)"', client.get("/inbox?show=decided").text)
    assert groups == ["soon", "unknown_outcome", "question", "budget", plain.agent_id, "arrived"]
    assert all(re.fullmatch(r"\d{4}-\d{2}-\d{2}|arrived", day) for day in decided), "by day"


def test_agents_of_one_name_and_sessions_of_one_title_are_told_apart(api: str, stage: Stage) -> None:
    for title in ("March", "March", "April"):
        [approval] = asked(stage)
        stage.locked(approval.session_id, lambda locked, title=title: setattr(locked.session, "title", title))
    with people.member(stage, "admin").client(api) as client:
        by_agent, by_session, by_tool = (
            re.findall(r'<h2 id="head-[^"]+">([^<]+)</h2>', client.get(f"/inbox?by={axis}").text)
            for axis in ("agent", "session", "tool")
        )
    assert by_agent == ["Agent · March", "Agent · March (2)", "Agent · April", "New"]
    assert by_session == ["March · Agent", "March · Agent (2)", "April", "New"]
    assert by_tool == ["bash", "New"]


def test_a_decided_row_stays_and_says_what_came_of_its_call(admin: Visitor, stage: Stage) -> None:
    [good], [bad] = asked(stage, call(command="make")), asked(stage, call(command="make test"))
    admin.open()
    for approval, output, css in ((good, "built in 3 s\nexit code: 0", "good"), (bad, "no such test\nexit code: 2", "bad")):
        stage.decide(approval, result="allow")
        row = admin.page.locator(f"#{approval.id}")
        expect(row.locator(".ending")).to_contain_text("Allowed by")
        held = stage.begin_call(stage.get(ToolCall, approval.tool_call_id))
        expect(row.locator(".result")).to_have_text("Running")
        stage.finish_call(held, f"stdout:\n{output}", is_error=css == "bad")
        expect(row.locator(f".result.{css}")).to_contain_text(output.partition("\n")[2].replace(":", ""))
    assert row.locator(".result").evaluate("node => getComputedStyle(node).color") == "rgb(179, 38, 30)"


def test_the_way_back_from_a_card_leads_to_its_row(admin: Visitor, stage: Stage) -> None:
    rows = asked(stage, *(call(command=f"echo {number}") for number in range(18)))
    admin.open()
    last = rows[-1].id
    admin.settle()
    admin.page.locator(f"#{last} a.title").click()
    expect(admin.page.locator(f"#{last}")).to_have_class(re.compile("selected"))
    admin.settle()
    admin.page.keyboard.press("Enter")
    expect(admin.page).to_have_url(re.compile(f"/approvals/{last}"))
    admin.page.go_back()
    expect(admin.page.locator(f"#{last}")).to_have_class(re.compile("selected"))
    expect(admin.page.locator(f"#{last}")).to_be_in_viewport()
