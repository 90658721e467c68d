"""A delegation that somebody else gives counts once its giver accepts it. Nobody gives another's right to themselves."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from doors.served import Caller, bad, good
from doors.waiting import agent_with, approval_of, asked
from people import Somebody, acts_of, member
from rows.stage import Stage

DELEGATIONS = "/v1/delegations"
Client = Callable[[Somebody], httpx2.Client]


@pytest.fixture
def admin(stage: Stage) -> Somebody:
    return member(stage, "admin")


@pytest.fixture
def cara(stage: Stage) -> Somebody:
    return member(stage)


@pytest.fixture
def dora(stage: Stage) -> Somebody:
    return member(stage)


def terms(giver: Somebody, receiver: Somebody) -> dict[str, Any]:
    return {"from": f"user:{giver.person_id}", "to": f"user:{receiver.person_id}", "ends_at": "2999-01-01T00:00:00Z"}


def queue(client: httpx2.Client) -> list[str]:
    return [row["id"] for row in good(client.get("/v1/approvals"))["data"]]


def test_it_gives_no_right_before_its_giver_accepts(
    caller: Caller, stage: Stage, admin: Somebody, cara: Somebody, dora: Somebody, as_: Client
) -> None:
    approval = approval_of(caller, asked(caller, stage, agent=agent_with(caller, approvers=[f"user:{cara.person_id}"]))[0])
    delegation = good(as_(admin).post(DELEGATIONS, json=terms(cara, dora)))
    assert delegation["accepted_at"] is None
    assert queue(as_(dora)) == []
    decision = f"/v1/approvals/{approval['id']}/decision"
    bad(as_(dora).post(decision, json={"result": "allow"}), 404)
    accept = f"{DELEGATIONS}/{delegation['id']}/accept"
    for client in (as_(admin), as_(dora), caller):
        bad(client.post(accept, json={}), 403, f"Only user:{cara.person_id}", "can accept this delegation")
    accepted = good(as_(cara).post(accept, json={}))
    assert accepted["accepted_at"]
    assert good(as_(cara).post(accept, json={})) == accepted
    assert queue(as_(dora)) == [approval["id"]]
    assert good(as_(dora).post(decision, json={"result": "allow"}))["status"] == "allowed"
    assert acts_of(stage, "delegation.") == [
        (f"user:{admin.person_id}", "delegation.given"),
        (f"user:{cara.person_id}", "delegation.accepted"),
    ]


def test_the_page_of_the_account_names_the_group(stage: Stage, finance: str, dora: Somebody, as_: Client) -> None:
    cara = member(stage, groups=[finance])
    good(as_(cara).post(DELEGATIONS, json=terms(cara, dora) | {"from": None, "group": f"group:{finance}"}))
    page = as_(dora).get("/inbox/account").text
    assert "as a member of finance" in page
    assert finance not in page


def test_who_delegates_their_own_right_has_accepted(cara: Somebody, dora: Somebody, as_: Client) -> None:
    own = terms(cara, dora) | {"from": None}
    assert good(as_(cara).post(DELEGATIONS, json=own))["accepted_at"]


def test_nobody_becomes_a_delegate_by_their_own_act(api: str, admin: Somebody, cara: Somebody, as_: Client) -> None:
    bad(as_(admin).post(DELEGATIONS, json=terms(cara, admin)), 403, "to: nobody takes another's right by their own act")
    made = good(as_(admin).post("/v1/organizations/api_keys", json={"name": "mine", "scopes": ["admin", "read"]}))
    with Caller(api, made["key"]) as client:
        bad(client.post(DELEGATIONS, json=terms(cara, admin)), 403, "to: nobody takes another's right by their own act")


def test_a_refused_or_ended_delegation_is_not_accepted_any_more(
    caller: Caller, cara: Somebody, dora: Somebody, as_: Client
) -> None:
    delegation = good(caller.post(DELEGATIONS, json=terms(cara, dora)))
    good(as_(cara).delete(f"{DELEGATIONS}/{delegation['id']}"))
    bad(as_(cara).post(f"{DELEGATIONS}/{delegation['id']}/accept", json={}), 409, "has ended")


def test_the_giver_accepts_or_refuses_on_the_account_s_page(
    api: str, caller: Caller, cara: Somebody, dora: Somebody, as_: Client
) -> None:
    one, other = (good(caller.post(DELEGATIONS, json=terms(cara, dora))) for _ in range(2))
    assert as_(cara).get("/inbox/account").text.count('value="accept"') == 2
    assert as_(dora).get("/inbox/account").text.count('value="accept"') == 0
    for row, do in ((one, "accept"), (other, "end")):
        assert as_(cara).post(f"/inbox/account/delegations/{row['id']}", data={"do": do}).status_code == 303
    live = good(caller.get(DELEGATIONS, params={"live": "true"}))["data"]
    assert [(row["id"], bool(row["accepted_at"])) for row in live] == [(one["id"], True)]
    assert "decides for you" in as_(cara).get("/inbox/account").text
