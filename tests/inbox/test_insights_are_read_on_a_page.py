"""The page of insights: asks, people and cost over some days, with a table beside each chart, for whoever reads the workspace."""

from collections.abc import Callable
from decimal import Decimal

import httpx2
import pytest
from inbox.accessibility import check_at_desk_and_phone
from inbox.plain import Plain
from inbox.visitor import Visitor
from own_database import Clock
from people import Somebody, member
from rows.spending import PRICED, limit
from rows.stage import Stage, call, say
from rows.voting import vote

from models.database import clock as database_clock
from models.database.transactions import transaction
from models.notices.flood import Flood
from models.operate.metrics.adding_up import add_up
from models.workspace.agent import Agent

TABS = ("asks", "people", "cost")


@pytest.fixture
def ben(stage: Stage) -> Somebody:
    """An approver who decides."""
    return member(stage, email="ben@example.com")


@pytest.fixture
def history(stage: Stage, ben: Somebody, clock: Clock) -> None:
    """Ben allows two pushes and denies one call; a push waits. Two requests to models had a cost."""
    stage.quote = PRICED
    session = stage.session(bash="always_ask")
    stage.message(session)
    commands = ("git push origin a", "git push origin b", "rm -rf x", "git push origin c")
    stage.reply(session, *(call(command=command) for command in commands), charge=PRICED)
    rows = stage.approvals(session)
    for row, result in zip(rows[:3], ("allow", "allow", "deny"), strict=True):
        vote(stage, ben, row, result)
    other = stage.session()
    stage.message(other)
    stage.reply(other, say("Done."), charge=PRICED)
    clock.advance(61)
    add_up(60)


def test_it_says_what_is_asked_and_leads_to_a_rule(plain: Plain, history: None) -> None:
    plain.open("/inbox/insights")
    assert plain.page.texts(".tile")[:3] == ["Asks 4", "Waiting now 1", "Allowed 67 % of what people decided"]
    assert plain.page.cells("Asks by tool", "bash")[:4] == ["bash", "4", "1", "67 %"]
    push = plain.page.cells("Calls that are asked about most", "git push")
    assert (push[0].split(), push[1:4]) == (["git", "push", "bash"], ["3", "2", ""])
    plain.follow("Make a rule for git push")
    assert plain.page.field("Calls").value == "bash(git push *)"
    assert plain.page.field("Effect").value == "ask", "what publishes something is not suggested to be allowed"
    plain.fill("Effect", "deny")
    plain.press("What if?", within=plain.page.one("section[aria-labelledby=what-if]"))
    assert "It would have denied 2 calls that people allowed." in plain.page.one("#simulation")


def test_each_chart_is_drawn_by_the_server_and_has_a_table(plain: Plain, history: None) -> None:
    plain.open("/inbox/insights")
    chart = plain.page.one("[role=img]", name="Asks by day and what became of them; the table below says the same")
    assert [title.partition(": ")[2] for title in chart.texts("rect title")] == ["2 allowed", "1 denied", "1 waiting"]
    assert plain.page.cells("Asks by day", "20")[1:] == ["4", "1", "2", "1", "0", "0", "0"]


def test_it_says_how_people_decide_and_who_has_too_much(plain: Plain, history: None, stage: Stage, ben: Somebody) -> None:
    with transaction(stage.workspace_id) as db:
        Flood.begin(db, ben.person_id, database_clock.now(db))
    plain.open("/inbox/insights?show=people")
    assert plain.page.cells("How people decide", "ben")[1:6] == ["1", "3", "67 %", "2", "0"]
    assert plain.page.cells("Ways by which approvals are closed", "Inbox")[1:3] == ["3", "67 %"]
    assert "ben has 50 or more approvals waiting" in plain.page.one("main")


def test_it_says_what_it_costs_beside_the_limit(plain: Plain, history: None, stage: Stage) -> None:
    limit(stage, "30", period="daily")
    plain.open("/inbox/insights?show=cost")
    cost = f"${2 * Decimal(PRICED.cost or 0):.2f}"
    assert plain.page.texts(".tile")[0] == f"Cost {cost} at list prices"
    assert "limit of $30.00 a day" in plain.page.one(".legend")
    assert plain.page.cells("Cost by model", PRICED.model)[1] == cost


