"""A person who is not signed in decides at a message's link with the message's code, and the decision is that person's."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from crashes.processes import wait_for
from inbox.linked import Message, decided_by, fields, new_message, send
from inbox.waiting import asked, asks_back, status, unknown_outcome
from own_database import Clock
from people import Somebody, Visitor, acts_of, group, member
from rows.stage import Stage, call

from models.audit import text
from models.database.transactions import transaction
from models.flow.decide.decisions import decide
from models.flow.lock import lock
from models.notices.link import TRIES
from models.people.confirming import principal_of
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall
from models.workspace.row import Workspace

FORM = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}


def test_the_code_allows_a_call_once(api: str, stage: Stage, approval: Approval, anna: Somebody, message: Message) -> None:
    response = send(api, message, do="allow")
    assert response.status_code == 200
    assert "Allowed by anna" in response.text
    row = stage.get(Approval, approval.id)
    assert (row.status, row.decision, row.decided_by) == ("allowed", {"result": "allow"}, f"user:{anna.person_id}")
    assert stage.get(ToolCall, approval.tool_call_id).status == "queued"


def test_the_code_denies_with_and_without_a_message(api: str, stage: Stage, anna: Somebody) -> None:
    first, second = asked(stage, call(command="echo 1"), call(command="echo 2"))
    assert send(api, new_message(stage, first, anna), do="deny", deny_message=" ").status_code == 200
    assert send(api, new_message(stage, second, anna), do="deny", deny_message="Not on a\r\nFriday.").status_code == 200
    decisions = [stage.get(Approval, row.id).decision for row in (first, second)]
    assert decisions == [{"result": "deny"}, {"result": "deny", "deny_message": "Not on a\nFriday."}]


def test_the_audit_names_the_person_the_address_and_the_link(
    api: str, stage: Stage, approval: Approval, anna: Somebody, message: Message
) -> None:
    send(api, message, do="allow")
    act = decided_by(stage, approval)
    with transaction(stage.workspace_id) as db:
        texts = text.of(db, [(act.chain, act.seq)])[act.chain, act.seq]
    assert (act.principal, act.address, texts["client_address"]) == (f"user:{anna.person_id}", None, "127.0.0.1")
    assert (act.details["via"], act.details["link"], act.details["shown_sha256"]) == ("link", message.row.id, approval.input_sha256)
    stage.check(approval.session_id)


def test_a_named_approver_s_code_is_the_approver_s_vote(api: str, stage: Stage) -> None:
    finance = group(stage)
    anna, ben = member(stage, groups=[finance]), member(stage)
    [approval] = asked(stage, approval={"approvers": [f"group:{finance}"]})
    refused = send_without_form(api, new_message(stage, approval, ben))
    assert "no longer, one of the people" in refused.text
    assert send(api, new_message(stage, approval, anna), do="allow").status_code == 200
    assert status(stage, approval) == "allowed"


def send_without_form(api: str, message: Message) -> httpx2.Response:
    """Send the form although the page has none, with the token of the page for signing in."""
    with Visitor(api) as browser:
        values = fields(browser.get("/sign-in"), code=message.code, do="allow")
        return browser.post(message.path, data=values)


@pytest.mark.parametrize(
    "settings", [{"required_approvals": 2}, {"four_eyes": True}], ids=["two people must agree", "four eyes must see the call"]
)
def test_only_a_sign_in_decides_where_several_people_count(
    api: str, stage: Stage, anna: Somebody, settings: dict[str, object]
) -> None:
    member(stage)
    ben = member(stage)
    [approval] = asked(stage, approval=settings, on_behalf_of=f"user:{ben.person_id}")
    check_needs_sign_in(api, stage, approval, anna)


@pytest.mark.parametrize("make", [lambda stage: asks_back(stage, {"n": {"message": "How many?", "schema": FORM}}), unknown_outcome])
def test_only_a_sign_in_answers_a_question_or_settles_an_outcome(
    api: str, stage: Stage, anna: Somebody, make: Callable[[Stage], Approval]
) -> None:
    check_needs_sign_in(api, stage, make(stage), anna)


def check_needs_sign_in(api: str, stage: Stage, approval: Approval, anna: Somebody) -> None:
    """Assert that the page leads to the card and has no form, and that the server refuses a form."""
    message = new_message(stage, approval, anna)
    with Visitor(api) as browser:
        page = browser.get(message.path).text
    assert "Sign in to decide" in page
    assert f'href="/sign-in?next=%2Finbox%2Fapprovals%2F{approval.id}"' in page
    assert "<form" not in page
    response = send_without_form(api, message)
    assert response.status_code == 403
    assert "A code is not enough" in response.text
    assert status(stage, approval) == "pending"
    assert message.row.used_at is None


def test_a_stricter_policy_applies_to_an_open_page(
    api: str, stage: Stage, anna: Somebody, approval: Approval, message: Message
) -> None:
    member(stage)
    with Visitor(api) as browser:
        values = fields(browser.get(message.path), code=message.code, do="allow")
        with transaction(stage.workspace_id) as db:
            Workspace.change_policies(db, stage.principal, {"approval": {"required_approvals": 2}})
        response = browser.post(message.path, data=values)
    assert response.status_code == 403
    assert status(stage, approval) == "pending"


@pytest.mark.parametrize(
    "values",
    [{"do": "session"}, {"do": "end"}, {"do": "respond", "respond": "Done."}, {"do": ""}, {"do": "rerun"}],
    ids=lambda values: str(values["do"]),
)
def test_a_link_takes_no_other_answer(api: str, stage: Stage, approval: Approval, message: Message, values: dict[str, str]) -> None:
    response = send(api, message, **values)
    assert response.status_code == 400
    assert "must be allow or deny" in response.text
    assert status(stage, approval) == "pending"
    assert send(api, message, do="allow").status_code == 200, "the code still works"


def test_fields_of_other_answers_are_ignored(api: str, stage: Stage, approval: Approval, message: Message) -> None:
    send(api, message, do="allow", scope="always", match="tool", interrupt="true", respond="Done.", input='{"command": "rm"}')
    assert stage.get(Approval, approval.id).decision == {"result": "allow"}


def test_five_wrong_codes_use_a_link_up(api: str, stage: Stage, approval: Approval, message: Message) -> None:
    for left in range(TRIES - 1, 0, -1):
        response = send(api, message, code=message.wrong_code, do="allow")
        assert response.status_code == 403
        assert f"{left} more wrong code" in response.text
    last = send(api, message, code=message.wrong_code, do="allow")
    assert "used up now" in last.text
    assert "<form" not in last.text
    right = send_without_form(api, message)
    assert right.status_code == 404
    assert status(stage, approval) == "pending"
    assert acts_of(stage, "link.") == [(f"link:{message.row.id}", "link.used_up")]


@pytest.mark.parametrize("code", ["", "12345", "1234567", "abcdef", "\uff11\uff12\uff13\uff14\uff15\uff16", "12 34"])
def test_a_malformed_code_does_not_count_as_a_try(api: str, stage: Stage, approval: Approval, message: Message, code: str) -> None:
    response = send(api, message, code=code, do="allow", deny_message="Kept.")
    assert response.status_code == 400
    assert "six digits" in response.text
    assert "Kept." in response.text, "the form keeps the message"
    assert message.row.tries == 0
    assert send(api, message, code=f" {message.code[:3]} {message.code[3:]}", do="allow").status_code == 200, "spaces do not matter"


def test_wrong_codes_at_once_are_all_counted(api: str, stage: Stage, approval: Approval, message: Message) -> None:
    responses = at_once(api, message, *[{"code": message.wrong_code, "do": "allow"}] * (TRIES + 1))
    assert sorted(response.status_code for response in responses) == [403] * TRIES + [404]
    row = message.row
    assert row.tries == TRIES
    assert row.used_at is not None
    assert send_without_form(api, message).status_code == 404
    assert status(stage, approval) == "pending"


def test_two_right_codes_at_once_decide_once(api: str, stage: Stage, approval: Approval, message: Message) -> None:
    responses = at_once(api, message, {"code": message.code, "do": "allow"}, {"code": message.code, "do": "deny"})
    assert sorted(response.status_code for response in responses) == [200, 409]
    outcome = {"allowed": "Allowed by anna", "denied": "Denied by anna"}[status(stage, approval)]
    assert all(outcome in response.text for response in responses), "each page tells the one decision"
    assert len([event for event in stage.events(approval.session_id) if event.type == "approval.decided"]) == 1


def test_a_code_that_meets_its_person_s_decision_half_way_is_too_late(
    api: str, stage: Stage, approval: Approval, anna: Somebody, message: Message
) -> None:
    """The other request commits while this one reads: between the approval's row and its votes, which a lock keeps from it."""
    with Visitor(api) as browser, ThreadPoolExecutor() as pool:
        values = fields(browser.get(message.path), code=message.code, do="allow")
        with transaction(stage.workspace_id) as db:
            locked = lock(db, approval.session_id, principal_of(db, anna.person_id))
            db.rows("LOCK TABLE vote IN ACCESS EXCLUSIVE MODE")
            late = pool.submit(browser.post, message.path, data=values)
            wait_for("the request's read of the votes", lambda: waits_for_votes(stage))
            decide(locked, db.get_one(Approval, approval.id, lock=True), Decision("deny"))
    assert late.result().status_code == 409
    assert "Denied by anna" in late.result().text


