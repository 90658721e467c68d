"""If something changed since the message, a link's page says so, shows no more than the person may see now, and decides nothing."""

from collections.abc import Callable

import pytest
from inbox.linked import Message, fields, new_message
from inbox.waiting import asked, status
from own_database import Clock
from people import Somebody, Visitor, group, member
from rows.stage import Stage, call

from models.audit.principal import system
from models.database.transactions import transaction
from models.flow.begin import sessions
from models.flow.decide import decisions
from models.flow.decide.deadlines import expire_due
from models.people.group import Group
from models.people.member import Member
from models.session.approval.deadline import extend
from models.session.approval.decision import Decision
from models.session.approval.row import Approval

SECRET_WORK = "echo of the secret work"


@pytest.fixture
def finance(stage: Stage) -> str:
    return group(stage)


@pytest.fixture
def anna(stage: Stage, finance: str) -> Somebody:
    return member(stage, email="anna@example.com", groups=[finance])


@pytest.fixture
def approval(stage: Stage, finance: str) -> Approval:
    return asked(stage, call(command=SECRET_WORK), approval={"approvers": [f"group:{finance}"], "timeout_seconds": 3600})[0]


CheckPage = Callable[..., None]


@pytest.fixture
def check_page(api: str, stage: Stage, message: Message, approval: Approval) -> CheckPage:
    """`check_page(*words, status_code=409)`: page and form show the words, hide the call, and decide nothing by the right code."""

    def check(*words: str, status_code: int, status_after: str = "pending") -> None:
        with Visitor(api) as browser:
            page = browser.get(message.path)
            assert page.status_code == 200
            response = browser.post(message.path, data=fields(browser.get("/sign-in"), code=message.code, do="allow"))
            for text in (page.text, response.text):
                for word in words:
                    assert word in text, text
                assert SECRET_WORK not in text
                assert "<form" not in text
            assert response.status_code == status_code
        assert status(stage, approval) == status_after

    return check


def test_the_page_shows_the_call_while_it_waits(api: str, message: Message) -> None:
    """The other tests of this file assert that the call is not shown."""
    with Visitor(api) as browser:
        assert SECRET_WORK in browser.get(message.path).text


@pytest.mark.parametrize(("result", "word"), [("allow", "Allowed"), ("deny", "Denied")])
def test_another_person_s_decision_is_shown(
    stage: Stage, approval: Approval, finance: str, check_page: CheckPage, result: str, word: str
) -> None:
    ben = member(stage, email="ben@example.com", groups=[finance])
    decide(stage, approval, ben, result)
    check_page(f"{word} by ben, just now", status_code=409, status_after={"allow": "allowed", "deny": "denied"}[result])


def decide(stage: Stage, approval: Approval, by: Somebody, result: str, **more: object) -> None:
    decision = Decision(result=result, **more)  # type: ignore[arg-type]
    stage.locked(
        approval.session_id,
        lambda locked: decisions.decide(locked, locked.db.get_one(Approval, approval.id), decision),
        by.principal,
    )


def test_an_edited_call_that_waits_for_more_people_is_not_shown(stage: Stage, finance: str, anna: Somebody, api: str) -> None:
    """An edit by one of two people is the only one after which an approval still waits."""
    ben = member(stage, groups=[finance])
    [approval] = asked(stage, call(command="echo 1"), approval={"required_approvals": 2})
    message = new_message(stage, approval, anna)
    decide(stage, approval, ben, "allow", updated_input={"command": SECRET_WORK})
    with Visitor(api) as browser:
        for response in (
            browser.get(message.path),
            browser.post(message.path, data=fields(browser.get("/sign-in"), code=message.code, do="allow")),
        ):
            assert "The call has changed" in response.text
            assert SECRET_WORK not in response.text
            assert "<form" not in response.text
    assert response.status_code == 409
    assert status(stage, approval) == "pending"


def test_an_input_of_another_hash_is_not_decided_even_if_one_person_is_enough(
    stage: Stage, approval: Approval, check_page: CheckPage
) -> None:
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE link SET input_sha256 = %(other)s", other="0" * 64)
    check_page("The call has changed", status_code=409)


def test_a_passed_deadline_is_said(stage: Stage, approval: Approval, check_page: CheckPage, clock: Clock) -> None:
    clock.advance(3601)
    check_page("The deadline of this link has passed", "decides nothing any more", status_code=409)
    expire_due(stage.workspace_id, approval.session_id)
    check_page("Expired: nobody decided in time", status_code=409, status_after="expired")


def test_more_time_for_the_approval_needs_a_sign_in(stage: Stage, approval: Approval, check_page: CheckPage, clock: Clock) -> None:
    stage.locked(approval.session_id, lambda locked: extend(locked, locked.db.get_one(Approval, approval.id), 86_400))
    clock.advance(3601)
    check_page("The deadline of this link has passed", "given more time", "Sign in to decide", status_code=409)


