"""One-time links: the first way to sign in, and the way back for a person who lost every other."""

import re
import threading

import httpx2
import pytest
from doors.served import Caller, bad, good, key
from inbox.waiting import asked
from own_database import Clock
from people import Visitor, acts_of, group, invited, member
from rows.stage import Stage, call

from models.database.transactions import transaction
from models.people.member import Member
from models.people.passkey import Credential, Passkey
from models.people.person import Person
from models.settings import settings


def test_a_link_signs_its_person_in_with_the_role_and_groups_of_the_invitation(api: str, stage: Stage) -> None:
    finance = group(stage)
    link = invited(stage, "developer", group_ids=[finance])
    with Visitor(api) as anna:
        entered = anna.submit(link, name=" Anna  Lang ")
        assert (entered.status_code, entered.headers["location"]) == (303, "/inbox")
        page = anna.get("/inbox/account").text
        assert "Anna Lang" in page
        assert "anna@example.com, developer in Stage" in page
    [added] = [principal for principal, action in acts_of(stage) if action == "person.added"]
    assert added.startswith("user:user_")
    assert [action for _, action in acts_of(stage)] == ["person.invited", "person.added", "person.link_used", "person.signed_in"]
    assert acts_of(stage, "group.member") == [(added, "group.member_added")]


def test_a_link_leads_to_the_one_approval_that_waits_and_else_to_the_inbox(api: str, stage: Stage) -> None:
    first, second = asked(stage, call(command="echo 1")), asked(stage, call(command="echo 2"))
    stage.decide(second[0], result="deny")
    with Visitor(api) as anna, Visitor(api) as ben:
        assert anna.submit(invited(stage), name="Anna").headers["location"] == f"/inbox/approvals/{first[0].id}"
        assert "echo 1" in anna.get(f"/inbox/approvals/{first[0].id}").text
        asked(stage, call(command="echo 3"))
        assert ben.submit(invited(stage, email="ben@example.com"), name="Ben").headers["location"] == "/inbox"


@pytest.mark.parametrize("blank", ["", " \t "])
def test_a_blank_name_is_told_in_the_page_and_leaves_the_link_unused(api: str, stage: Stage, blank: str) -> None:
    link = invited(stage)
    with Visitor(api) as anna:
        refused = anna.submit(link, name=blank)
        assert (refused.status_code, anna.signed_in()) == (400, False)
        assert "Type your name" in refused.text
        assert re.search(r'id="name"[^>]* autofocus[^>]* aria-invalid="true" aria-describedby="fault-name"', refused.text)
        assert anna.submit(link, name="Anna").status_code == 303


def test_whom_a_link_alone_let_in_is_told_to_add_a_way_back_while_that_is_possible(api: str, stage: Stage, clock: Clock) -> None:
    notice = 'id="way-back"'
    with Visitor(api) as anna, Visitor(api) as ben:
        for browser, name in ((anna, "anna"), (ben, "ben")):
            browser.submit(invited(stage, email=f"{name}@example.com"), name=name)
            assert notice in browser.get("/inbox").text
            assert notice in browser.get("/inbox/account").text
        with transaction(stage.workspace_id) as db:
            by = Member.find(db, Person.of_email(db, "anna@example.com")).principal(db)
            Passkey.add(db, by.person_id, Credential(id=b"new", public_key=b"key", sign_count=0), name="Phone", by=by)
        assert notice not in anna.get("/inbox").text
        assert notice not in anna.get("/inbox/account").text
        clock.advance(15 * 60)
        assert notice not in ben.get("/inbox").text


def test_opening_a_link_does_not_use_it_and_signing_in_uses_it_up(api: str, stage: Stage) -> None:
    link = invited(stage)
    with Visitor(api) as preview, Visitor(api) as anna, Visitor(api) as mallory:
        assert preview.get(link).status_code == 200
        assert preview.head(link).status_code == 200
        assert anna.submit(link, name="Anna").status_code == 303
        again = mallory.get(link)
        assert again.status_code == 409
        assert "used before" in again.text
        assert not mallory.signed_in()


