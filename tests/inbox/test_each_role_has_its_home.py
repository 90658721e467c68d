"""A person begins where their role has work, and the rail has the pages that the role may open."""

from collections.abc import Callable

import httpx2
import people
import pytest
from inbox.visitor import Visitor
from inbox.waiting import asked
from playwright.sync_api import expect
from rows.stage import Stage

from models.people.roles import Role

HREFS = "(links) => links.map(({ href }) => href)"


@pytest.mark.parametrize(
    ("role", "waits", "place"),
    [
        ("approver", False, "/inbox"),
        ("approver", True, "/inbox"),
        ("developer", True, "/inbox/sessions"),
        ("viewer", True, "/inbox/insights"),
        ("admin", True, "/inbox"),
        ("admin", False, "/inbox/insights"),
    ],
)
def test_the_first_page_is_that_of_the_role(api: str, stage: Stage, role: Role, waits: bool, place: str) -> None:
    if waits:
        asked(stage)
    with people.member(stage, role).client(api) as client:
        assert client.get("/inbox/home").headers["location"] == place


def test_the_rail_leads_to_what_a_role_may_open_and_nowhere_else(visit: Callable[..., Visitor], stage: Stage) -> None:
    asked(stage)
    for role in ("admin", "developer", "approver", "viewer"):
        visitor = visit(role)
        visitor.open("/inbox/home")
        links = visitor.page.locator(".rail a").evaluate_all(HREFS)
        visitor.open("/inbox/settings")
        links += visitor.page.locator(".settings-index a").evaluate_all(HREFS)
        assert len(links) > 10
        with visitor.somebody.client(visitor.url, follow_redirects=True) as client:
            assert {client.get(link).status_code for link in links} == {200}, role
    expect(visitor.page.get_by_role("link", name="Halt")).to_have_count(0)
    expect(visitor.page.get_by_role("link", name="Audit")).to_have_count(0)


def test_the_settings_stand_in_parts_each_below_a_heading(visit: Callable[..., Visitor]) -> None:
    admin, viewer = visit("admin"), visit("viewer")
    for visitor, headings in ((admin, ["You", "Who decides", "Agents and programs"]), (viewer, ["You", "Agents and programs"])):
        visitor.open("/inbox/settings")
        assert visitor.page.get_by_role("main").get_by_role("heading", level=2).all_inner_texts() == headings
        visitor.open("/inbox/keyboard")
        assert visitor.page.locator(".settings-list p").all_inner_texts() == headings


@pytest.mark.parametrize("path", ["/inbox/nothing", "/inbox/agents/agent_00000000000000000000000000", "/inbox/keys"])
def test_a_refused_page_keeps_the_rail_and_names_no_id(api: str, stage: Stage, path: str) -> None:
    with people.member(stage, "viewer").client(api) as client:
        response = client.get(path)
        assert response.status_code in (403, 404)
        assert 'aria-label="Pages"' in response.text
        assert "agent_0" not in response.text
        assert "scope" not in response.text
        if response.status_code == 403:
            assert "Your role, viewer, does not allow this. It needs the role admin. Ask an admin." in response.text
    assert 'aria-label="Pages"' not in httpx2.get(f"{api}/inbox/nothing").text


def test_the_rail_stays_collapsed(admin: Visitor) -> None:
    admin.open()
    wide = admin.page.locator(".rail").bounding_box()
    admin.page.keyboard.press("[")
    admin.open("/inbox/sessions")
    narrow = admin.page.locator(".rail").bounding_box()
    assert wide
    assert narrow
    assert (wide["width"], narrow["width"]) == (208, 56)
    expect(admin.page.get_by_role("link", name="Sessions", exact=True)).to_be_visible()


def test_a_phone_has_all_pages_in_its_bar_without_scripts(visit: Callable[..., Visitor]) -> None:
    phone = visit("admin", phone=True, java_script_enabled=False)
    phone.open()
    phone.page.get_by_role("button", name="More").click()
    phone.page.get_by_role("link", name="Audit").click()
    expect(phone.page.get_by_role("heading", level=1)).to_have_text("Audit")
