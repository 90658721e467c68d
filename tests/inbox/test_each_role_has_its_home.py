"""A person begins where their role has work, and the rail has the pages that the role may open."""

from collections.abc import Callable

import httpx2
import people
import pytest
from inbox.plain import Plain
from inbox.visitor import Visitor
from inbox.waiting import asked
from playwright.sync_api import expect
from rows.stage import Stage

from models.people.roles import Role


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


def test_the_rail_leads_to_what_a_role_may_open_and_nowhere_else(visit_without_scripts: Callable[..., Plain], stage: Stage) -> None:
    asked(stage)
    for role in ("admin", "developer", "approver", "viewer"):
        person = visit_without_scripts(role)
        person.open("/inbox/home")
        links = {link.get("href") for link in person.page.all(".rail a")}
        person.open("/inbox/settings")
        links |= {link.get("href") for link in person.page.all(".settings-index a")}
        assert len(links) > 10
        assert {person.client.get(link, follow_redirects=True).status_code for link in links} == {200}, role
    assert not person.page.all("a", name="Halt")
    assert not person.page.all("a", name="Audit")


def test_the_settings_stand_in_parts_each_below_a_heading(visit_without_scripts: Callable[..., Plain]) -> None:
    for role, headings in (("admin", ["You", "Who decides", "Agents and programs"]), ("viewer", ["You", "Agents and programs"])):
        person = visit_without_scripts(role)
        person.open("/inbox/settings")
        assert person.page.texts("main h2") == headings
        person.open("/inbox/keyboard")
        assert person.page.texts(".settings-list p") == headings


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
