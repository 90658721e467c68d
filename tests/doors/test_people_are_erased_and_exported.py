"""An admin erases people and sessions and exports a person's data; a person exports their own. Everybody else is refused."""

import json
from collections.abc import Callable

import httpx2
from doors.served import Caller, bad, good
from doors.waiting import approval_of, asked
from own_database import Clock
from people import Somebody, Visitor, acts_of, group, member
from rows.archived import MONTH, archive
from rows.stage import Stage, say

USERS = "/v1/organizations/users"
WHY = {"reason": "They asked for it."}
Client = Callable[[Somebody], httpx2.Client]


def test_an_admin_erases_a_person_who_then_is_an_id_everywhere(caller: Caller, stage: Stage, as_: Client) -> None:
    admin, anna = member(stage, "admin"), member(stage, "approver", email="anna.quince@example.com", groups=[group(stage)])
    approval = approval_of(caller, asked(caller, stage)[0])
    good(as_(anna).post(f"/v1/approvals/{approval['id']}/decision", json={"result": "allow"}))
    erased = good(as_(admin).post(f"{USERS}/{anna.person_id}/erase", json=WHY))
    assert (erased["id"], erased["type"]) == (anna.person_id, "user_erased")
    assert good(caller.post(f"{USERS}/{anna.person_id}/erase", json=WHY)) == erased, "idempotent"
    bad(as_(anna).get("/v1/approvals"), 401)
    bad(caller.get(f"{USERS}/{anna.person_id}"), 404)
    for query in ({}, {"include_deactivated": "true"}, {"email": anna.email}):
        rows = good(caller.get(USERS, params=query))["data"]
        assert anna.person_id not in {row["id"] for row in rows}
    decided = good(caller.get(f"/v1/approvals/{approval['id']}"))
    assert decided["decided_by"] == f"user:{anna.person_id}"
    page = as_(admin).get(f"/inbox/approvals/{approval['id']}").text
    assert "anna.quince" not in page
    assert "a person who was erased" in page
    [act] = good(caller.get("/v1/audit", params={"action": "person.erased"}))["data"]
    assert (act["principal"], act["subject_id"]) == (f"user:{admin.person_id}", anna.person_id)
    assert act["address"] == act["texts"]["client_address"] == "127.0.0.1"
    assert act["texts"]["reason"] == WHY["reason"]


def test_the_page_of_people_erases_with_a_reason_and_a_ticked_box(api: str, caller: Caller, stage: Stage) -> None:
    admin, anna = member(stage, "admin"), member(stage, email="anna@example.com")
    page = f"/inbox/people/{anna.person_id}/erase"
    with Visitor(api, cookies=admin.cookie(api)) as browser, Visitor(api, cookies=anna.cookie(api)) as other:
        people = browser.get("/inbox/people").text
        assert page in people
        assert f"/inbox/people/{admin.person_id}/erase" not in people, "nobody can erase themselves"
        assert other.get(page).status_code == 403
        for lacking in ({"reason": " ", "sure": "yes"}, {"reason": "Asked for it."}):
            assert browser.submit(page, **lacking).status_code == 400
        good(caller.get(f"{USERS}/{anna.person_id}"))
        assert browser.submit(page, reason="Asked for it.", sure="yes").headers["location"] == "/inbox/people"
        assert browser.get(page).status_code == 404
    bad(caller.get(f"{USERS}/{anna.person_id}"), 404)
    [act] = good(caller.get("/v1/audit", params={"action": "person.erased"}))["data"]
    assert (act["principal"], act["texts"]["reason"]) == (f"user:{admin.person_id}", "Asked for it.")


def test_the_account_page_exports_the_person_s_own_data(api: str, stage: Stage) -> None:
    anna = member(stage, "viewer", email="anna@example.com")
    path = f"{USERS}/{anna.person_id}/export"
    with Visitor(api, cookies=anna.cookie(api)) as browser:
        assert f'href="{path}" download' in browser.get("/inbox/account").text
        exported = browser.get(path)
    assert exported.headers["content-disposition"].startswith("attachment")
    assert good(exported)["profile"]["email"] == anna.email


def test_a_deactivated_person_is_found_to_be_erased(caller: Caller, stage: Stage) -> None:
    anna = member(stage, email="anna@example.com")
    good(caller.delete(f"{USERS}/{anna.person_id}"))
    assert good(caller.get(USERS, params={"email": anna.email}))["data"] == []
    [row] = good(caller.get(USERS, params={"email": anna.email, "include_deactivated": "true"}))["data"]
    assert (row["id"], bool(row["deactivated_at"])) == (anna.person_id, True)
    good(caller.post(f"{USERS}/{anna.person_id}/erase", json=WHY))


