"""Whoever decides with others sees who has voted, who is missing and who may still vote; an admin marks the approvers by name."""

import html
import re
from collections.abc import Iterator

import httpx2
import people
import pytest
from inbox.waiting import asked
from people import Somebody
from rows.stage import Stage

from models.database.transactions import transaction
from models.session.approval.row import Approval
from models.workspace.row import Workspace


@pytest.fixture
def admin(api: str, stage: Stage) -> Iterator[httpx2.Client]:
    """An admin without scripts."""
    with people.member(stage, "admin", email="robin@example.com").client(api) as client:
        yield client


def faces(page: str, label: str = "") -> list[str]:
    """The texts of the faces in a list: the votes, or the list with this label."""
    start = page.index(f'<ul class="faces" aria-labelledby="{label}"' if label else '<ul class="faces"')
    items = re.findall("<li.*?</li>", page[start:].partition("</ul>")[0])
    texts = [re.sub('<span class="face".*?</span>|<svg.*?</svg>|<[^>]*>', " ", item) for item in items]
    return [" ".join(html.unescape(text).split()) for text in texts]


def allow(api: str, somebody: Somebody, approval: Approval) -> None:
    with somebody.client(api) as client:
        client.post(f"/v1/approvals/{approval.id}/decision", json={"result": "allow"}).raise_for_status()


def test_a_card_has_the_votes_the_missing_ones_and_who_may_still_vote(api: str, stage: Stage, admin: httpx2.Client) -> None:
    finance = people.group(stage)
    anna, ben, dora = (people.member(stage, email=f"{name}@example.com", groups=[finance]) for name in ("anna", "ben", "dora"))
    people.member(stage, email="of-nothing@example.com")
    [approval] = asked(stage, approval={"approvers": [f"group:{finance}"], "required_approvals": 2})
    page = admin.get(f"/inbox/approvals/{approval.id}").text
    assert faces(page) == ["2 of finance"]
    assert faces(page, "may-vote") == ["anna", "ben", "dora"]
    allow(api, anna, approval)
    page = admin.get(f"/inbox/approvals/{approval.id}").text
    assert faces(page) == ["anna allowed", "one more of finance"]
    assert faces(page, "may-vote") == ["ben", "dora"]
    allow(api, dora, approval)
    page = admin.get(f"/inbox/approvals/{approval.id}").text
    assert faces(page) == ["anna allowed", "dora allowed"]
    assert "may-vote" not in page
    assert finance not in page
    assert ben.person_id not in page


def test_four_eyes_and_several_sets_leave_only_those_who_may_vote(api: str, stage: Stage, admin: httpx2.Client) -> None:
    finance, legal = people.group(stage), people.group(stage, "legal")
    anna = people.member(stage, email="anna@example.com", groups=[finance, legal])
    both = people.member(stage, email="ben@example.com", groups=[finance, legal])
    people.member(stage, email="dora@example.com", groups=[finance])
    people.member(stage, "viewer", email="eve@example.com", groups=[finance, legal])
    demands = {"approvers": [f"group:{finance}"], "four_eyes": True}
    with transaction(stage.workspace_id) as db:
        db.get_one(Workspace, stage.workspace_id, lock=True).approval = {"approvers": [f"group:{legal}"]}
    [approval] = asked(stage, approval=demands, on_behalf_of=f"user:{anna.person_id}")
    page = admin.get(f"/inbox/approvals/{approval.id}").text
    assert faces(page) == ["one of legal and finance"]
    assert faces(page, "may-vote") == ["ben"]
    assert both.person_id not in page


def test_many_people_are_counted_beyond_the_first_dozen(api: str, stage: Stage, admin: httpx2.Client) -> None:
    crowd = people.group(stage, "crowd")
    for number in range(14):
        people.member(stage, email=f"p{number:02}@example.com", groups=[crowd])
    [approval] = asked(stage, approval={"approvers": [f"group:{crowd}"]})
    page = admin.get(f"/inbox/approvals/{approval.id}").text
    assert faces(page, "may-vote") == [*(f"p{number:02}" for number in range(12)), "and 2 more"]


def test_an_admin_marks_the_workspace_s_approvers_by_name(api: str, stage: Stage, admin: httpx2.Client) -> None:
    finance = people.group(stage)
    anna = people.member(stage, email="anna@example.com", groups=[finance])
    ben = people.member(stage, email="ben@example.com")
    with transaction(stage.workspace_id) as db:
        db.get_one(Workspace, stage.workspace_id, lock=True).approval = {"timeout_seconds": 600.0}
    page = admin.get("/inbox/approvers").text
    assert faces(page, "now") == ["anna", "ben", "robin"]
    marked = [f"group:{finance}", f"user:{ben.person_id}"]
    sent = admin.post("/inbox/approvers", data={"approvers": marked, "required_approvals": "2", "four_eyes": "yes"})
    assert sent.status_code == 303
    settings = admin.get("/v1/policy").json()["approval"]
    assert (settings["approvers"], settings["required_approvals"], settings["four_eyes"]) == (marked, 2, True)
    assert settings["timeout_seconds"] == 600
    page = admin.get("/inbox/approvers").text
    assert faces(page, "now") == ["anna", "ben"]
    assert re.findall('value="([^"]*)" checked', page) == [*marked, "yes"]
    assert anna.person_id in page
    admin.post("/inbox/approvers", data={"required_approvals": "1"})
    settings = admin.get("/v1/policy").json()["approval"]
    assert not {"approvers", "required_approvals", "four_eyes"} & settings.keys()
    assert settings["timeout_seconds"] == 600


def test_too_few_approvers_are_refused_on_the_page_which_keeps_what_was_marked(
    api: str, stage: Stage, admin: httpx2.Client
) -> None:
    ben = people.member(stage, email="ben@example.com")
    answer = admin.post("/inbox/approvers", data={"approvers": [f"user:{ben.person_id}"], "required_approvals": "3"})
    assert answer.status_code == 400
    assert "1 person is named at every level, and 3 must approve" in answer.text
    assert f'value="user:{ben.person_id}" checked' in answer.text
    assert admin.get("/v1/policy").json()["approval"] is None


def test_who_is_named_and_can_no_longer_decide_is_told(api: str, stage: Stage, admin: httpx2.Client) -> None:
    ben = people.member(stage, "viewer", email="ben@example.com")
    with transaction(stage.workspace_id) as db:
        db.get_one(Workspace, stage.workspace_id, lock=True).approval = {"approvers": [f"user:{ben.person_id}"]}
    assert "No longer able to decide here: ben." in admin.get("/inbox/approvers").text


def test_only_admins_set_approvers(api: str, stage: Stage) -> None:
    with people.member(stage, "approver").client(api) as client:
        assert client.get("/inbox/approvers").status_code == 403
        assert client.post("/inbox/approvers", data={"required_approvals": "2"}).status_code == 403