def test_each_limit_is_a_line_of_the_chart(plain: Plain, history: None, stage: Stage) -> None:
    for period, amount in (("monthly", "365"), ("daily", "30"), ("weekly", "140")):
        limit(stage, amount, period=period)
    plain.open("/inbox/insights?show=cost")
    chart = plain.page.one("[role=img]", name="Cost by day; the table below says the same")
    words = [
        "limit of $30.00 a day",
        "limit of $140.00 a week, $20.00 for each day",
        "limit of $365.00 a month, $12.00 for each day",
    ]
    assert chart.texts("path.limit title") == words
    assert plain.page.texts(".legend li") == words
    assert [line.get("d") for line in chart.all("path.limit")] == ["M0 0.00H1000", "M0 33.33H1000", "M0 60.00H1000"]


@pytest.mark.parametrize("tab", TABS)
def test_it_can_be_about_one_agent(plain: Plain, history: None, stage: Stage, tab: str) -> None:
    session = stage.session(bash="always_ask")
    agent = stage.read(session).agent_id
    with transaction(stage.workspace_id) as db:
        Agent.find(db, agent).update(db, stage.principal, {"name": "Archivist"})
    stage.message(session)
    stage.reply(session, call(command="ls"))
    plain.open(f"/inbox/insights?show={tab}&days=7")
    plain.fill("Agent", "Archivist")
    plain.press("Show", within=plain.page.one(".of-agent"))
    assert plain.page.one("h1").text == "Insights of Archivist"
    assert plain.page.one("a", name="7 days").get("aria-current") == "true"
    assert {"asks": "Asks 1", "people": "Decisions of people 0", "cost": "Requests 1"}[tab] in plain.page.texts(".tile")
    for link in plain.page.all("a.csv"):
        assert f"agent_id={agent}" in link.get("href")


def test_the_days_are_chosen_and_kept(plain: Plain, history: None) -> None:
    plain.open("/inbox/insights?show=people&days=7")
    plain.follow("Cost")
    assert plain.page.one("a", name="7 days").get("aria-current") == "true"
    plain.open("/inbox/insights?first=2020-01-01&last=2020-01-31")
    assert "Nobody was asked in these days." in plain.page.one("main")
    for days in ("first=2020-01-01", "first=soon", "first=2026-02-02&last=2026-02-01", "last=9999-12-31&first=9999-12-30"):
        plain.open(f"/inbox/insights?{days}")
        assert plain.page.one("[role=alert]").text


@pytest.mark.parametrize(("tab", "name"), [("asks", "asks by day"), ("people", "people"), ("cost", "cost by model")])
def test_a_table_is_a_file_for_a_spreadsheet(
    visit_without_scripts: Callable[..., Plain], history: None, tab: str, name: str
) -> None:
    viewer = visit_without_scripts("viewer")
    viewer.open(f"/inbox/insights?show={tab}")
    response = viewer.client.get(viewer.page.one("a", name=f"CSV of {name}").get("href"))
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/csv")
    assert len(response.text.splitlines()) > 1


@pytest.mark.parametrize("role", ["viewer", "developer", "admin"])
def test_whoever_reads_everything_may_see_it(visit_without_scripts: Callable[..., Plain], history: None, role: str) -> None:
    reader = visit_without_scripts(role)
    reader.open("/inbox/insights")
    assert "Asks by day" in reader.page.texts("h2")


def test_who_decides_only_their_own_may_not(api: str, ben: Somebody) -> None:
    with ben.client(api) as client:
        response: httpx2.Response = client.get("/inbox/insights")
    assert response.status_code == 403


def test_everybody_can_use_it(admin: Visitor, history: None) -> None:
    for tab in TABS:
        admin.open(f"/inbox/insights?show={tab}")
        for summary in admin.page.locator("details.as-table > summary").all():
            summary.click()
        check_at_desk_and_phone(admin.page)
