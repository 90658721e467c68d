"""A person who signed in by somebody's link is told that their vote does not count beside the maker's, and how to be confirmed."""

from collections.abc import Callable

import httpx2
from doors.served import Caller, bad, good
from doors.waiting import agent_with, approval_of, asked
from people import Somebody, Visitor, acts_of, member
from rows.stage import Stage

from api.door.browser import TOKEN_HEADER, token_of

Client = Callable[[Somebody], httpx2.Client]


def test_the_person_is_told_and_counts_once_another_admin_confirms(api: str, stage: Stage, caller: Caller, as_: Client) -> None:
    anna, cara, ben = member(stage, "admin"), member(stage, "admin"), member(stage)
    approval = approval_of(caller, asked(caller, stage, agent=agent_with(caller, required_approvals=2))[0])
    decision = f"/v1/approvals/{approval['id']}/decision"
    allow = {"result": "allow"}
    good(as_(anna).post(decision, json=allow))
    link = httpx2.URL(good(as_(anna).post(f"/v1/organizations/users/{ben.person_id}/link", json={}))["url"]).path
    with Visitor(api) as browser:
        assert browser.submit(link).status_code == 303
        [cookie] = [value for name, value in browser.cookies.items() if "form" not in name]
        browser.headers[TOKEN_HEADER] = token_of(cookie)
        bad(browser.post(decision, json=allow), 403, "does not count beside the vote of", "/inbox/account")
        page = browser.get("/inbox/account").text
        assert "made a link by which somebody signed in here" in page
        assert f"assent database confirm {ben.email}" in page
        assert "All of these are mine" not in page
        assert browser.post("/inbox/account/confirm").status_code == 403
        confirm = f"/v1/organizations/users/{ben.person_id}/confirm"
        bad(as_(anna).post(confirm, json={}), 403, "You made a link of")
        bad(caller.post(confirm, json={}), 403, "An API key cannot confirm anybody")
        assert good(caller.get(f"/v1/organizations/users/{ben.person_id}"))["link_makers"] == [anna.person_id]
        assert "not confirmed" in as_(cara).get("/inbox/people").text
        assert as_(cara).post(f"/inbox/people/{ben.person_id}", data={"do": "confirm"}).status_code == 303
        assert good(caller.get(f"/v1/organizations/users/{ben.person_id}"))["link_makers"] == []
        assert good(browser.post(decision, json=allow))["status"] == "allowed"
    assert (f"user:{cara.person_id}", "person.confirmed") in acts_of(stage)