def test_a_cancelled_call_is_said(stage: Stage, approval: Approval, check_page: CheckPage) -> None:
    stage.send(approval.session_id, {"type": "user.interrupt"})
    check_page("Cancelled by", status_code=409, status_after="cancelled")


def test_a_deactivated_person_sees_nothing(stage: Stage, anna: Somebody, check_page: CheckPage) -> None:
    with transaction(stage.workspace_id) as db:
        Member.deactivate(db, anna.person_id, by=system("test", stage.workspace_id))
    check_page("not, or no longer, one of the people", status_code=403)


def test_a_person_who_left_the_group_sees_nothing(stage: Stage, anna: Somebody, finance: str, check_page: CheckPage) -> None:
    with transaction(stage.workspace_id) as db:
        Group.take_out(db, finance, anna.person_id, by=stage.principal)
    check_page("not, or no longer, one of the people", status_code=403)


@pytest.mark.parametrize(
    ("role", "words"), [("viewer", "Your role, viewer, does not decide"), ("developer", "Your role, developer")]
)
def test_a_person_who_lost_the_role_sees_nothing(
    stage: Stage, anna: Somebody, check_page: CheckPage, role: str, words: str
) -> None:
    with transaction(stage.workspace_id) as db:
        Member.change_role(db, anna.person_id, role, by=stage.principal)  # type: ignore[arg-type]
    check_page(words, status_code=403)


def test_a_person_who_lost_access_is_not_told_the_decision(
    stage: Stage, approval: Approval, anna: Somebody, finance: str, api: str, message: Message
) -> None:
    ben = member(stage, email="ben@example.com", groups=[finance])
    decide(stage, approval, ben, "deny")
    with transaction(stage.workspace_id) as db:
        Member.deactivate(db, anna.person_id, by=system("test", stage.workspace_id))
    with Visitor(api) as browser:
        page = browser.get(message.path).text
    assert "not, or no longer" in page
    for text in ("Denied", "ben", SECRET_WORK):
        assert text not in page


def test_an_escalated_approval_needs_a_sign_in(api: str, stage: Stage, finance: str, anna: Somebody, clock: Clock) -> None:
    """The first approvers may still decide. If the first level named nobody, only the next people decide."""
    ben = member(stage)
    steps = {"on_timeout": "escalate", "timeout_seconds": 600}
    steps |= {"escalate_to": [{"approvers": [f"user:{ben.person_id}"], "timeout_seconds": 3600}]}
    [named] = asked(stage, call(command=SECRET_WORK), approval={"approvers": [f"group:{finance}"], **steps})
    [anybody] = asked(stage, call(command=SECRET_WORK), approval=steps)
    messages = {row.id: new_message(stage, row, anna) for row in (named, anybody)}
    clock.advance(601)
    for row in (named, anybody):
        expire_due(stage.workspace_id, row.session_id)
    with Visitor(api) as browser:
        named_page, anybody_page = (browser.get(messages[row.id].path).text for row in (named, anybody))
        for row in (named, anybody):
            values = fields(browser.get("/sign-in"), code=messages[row.id].code, do="allow")
            assert browser.post(messages[row.id].path, data=values).status_code in {403, 409}
            assert status(stage, row) == "pending"
    assert "more people were asked" in named_page
    assert "other people were asked" in anybody_page
    for page in (named_page, anybody_page):
        assert SECRET_WORK not in page
        assert "<form" not in page


def test_the_link_of_a_deleted_session_does_not_work(api: str, stage: Stage, approval: Approval, message: Message) -> None:
    stage.locked(approval.session_id, sessions.delete)
    with Visitor(api) as browser:
        response = browser.get(message.path)
    assert (response.status_code, "does not work" in response.text) == (404, True)


def test_the_link_s_person_who_is_signed_in_goes_on_to_the_card(
    api: str, approval: Approval, anna: Somebody, message: Message
) -> None:
    with anna.client(api) as browser:
        response = browser.get(message.path)
        assert (response.status_code, response.headers["location"]) == (303, f"/inbox/approvals/{approval.id}")
        assert response.headers["referrer-policy"] == "no-referrer"
        assert SECRET_WORK in browser.get(response.headers["location"]).text


def test_another_signed_in_person_sees_nothing_and_gets_a_link_to_the_card(
    api: str, stage: Stage, approval: Approval, message: Message
) -> None:
    ben = member(stage, "approver")
    with ben.client(api) as browser:
        form = fields(browser.get("/sign-in"), code=message.code, do="allow")
        for response in (browser.get(message.path), browser.post(message.path, data=form)):
            assert response.status_code == 403
            assert "for another person" in response.text
            assert f'href="/inbox/approvals/{approval.id}"' in response.text
            for text in (SECRET_WORK, "anna"):
                assert text not in response.text
        assert browser.get(f"/inbox/approvals/{approval.id}").status_code == 404, "Ben may not see the card"
    assert status(stage, approval) == "pending"
