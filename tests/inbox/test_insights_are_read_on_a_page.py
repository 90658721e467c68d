"""The page of insights: asks, people and cost over some days, with a table beside each chart, for whoever reads the workspace."""

from collections.abc import Callable
from decimal import Decimal

import httpx2
import pytest
from inbox.accessibility import check_at_desk_and_phone
from inbox.visitor import Visitor
from own_database import Clock
from people import Somebody, member
from playwright.sync_api import expect
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


def cells(visitor: Visitor, table: str, row: str) -> list[str]:
    """Return the cells of a table's row, by its first words."""
    line = visitor.page.get_by_role("region", name=table, exact=True).locator("tbody tr").filter(has_text=row)
    return [text.strip() for text in line.locator("th, td").all_inner_texts()]


def test_it_says_what_is_asked_and_leads_to_a_rule(admin: Visitor, history: None) -> None:
    admin.open("/inbox/insights")
    assert admin.page.locator(".tile").all_inner_texts()[:3] == [
        "Asks\n4",
        "Waiting now\n1",
        "Allowed\n67 %\nof what people decided",
    ]
    assert cells(admin, "Asks by tool", "bash")[:4] == ["bash", "4", "1", "67 %"]
    push = cells(admin, "Calls that are asked about most", "git push")
    assert (push[0].split(), push[1:4]) == (["git", "push", "bash"], ["3", "2", ""])
    admin.page.get_by_role("link", name="Make a rule for git push").click()
    expect(admin.page.get_by_label("Calls", exact=True)).to_have_value("bash(git push *)")
    expect(admin.page.get_by_label("Effect")).to_have_value("ask")  # what publishes something is not suggested to be allowed
    admin.page.get_by_label("Effect").select_option("deny")
    admin.button("What if?").last.click()
    expect(admin.page.locator("#simulation")).to_contain_text("It would have denied 2 calls that people allowed.")


def test_each_chart_is_drawn_by_the_server_and_has_a_table(plain: Visitor, history: None) -> None:
    plain.open("/inbox/insights")
    chart = plain.page.get_by_role("img", name="Asks by day and what became of them; the table below says the same")
    titles = chart.locator("rect title").all_text_contents()
    assert [title.partition(": ")[2] for title in titles] == ["2 allowed", "1 denied", "1 waiting"]
    plain.page.get_by_text("As a table", exact=True).click()
    assert cells(plain, "Asks by day", "20")[1:] == ["4", "1", "2", "1", "0", "0", "0"]


def test_it_says_how_people_decide_and_who_has_too_much(admin: Visitor, history: None, stage: Stage, ben: Somebody) -> None:
    with transaction(stage.workspace_id) as db:
        Flood.begin(db, ben.person_id, database_clock.now(db))
    admin.open("/inbox/insights?show=people")
    assert cells(admin, "How people decide", "ben")[1:6] == ["1", "3", "67 %", "2", "0"]
    assert cells(admin, "Ways by which approvals are closed", "Inbox")[1:3] == ["3", "67 %"]
    admin.page.get_by_text("ben has 50 or more approvals waiting").wait_for()


def test_it_says_what_it_costs_beside_the_limit(admin: Visitor, history: None, stage: Stage) -> None:
    limit(stage, "30", period="daily")
    admin.open("/inbox/insights?show=cost")
    cost = f"${2 * Decimal(PRICED.cost or 0):.2f}"
    assert admin.page.locator(".tile").first.inner_text().split() == ["Cost", cost, "at", "list", "prices"]
    admin.page.locator(".legend").get_by_text("limit of $30.00 a day").wait_for()
    assert cells(admin, "Cost by model", PRICED.model)[1] == cost


def test_each_limit_is_a_line_of_the_chart(plain: Visitor, history: None, stage: Stage) -> None:
    for period, amount in (("monthly", "365"), ("daily", "30"), ("weekly", "140")):
        limit(stage, amount, period=period)
    plain.open("/inbox/insights?show=cost")
    chart = plain.page.get_by_role("img", name="Cost by day; the table below says the same")
    words = [
        "limit of $30.00 a day",
        "limit of $140.00 a week, $20.00 for each day",
        "limit of $365.00 a month, $12.00 for each day",
    ]
    assert chart.locator("path.limit title").all_text_contents() == words
    assert plain.page.locator(".legend li").all_inner_texts() == words
    heights = [str(line.get_attribute("d")) for line in chart.locator("path.limit").all()]
    assert heights == ["M0 0.00H1000", "M0 33.33H1000", "M0 60.00H1000"]


@pytest.mark.parametrize("tab", TABS)
def test_it_can_be_about_one_agent(plain: Visitor, history: None, stage: Stage, tab: str) -> None:
    session = stage.session(bash="always_ask")
    agent = stage.read(session).agent_id
    with transaction(stage.workspace_id) as db:
        Agent.find(db, agent).update(db, stage.principal, {"name": "Archivist"})
    stage.message(session)
    stage.reply(session, call(command="ls"))
    plain.open(f"/inbox/insights?show={tab}&days=7")
    plain.page.get_by_label("Agent", exact=True).select_option(label="Archivist")
    plain.page.locator(".of-agent").get_by_role("button", name="Show").click()
    expect(plain.page.get_by_role("heading", level=1)).to_have_text("Insights of Archivist")
    assert plain.page.get_by_role("link", name="7 days").get_attribute("aria-current") == "true"
    shown = {"asks": "Asks\n1", "people": "Decisions of people\n0", "cost": "Requests\n1"}[tab]
    assert shown in plain.page.locator(".tile").all_inner_texts()
    for link in plain.page.locator("a.csv").all():
        assert f"agent_id={agent}" in str(link.get_attribute("href"))


def test_the_days_are_chosen_and_kept(admin: Visitor, history: None) -> None:
    admin.open("/inbox/insights?show=people&days=7")
    admin.page.get_by_role("link", name="Cost", exact=True).click()
    assert admin.page.get_by_role("link", name="7 days").get_attribute("aria-current") == "true"
    admin.open("/inbox/insights?first=2020-01-01&last=2020-01-31")
    admin.page.get_by_text("Nobody was asked in these days.").wait_for()
    for days in ("first=2020-01-01", "first=soon", "first=2026-02-02&last=2026-02-01", "last=9999-12-31&first=9999-12-30"):
        admin.open(f"/inbox/insights?{days}")
        admin.page.get_by_role("alert").wait_for()


@pytest.mark.parametrize(("tab", "name"), [("asks", "asks by day"), ("people", "people"), ("cost", "cost by model")])
def test_a_table_is_a_file_for_a_spreadsheet(
    api: str, history: None, stage: Stage, visit: Callable[..., Visitor], tab: str, name: str
) -> None:
    visitor = visit("viewer")
    visitor.open(f"/inbox/insights?show={tab}")
    address = visitor.page.get_by_role("link", name=f"CSV of {name}").get_attribute("href")
    with visitor.somebody.client(api) as client:
        response = client.get(str(address))
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/csv")
    assert len(response.text.splitlines()) > 1


@pytest.mark.parametrize("role", ["viewer", "developer", "admin"])
def test_whoever_reads_everything_may_see_it(visit: Callable[..., Visitor], history: None, role: str) -> None:
    visitor = visit(role)
    visitor.open("/inbox/insights")
    visitor.page.get_by_role("heading", name="Asks by day").wait_for()


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