def waits_for_votes(stage: Stage) -> bool:
    """True while a transaction waits for the table of votes."""
    with transaction(stage.workspace_id) as db:
        return bool(db.value("SELECT count(*) FROM pg_locks WHERE relation = 'vote'::regclass AND NOT granted"))


def at_once(api: str, message: Message, *forms: dict[str, str]) -> list[httpx2.Response]:
    """Send each form from a browser of its own, all at the same moment."""
    responses: list[httpx2.Response] = []
    ready = threading.Barrier(len(forms))

    def post(form: dict[str, str]) -> None:
        with Visitor(api) as browser:
            values = fields(browser.get(message.path), **form)
            ready.wait(20)
            responses.append(browser.post(message.path, data=values))

    threads = [threading.Thread(target=post, args=(form,)) for form in forms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return responses


def test_the_same_form_within_an_hour_shows_the_decision(
    api: str, stage: Stage, approval: Approval, message: Message, clock: Clock
) -> None:
    with Visitor(api) as browser:
        values = fields(browser.get(message.path), code=message.code, do="allow")
        assert browser.post(message.path, data=values).status_code == 200
        again = browser.post(message.path, data=values)
        assert "Allowed by anna" in again.text
        assert browser.post(message.path, data=values | {"code": message.wrong_code}).status_code == 404
        clock.advance(3601)
        assert browser.post(message.path, data=values).status_code == 404
    assert len([event for event in stage.events(approval.session_id) if event.type == "approval.decided"]) == 1


def test_each_of_two_messages_decides(api: str, stage: Stage, approval: Approval, anna: Somebody, message: Message) -> None:
    """If a worker dies after it sent a message, a second message follows."""
    second = new_message(stage, approval, anna)
    assert send(api, message, code=second.code, do="allow").status_code == 403, "a code belongs to its own link"
    assert send(api, second, do="allow").status_code == 200
    with Visitor(api) as browser:
        assert "Allowed by anna" in browser.get(message.path).text
