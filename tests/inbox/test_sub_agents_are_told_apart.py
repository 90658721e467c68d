"""The pages say which agent of a session asks, by its path and its task, and show each agent's own messages."""

import re
from collections.abc import Callable

import people
import pytest
from inbox.accessibility import check, check_width
from inbox.linked import new_message
from inbox.plain import Plain
from inbox.visitor import Visitor
from playwright.sync_api import expect
from rows.crew import Crew, send
from rows.stage import Stage, call, say

from models.database.transactions import transaction
from models.session.approval.grant import Grant
from models.session.approval.row import Approval
from models.session.row import Session
from models.session.tool_call.row import ToolCall

INLINE = {"name": "Counter", "description": "Counts.", "system": "Count."}


def entitle(session: Session) -> None:
    session.title = "The offer for Ada"


@pytest.fixture
def crew(stage: Stage) -> Crew:
    """A coordinator that rests, while each of its two sub-agents waits for a person."""
    crew = Crew.begin(stage, inline=True)
    stage.locked(crew.session_id, lambda locked: entitle(locked.session))
    crew.lead_replies(say("I delegate."), send("Reader", "Find the price of the pump."), send("Writer", "Write the offer."))
    crew.lead_replies(say("I wait for both."))
    crew.replies(say("I look for it."), call(command="grep pump prices.csv"), number=0)
    crew.replies(call(command="cat offer.md"), number=1)
    return crew


def approval(crew: Crew, number: int) -> Approval:
    [tool_call] = crew.asked(number)
    return next(row for row in crew.stage.approvals(crew.session_id) if row.tool_call_id == tool_call.id)


def test_the_list_groups_by_session_and_names_who_asks_for_what_task(stage: Stage, plain: Plain, crew: Crew) -> None:
    other = stage.session()
    stage.propose(other)
    plain.open("/inbox?by=session")
    assert len(plain.page.one("section[aria-labelledby]", "The offer for Ada").all("li")) == 2
    assert "Lead › Reader" in plain.rows[0]
    assert "Its task: Find the price of the pump." in plain.rows[0]
    assert "Lead › Writer" in plain.rows[1]
    assert "Its task: Write the offer." in plain.rows[1]
    assert "›" not in plain.rows[2]


def test_a_card_names_the_path_and_the_task_and_tells_that_agent_s_story(plain: Plain, crew: Crew) -> None:
    plain.open(f"/inbox/approvals/{approval(crew, 0).id}")
    assert plain.page.one("h1").text == "Lead › Reader wants to run a shell command"
    assert "Find the price of the pump." in plain.page.one("dl.facts")
    assert "I look for it." in plain.page.one("#story")
    assert "I wait for both." not in plain.page.one("#story")
    plain.follow("All messages of this agent")
    assert plain.page.one("h1").text == "Lead › Reader"


def test_a_link_names_the_path_and_the_task(plain: Plain, anna: people.Somebody, crew: Crew) -> None:
    plain.client.cookies.clear()
    plain.open(new_message(crew.stage, approval(crew, 1), anna).path)
    assert plain.page.one("h1").text == "Lead › Writer wants to run a shell command"
    assert "Write the offer." in plain.page.one("dl.facts")


def test_seven_that_ask_at_once_are_seven_rows_decided_in_any_order(stage: Stage, plain: Plain) -> None:
    crew = Crew.begin(stage)
    crew.lead_replies(*(send("Reader", f"Read part {number}.") for number in range(7)))
    crew.lead_replies(say("I wait."))
    for number in range(7):
        crew.replies(call(command=f"cat part{number}"), number=number)
    for number in (3, 6, 0, 5, 1, 4, 2):
        plain.open()
        row = plain.row(f"cat part{number}")
        assert f"Its task: Read part {number}." in row
        plain.check(f"cat part{number}", within=row)
        plain.press("Deny each" if number == 5 else "Allow each once")
    statuses = [row.status for row in stage.approvals(crew.session_id)]
    assert statuses == ["allowed"] * 5 + ["denied", "allowed"]