def test_deactivating_a_person_withdraws_their_invitation(api: str, stage: Stage, caller: Caller) -> None:
    """Such a link remains where a person was invited and then signed in at an issuer."""
    link = invited(stage, "admin")
    ben = member(stage, email="anna@example.com")
    good(caller.delete(f"/v1/organizations/users/{ben.person_id}"))
    with Visitor(api) as browser:
        assert browser.get(link).status_code == 409
    assert "person.invitation_withdrawn" in [action for _, action in acts_of(stage)]


def test_of_several_uses_of_a_link_at_once_one_signs_in(api: str, stage: Stage) -> None:
    link = invited(stage)
    statuses: list[int] = []

    def use() -> None:
        with Visitor(api) as somebody:
            try:
                statuses.append(somebody.submit(link, name="Anna").status_code)
            except AssertionError:
                statuses.append(409)  # the page says already that the link is used

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [303, 409, 409, 409]


@pytest.mark.parametrize("link", ["/sign-in/link/x", "/sign-in/link/" + "a" * 43])
def test_an_unknown_link_gets_the_response_of_a_used_one(api: str, stage: Stage, link: str) -> None:
    used = invited(stage)
    with Visitor(api) as anna:
        anna.submit(used, name="Anna")
        assert anna.get(link).text == anna.get(used).text


def test_a_link_expires_and_can_be_withdrawn(api: str, stage: Stage, caller: Caller, clock: Clock) -> None:
    link = invited(stage)
    [invite] = good(caller.get("/v1/organizations/invites"))["data"]
    with Visitor(api) as anna:
        good(caller.delete(f"/v1/organizations/invites/{invite['id']}"))
        assert anna.get(link).status_code == 409
        link = invited(stage)
        clock.advance(settings().invitation_seconds + 1)
        assert anna.get(link).status_code == 409
    [invite] = good(caller.get("/v1/organizations/invites", params={"statuses[]": "expired"}))["data"]
    assert invite["status"] == "expired"


def test_a_lost_passkey_is_replaced_by_a_new_link_that_ends_all_earlier_ways_in(api: str, stage: Stage, caller: Caller) -> None:
    anna = member(stage, "viewer", email="anna@example.com")
    with transaction(stage.workspace_id) as db:
        by = anna.principal
        Passkey.add(db, by.person_id, Credential(id=b"lost", public_key=b"key", sign_count=0), name="Phone", by=by)
    link = httpx2.URL(good(caller.post(f"/v1/organizations/users/{anna.person_id}/link"))["url"]).path
    assert good(caller.get("/v1/organizations/invites"))["data"] == [], "the link is not an invitation"
    with anna.client(api) as before, Visitor(api) as browser:
        assert before.get("/v1/sessions").status_code == 200, "an unused link ends nothing"
        assert browser.submit(link).status_code == 303
        assert "viewer in Stage" in browser.get("/inbox/account").text
        assert before.get("/v1/sessions").status_code == 401
    with transaction(stage.workspace_id) as db:
        assert Passkey.of_member(db, anna.person_id) == []


def test_a_deactivated_member_s_link_signs_nobody_in(api: str, stage: Stage, caller: Caller) -> None:
    anna = member(stage, email="anna@example.com")
    link = httpx2.URL(good(caller.post(f"/v1/organizations/users/{anna.person_id}/link"))["url"]).path
    with Visitor(api) as browser:
        token = browser.get(link).text.partition('name="csrf_token" value="')[2][:64]
        good(caller.delete(f"/v1/organizations/users/{anna.person_id}"))
        assert browser.post(link, data={"csrf_token": token}).status_code == 409
        assert not browser.signed_in()


def test_nobody_invites_somebody_to_a_role_above_their_own_scopes(api: str, stage: Stage) -> None:
    with Caller(api, key(stage, "admin", "read")) as client:
        good(client.post("/v1/organizations/invites", json={"email": "a@example.com", "workspace_role": "viewer"}))
        for role in ("approver", "developer", "admin"):
            body = {"email": "b@example.com", "workspace_role": role}
            bad(client.post("/v1/organizations/invites", json=body), 403, "scope")


def test_the_link_of_an_invitation_is_shown_once(stage: Stage, caller: Caller) -> None:
    body, headers = {"email": "a@example.com"}, {"idempotency-key": "once"}
    first, again = (good(caller.post("/v1/organizations/invites", json=body, headers=headers)) for _ in range(2))
    assert first["url"].startswith("http://localhost:")
    assert again == first | {"url": None}
