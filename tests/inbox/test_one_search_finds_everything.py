"""One search finds approvals, sessions, agents, people, pages and actions: what the person may see, and nothing else."""

import re
from collections.abc import Callable
from html import unescape

import httpx2
import people
import pytest
from inbox.plain import Plain
from inbox.visitor import Visitor
from inbox.waiting import asked
from own_database import Clock
from playwright.sync_api import expect
from rows.stage import Stage, call
from rows.voting import vote

from api.desk.search import search
from models.database.transactions import transaction
from models.session.approval.row import Approval
from models.workspace.agent import Agent

_RESULT = re.compile(r'<li><a href="([^"]*)">.*?class="label(?: code)?">([^<]*)<')


def results(client: httpx2.Client, words: str) -> dict[str, str]:
    """The addresses of what the search finds, by their labels."""
    response = client.get("/inbox/search", params={"q": words})
    assert response.status_code == 200, response.text
    return {unescape(label): unescape(path) for path, label in _RESULT.findall(response.text)}


@pytest.fixture
def deploy(stage: Stage) -> Approval:
    """A deploy of the agent Captain, in a session of its name, that waits for its approver."""
    [approval] = asked(stage, call(command="deploy billing"), bash="always_ask")
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE session SET title = 'Release 4.2 of billing' WHERE id = %(id)s", id=approval.session_id)
        Agent.find(db, approval.agent_id).update(db, stage.principal, {"name": "Release captain"})
    return approval


def test_an_admin_finds_everything(api: str, stage: Stage, deploy: Approval) -> None:
    anna = people.member(stage, "admin", email="anna.billing@example.com")
    with anna.client(api) as client:
        assert results(client, "BILLING") == {
            "deploy billing": f"/inbox/approvals/{deploy.id}",
            "Release 4.2 of billing": f"/inbox/sessions/{deploy.session_id}",
            "anna.billing": f"/inbox/people#{anna.person_id}",
            "Acts with “BILLING”": "/inbox/audit?q=BILLING",
        }
        assert any(deploy.agent_id in path for path in results(client, "captain").values())
        assert results(client, "inv per")["Invite a person"] == "/inbox/people/new"
        assert results(client, "stop every")["Halt the workspace"] == "/inbox/halt"
        assert results(client, "api k")["API keys"] == "/inbox/keys"
        assert results(client, "")["Audit"] == "/inbox/audit", "without words it lists the pages"


def test_a_session_without_a_title_is_found_by_its_first_message(api: str, stage: Stage) -> None:
    session_id, empty = stage.session(), stage.session()
    stage.message(session_id, "**Renew** the certificates.\nAll of them.")
    stage.message(session_id, "And the keys.")
    with people.member(stage, "viewer").client(api) as client:
        assert results(client, "certificates") == {"Renew the certificates. All of them.": f"/inbox/sessions/{session_id}"}
        assert results(client, "the keys") == {}
        assert results(client, empty) == {"Session without a title": f"/inbox/sessions/{empty}"}


def test_a_decided_call_says_by_whom_and_on_which_day(api: str, stage: Stage, clock: Clock, deploy: Approval) -> None:
    ben = people.member(stage, "admin", email="ben@example.com")
    vote(stage, ben, deploy)
    day = stage.get(Approval, deploy.id).decided_at
    assert day
    clock.advance(7 * 86_400)
    with people.member(stage, "viewer").client(api) as client:
        page = client.get("/inbox/search?q=deploy").text
    assert f"ben, {day:%a}, {day.day} {day:%b} · Agent" in page


SIGNS = ["%", "s_ell", "\\", "'; --", '"', "\0", "\u202e\u05d4\u05d3", "x" * 5_000, "nothing like this"]


def test_signs_of_patterns_are_text(api: str, stage: Stage, deploy: Approval, subtests: pytest.Subtests) -> None:
    with people.member(stage, "viewer").client(api) as client:
        for words in SIGNS:
            with subtests.test(words[:20]):
                assert results(client, words) == (results(client, "") if words == "\0" else {})