def test_a_grant_may_be_for_all_agents_and_says_so_before_and_after(stage: Stage, plain: Plain, crew: Crew) -> None:
    first, second = approval(crew, 0), approval(crew, 1)
    plain.open(f"/inbox/approvals/{first.id}")
    actions = plain.page.one("#actions")
    assert "calls of the agent Reader, version 1, in this session" in actions
    assert "calls of every agent in this session, with all sub-agents" in actions
    plain.check("Also for all other agents")
    plain.press("Allow for this session")
    assert stage.get(ToolCall, first.tool_call_id).status == "queued"
    with transaction(stage.workspace_id) as db:
        [grant] = db.find(Grant, "WHERE session_id = %(session)s", session=crew.session_id)
    assert grant.include_sub_agents
    plain.open(f"/inbox/approvals/{first.id}")
    assert "calls of every agent in this session, with all sub-agents" in plain.page.one("#outcome")
    plain.open("/inbox/grants")
    assert "calls of every agent, with all sub-agents" in plain.page.one("ul.rows")
    assert second.status == "pending"


def test_an_agent_that_its_coordinator_defined_is_said_to_be_so(plain: Plain, crew: Crew) -> None:
    crew.stage.message(crew.session_id)
    crew.lead_replies(send(INLINE, "Count the pumps."))
    crew.replies(call(), number=2)
    plain.open(f"/inbox/approvals/{approval(crew, 2).id}")
    assert "Lead › Counter, which its coordinator defined for this task" in plain.page.one("dl.facts")
    assert "Always allow" not in plain.page.one("main")


def test_the_session_shows_its_agents_as_a_tree_with_what_each_waits_for(plain: Plain, crew: Crew) -> None:
    plain.open(f"/inbox/sessions/{crew.session_id}")
    tree, conversation = plain.page.one("#threads"), plain.page.one("#conversation")
    assert tree.one("[aria-current=page]").text == "Lead"
    reader, _writer = tree.all("ul ul > li")
    assert "Reader waiting" in reader
    assert "Waits for a person: Run shell command: grep pump prices.csv" in reader
    assert "I wait for both." in conversation
    assert re.search("Lead › Reader: bash.*waiting for a decision", conversation.text)
    assert "I look for it." not in conversation
    plain.follow("Reader", within=reader)
    assert "Find the price of the pump." in plain.page.one("#conversation")
    assert "I look for it." in plain.page.one("#conversation")
    assert "I wait for both." not in plain.page.one("#conversation")


def test_one_agent_is_stopped_and_archived_alone(stage: Stage, plain: Plain, crew: Crew) -> None:
    plain.open(f"/inbox/sessions/{crew.session_id}/threads/{crew.thread(0).id}")
    plain.press("Stop this agent")
    assert plain.page.one("#status").text == "stopped"
    assert [thread.status for thread in crew.threads] == ["idle", "waiting"]
    plain.press("Archive for good")
    assert plain.page.one("#status").text == "archived"
    assert [thread.status for thread in crew.threads] == ["terminated", "waiting"]


def test_an_open_page_of_an_agent_shows_what_it_does(stage: Stage, admin: Visitor, crew: Crew) -> None:
    admin.open(f"/inbox/sessions/{crew.session_id}/threads/{crew.thread(0).id}")
    [tool_call] = crew.asked(0)
    stage.confirm(crew.session_id, tool_call.id)
    stage.run_call(tool_call, "pump;12")
    crew.replies(say("It costs 12."), number=0)
    expect(admin.page.locator("#conversation")).to_contain_text("It costs 12.")
    expect(admin.page.locator("#status")).to_have_text("done")


def test_a_call_that_comes_while_the_list_is_open_stands_last_and_names_its_session(admin: Visitor, crew: Crew) -> None:
    admin.open()
    crew.stage.message(crew.session_id)
    crew.lead_replies(call(command="ls"))
    expect(admin.rows).to_have_count(3)
    expect(admin.rows.nth(2)).to_contain_text("The offer for Ada")
    expect(admin.rows.nth(2).locator(".of-agent")).to_contain_text("Lead")
    expect(admin.page.get_by_role("heading", name="New")).to_be_visible()


def test_the_pages_are_for_everybody(visit: Callable[..., Visitor], crew: Crew) -> None:
    visitor = visit("admin", phone=True)
    session = f"/inbox/sessions/{crew.session_id}"
    for path in ("/inbox", f"/inbox/approvals/{approval(crew, 0).id}", session, f"{session}/threads/{crew.thread(0).id}"):
        visitor.open(path)
        check(visitor.page)
        check_width(visitor.page)
