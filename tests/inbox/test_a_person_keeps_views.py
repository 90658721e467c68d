"""A person saves lists of the inbox as views, keeps groups folded, and chooses all calls that are shown. Each is theirs alone."""

import re
from collections.abc import Callable

import people
import pytest
from inbox.accessibility import check
from inbox.plain import Plain
from inbox.visitor import Visitor
from inbox.waiting import asked, status
from playwright.sync_api import Locator, expect
from rows.stage import Stage, call

from models.database.transactions import transaction
from models.errors import Invalid, NotFound
from models.operate.personal_data import person as personal_data
from models.people import saved_view
from models.people.person import Person


@pytest.fixture
def calls(stage: Stage) -> None:
    """Three calls of two tools that wait; one of them has a command that no row shows whole."""
    asked(
        stage,
        call(command="git push"),
        call(command="echo long " * 90),
        call("read", file_path="a"),
        bash="always_ask",
        read="always_ask",
    )


@pytest.mark.usefixtures("calls")
def test_a_list_is_saved_renamed_and_deleted_without_scripts(plain: Plain, visit_without_scripts: Callable[..., Plain]) -> None:
    plain.open("/inbox?tool=bash&by=tool")
    plain.fill("Name of the view", "  Shell   calls ")
    plain.press("Save")
    assert len(plain.rows) == 2
    assert plain.page.one("a", name="Shell calls").get("aria-current") == "true"
    plain.open()
    plain.follow("Shell calls")
    assert len(plain.rows) == 2
    plain.follow("Rename or delete this view")
    plain.fill("Name of Shell calls", "Commands")
    plain.press("Rename")
    plain.follow("Open Commands")
    assert plain.page.one("a", name="Commands").get("aria-current") == "true"
    other = visit_without_scripts("approver")
    other.open()
    assert not other.page.all("a", name="Commands")
    plain.open("/inbox/views")
    plain.press("Delete")
    assert "No saved views yet." in plain.page.one("main")


def test_views_have_names_of_their_own_and_a_number(stage: Stage) -> None:
    anna = people.member(stage, "admin")
    with transaction(stage.workspace_id) as db:
        row = db.get_one(Person, anna.person_id, lock=True)
        for number in range(saved_view.MOST):
            saved_view.save(row, f"View {number}", "tool=bash")
        saved_view.save(row, "View 1", "tool=read")
        assert saved_view.SavedView("View 1", "tool=read") in saved_view.views_of(row)
        for name in ("One more", "", "x" * 41, "a\u202eb"):
            with pytest.raises(Invalid, match="name"):
                saved_view.save(row, name, "")
        with pytest.raises(Invalid, match="another view"):
            saved_view.rename(row, "View 1", "View 2")
        with pytest.raises(NotFound):
            saved_view.delete(row, "View x")
    people.member(stage, "admin")
    with transaction(stage.workspace_id) as db:
        personal_data.erase(db, anna.person_id, "Asked.", by=stage.principal)
    assert stage.get(Person, anna.person_id).saved_views is None


@pytest.mark.usefixtures("calls")
def test_a_group_stays_folded_for_its_person(admin: Visitor, visit: Callable[..., Visitor]) -> None:
    def folded_groups(visitor: Visitor) -> Locator:
        return visitor.page.locator("details[data-group]:not([open])")

    admin.open("/inbox?by=tool")
    summary = admin.page.locator("details[data-group=bash] > summary")
    expect(folded_groups(admin)).to_have_count(0)
    with admin.page.expect_response(re.compile("folded-groups")):
        summary.click()
    expect(folded_groups(admin)).to_have_count(1)
    admin.open("/inbox?by=tool")
    expect(folded_groups(admin)).to_have_count(1)
    without_scripts = visit(somebody=admin.somebody, java_script_enabled=False)
    without_scripts.open("/inbox?by=tool&choose=all")
    expect(folded_groups(without_scripts)).to_have_attribute("data-group", "bash")
    without_scripts.page.locator("details[data-group=bash] > summary").click()
    expect(folded_groups(without_scripts)).to_have_count(0)
    assert without_scripts.page.get_by_role("checkbox", checked=True).count() == 1, "what was folded is not chosen"
    with admin.page.expect_response(re.compile("folded-groups")):
        summary.click()
    other = visit("approver")
    for visitor in (other, admin):
        visitor.open("/inbox?by=tool")
        expect(folded_groups(visitor)).to_have_count(0)


@pytest.mark.usefixtures("calls")
def test_a_key_chooses_all_that_the_page_shows_whole(admin: Visitor, stage: Stage) -> None:
    admin.open()
    admin.press("X")
    expect(admin.page.locator("#chosen")).to_have_text("2 of 3")
    expect(admin.page.locator("input.partial:checked")).to_have_count(0)
    admin.press("X")
    expect(admin.page.get_by_role("checkbox", checked=True)).to_have_count(0)
    admin.page.get_by_role("link", name="Choose all shown").click()
    expect(admin.page.get_by_role("link", name="Choose none")).to_be_visible()
    check(admin.page)
    [late] = asked(stage, call(command="rm -rf /"))
    expect(admin.page.locator(f"#arrived #{late.id}")).to_be_attached()
    expect(admin.page.locator("#chosen")).to_have_text(re.compile("2 of"))
    admin.button("Deny each").click()
    expect(admin.page.locator("li.over")).to_have_count(2)
    assert status(stage, late) == "pending", "a call that came meanwhile is chosen by nobody"


@pytest.mark.usefixtures("calls")
def test_all_are_chosen_without_scripts_too_and_a_late_row_is_not(
    plain: Plain, visit: Callable[..., Visitor], stage: Stage
) -> None:
    plain.open()
    plain.follow("Choose all shown")
    assert len(plain.page.all("[type=checkbox][checked]")) == 2
    scripted = visit("admin")
    scripted.open("/inbox?choose=all")
    [late] = asked(stage, call(command="rm -rf /"))
    row = scripted.page.locator(f"#arrived #{late.id}")
    expect(row).to_be_attached()
    expect(row.get_by_role("checkbox")).not_to_be_checked()
    expect(scripted.page.get_by_role("checkbox", checked=True)).to_have_count(2)
    expect(scripted.page.locator("#chosen")).to_have_text(re.compile("2 of"))
    plain.press("Deny each")
    assert len([row for row in stage.approvals(late.session_id) if row.status == "pending"]) == 1