def test_only_an_admin_erases_and_neither_themselves_nor_the_last_admin(
    caller: Caller, stage: Stage, as_: Client, with_scopes: Callable[..., Caller]
) -> None:
    admin, anna = member(stage, "admin"), member(stage)
    session = caller.session()
    for client in (as_(anna), as_(member(stage, "developer")), with_scopes("read", "sessions", "agents", "approvals")):
        bad(client.post(f"{USERS}/{admin.person_id}/erase", json=WHY), 403, "admin")
        bad(client.post(f"/v1/sessions/{session['id']}/erase", json=WHY), 403, "admin")
    bad(as_(admin).post(f"{USERS}/{admin.person_id}/erase", json=WHY), 400, "nobody can erase themselves")
    bad(caller.post(f"{USERS}/{admin.person_id}/erase", json=WHY), 409, "the last admin")
    bad(caller.post(f"{USERS}/{anna.person_id}/erase", json={}), 400, "reason")
    bad(caller.post(f"{USERS}/user_unknown/erase", json=WHY), 404)


def test_a_hold_is_named_when_it_keeps_a_person_or_a_session(caller: Caller, stage: Stage) -> None:
    anna, session = member(stage), caller.session()
    hold = good(caller.post("/v1/legal_holds", json={"reason": "A case."}))
    bad(caller.post(f"{USERS}/{anna.person_id}/erase", json=WHY), 409, hold["id"])
    bad(caller.post(f"/v1/sessions/{session['id']}/erase", json=WHY), 409, hold["id"])


def test_an_erased_session_is_gone_at_once(caller: Caller) -> None:
    session = caller.session()
    assert good(caller.post(f"/v1/sessions/{session['id']}/erase", json=WHY)) == {"id": session["id"], "type": "session_erased"}
    bad(caller.get(f"/v1/sessions/{session['id']}"), 404)
    assert good(caller.post(f"/v1/sessions/{session['id']}/erase", json=WHY))["id"] == session["id"], "idempotent"
    bad(caller.post("/v1/sessions/sesn_unknown/erase", json=WHY), 404)


def test_a_person_exports_all_that_is_kept_about_them(caller: Caller, stage: Stage, as_: Client) -> None:
    finance = group(stage)
    anna, dora = member(stage, "admin", email="anna@example.com", groups=[finance]), member(stage)
    call = asked(caller, stage)[0]
    approval = approval_of(caller, call)
    with_anna = as_(anna)
    good(with_anna.post(f"/v1/approvals/{approval['id']}/decision", json={"result": "deny", "deny_message": "Not today."}))
    sent = {"type": "user.message", "content": [{"type": "text", "text": "Then tomorrow."}]}
    good(with_anna.post(f"/v1/sessions/{call.session_id}/events", json={"events": [sent]}))
    terms = {"from": None, "to": f"user:{dora.person_id}", "ends_at": "2999-01-01T00:00:00Z"}
    delegation = good(with_anna.post("/v1/delegations", json=terms))

    data = good(with_anna.get(f"{USERS}/{anna.person_id}/export"))
    assert (data["profile"]["id"], data["profile"]["email"]) == (anna.person_id, "anna@example.com")
    assert [row["address"] for row in data["sign_ins"]] == ["127.0.0.1"]
    assert [row["group_id"] for row in data["groups"]] == [finance]
    assert [row["id"] for row in data["delegations"]] == [delegation["id"]]
    acts = {row["action"]: row for row in data["acts"]}
    decided, message = acts["approval.decided"], acts["message.received"]
    assert decided["session_id"] == message["session_id"] == call.session_id
    assert decided["decision"]["deny_message"] == "Not today."
    assert (decided["vote"]["by"], decided["vote"]["result"]) == (f"user:{anna.person_id}", "deny")
    assert message["message"] == sent["content"]
    assert {"person.signed_in", "delegation.given"} <= acts.keys()
    assert (f"user:{anna.person_id}", "person.exported") in acts_of(stage)
    assert dora.email not in json.dumps(data)


def test_an_export_is_for_the_person_and_admins_alone(
    caller: Caller, stage: Stage, as_: Client, with_scopes: Callable[..., Caller]
) -> None:
    anna, dora = member(stage), member(stage)
    path = f"{USERS}/{anna.person_id}/export"
    assert good(as_(anna).get(path))["profile"] == good(caller.get(path))["profile"]
    bad(as_(dora).get(path), 403, "admin")
    bad(with_scopes("read", "sessions", "agents", "approvals").get(path), 403, "admin")
    bad(caller.get(f"{USERS}/user_unknown/export"), 404)


def test_messages_that_a_program_sent_for_the_person_are_exported_too(caller: Caller, stage: Stage, clock: Clock) -> None:
    anna = member(stage, "developer")
    session = caller.session()
    sent = {"type": "user.message", "content": [{"type": "text", "text": "For Anna."}], "on_behalf_of": f"user:{anna.person_id}"}
    good(caller.tell(session["id"], sent))

    def messages() -> list[object]:
        acts = good(caller.get(f"{USERS}/{anna.person_id}/export"))["acts"]
        return [row["message"] for row in acts if row["action"] == "message.received"]

    assert messages() == [sent["content"]]
    stage.reply(session["id"], say("Done."))
    clock.advance(MONTH)
    assert archive(stage, session["id"])
    assert messages() == [sent["content"]], "from the archive"