def test_any_part_of_a_word_fits(api: str, stage: Stage, deploy: Approval, subtests: pytest.Subtests) -> None:
    with people.member(stage, "viewer").client(api) as client:
        for words in ("dep", "ploy", "y bill", "DEPLOY  BILLING", "release 4", "“"):
            with subtests.test(words):
                assert len(results(client, words)) == (0 if words == "“" else 1)


def test_an_id_leads_to_its_row_however_old(api: str, stage: Stage, deploy: Approval) -> None:
    with people.member(stage, "admin").client(api) as client:
        assert results(client, deploy.id)["deploy billing"] == f"/inbox/approvals/{deploy.id}"
        assert results(client, deploy.session_id)["Release 4.2 of billing"] == f"/inbox/sessions/{deploy.session_id}"


def test_words_are_searched_in_the_newest_rows_alone(stage: Stage, deploy: Approval, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SEARCHED", 1)
    admin = people.member(stage, "admin").principal
    asked(stage, call(command="ls"))
    with transaction(stage.workspace_id) as db:
        assert [match.label for match in search.approvals(db, admin, "shell", "%shell%")] == ["ls"]


def test_each_role_finds_what_it_may_open(api: str, stage: Stage, deploy: Approval) -> None:
    finance = people.group(stage, "finance")
    payer = people.member(stage, groups=[finance])
    [bill] = asked(stage, call(command="pay the bill"), approval={"approvers": [f"group:{finance}"]})
    row = {"pay the bill": f"/inbox/approvals/{bill.id}"}
    with people.member(stage, "viewer").client(api) as viewer, payer.client(api) as own, people.member(stage).client(api) as other:
        assert results(viewer, "pay the") == results(own, "pay the") == row
        assert results(other, "pay the") == results(other, bill.id) == results(other, bill.session_id) == {}
        assert results(viewer, payer.email) == {}, "people are for admins"
        assert results(viewer, "halt") == results(own, "audit") == {}, "these pages are for admins"


def test_a_slash_opens_the_search_anywhere_and_arrows_choose(admin: Visitor, stage: Stage, deploy: Approval) -> None:
    admin.open("/inbox/audit")
    admin.page.keyboard.press("/")
    admin.page.keyboard.type("release")
    expect(admin.page.locator("#finder-results").get_by_role("link", name="Release 4.2 of billing")).to_be_visible()
    admin.page.keyboard.press("Escape")
    expect(admin.page.locator("#finder")).not_to_be_visible()
    admin.page.keyboard.press("Control+k")
    expect(admin.page.locator("#finder-results a")).not_to_have_count(0)
    admin.page.keyboard.press("ArrowDown")
    admin.page.keyboard.press("Enter")
    expect(admin.page).to_have_url(re.compile(rf"/inbox/(sessions/{deploy.session_id}|approvals/{deploy.id}|agents/.*|\?.*)"))


def test_the_search_is_a_page_without_scripts(plain: Plain, deploy: Approval) -> None:
    plain.open()
    plain.follow("Search")
    plain.fill("Search", "deploy", within=plain.page.one("main"))
    plain.press("Search", within=plain.page.one("main"))
    plain.follow("deploy billing")
    assert "wants to run a shell command" in plain.page.one("h1")


def test_a_key_goes_to_a_page_and_decides_nothing(visit: Callable[..., Visitor], stage: Stage, deploy: Approval) -> None:
    admin = visit("admin")
    admin.open(f"/inbox/approvals/{deploy.id}")
    admin.press("g")
    admin.page.keyboard.press("a")
    expect(admin.page).to_have_url(re.compile("/inbox/agents$"))
    assert stage.get(Approval, deploy.id).status == "pending"
    admin.press("g")
    admin.page.keyboard.press("s")
    expect(admin.page).to_have_url(re.compile("/inbox/sessions$"))
