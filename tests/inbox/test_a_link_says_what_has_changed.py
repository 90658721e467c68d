"""Between a message and its reader the world changes. A link's page says so in plain words, shows no more than the person may see
now, and decides nothing."""

import re
from collections.abc import Callable
from html import unescape

import pytest
from inbox.linked import Message, fields, message
from inbox.waiting import asked, status
from own_database import Clock
from people import Somebody, Visitor, group, member
from rows.stage import Stage, call

from models import flow
from models.audit.principal import system
from models.database.transactions import transaction
from models.people.group import Group
from models.people.member import Member
from models.session.approval import Approval
from models.session.approval_deadline import extend
from models.session.decision import Decision

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


@pytest.fixture
def sent(stage: Stage, approval: Approval, anna: Somebody) -> Message:
    return message(stage, approval, anna)


Says = Callable[..., None]


@pytest.fixture
def says(api: str, stage: Stage, sent: Message, approval: Approval) -> Says:
    """`says(words, status=409)`: the page has the words and nothing of the call, and a form with the right code decides nothing."""

    def check(*words: str, status_code: int, ended: str = "pending") -> None:
        with Visitor(api) as browser:
            page = browser.get(sent.path)
            assert page.status_code == 200
            response = browser.post(sent.path, data=fields(browser.get("/sign-in"), code=sent.code, do="allow"))
            for text in (page.text, response.text):
                for word in words:
                    assert word in text, text
                assert SECRET_WORK not in text
                assert "<form" not in text
            assert response.status_code == status_code
        assert status(stage, approval) == ended

    return check


def test_the_page_shows_the_call_while_it_waits(api: str, sent: Message) -> None:
    """So the other tests of this file see it go."""
    with Visitor(api) as browser:
        assert SECRET_WORK in browser.get(sent.path).text


@pytest.mark.parametrize(("result", "word"), [("allow", "Allowed"), ("deny", "Denied")])
def test_decided_by_somebody_else(stage: Stage, approval: Approval, finance: str, says: Says, result: str, word: str) -> None:
    ben = member(stage, email="ben@example.com", groups=[finance])
    decide(stage, approval, ben, result)
    says(f"{word} by ben, just now", status_code=409, ended={"allow": "allowed", "deny": "denied"}[result])


def decide(stage: Stage, approval: Approval, by: Somebody, result: str, **more: object) -> None:
    decision = Decision(result=result, **more)  # type: ignore[arg-type]
    stage.locked(
        approval.session_id,
        lambda db, session: flow.decide(db, session, by.principal, db.get_one(Approval, approval.id), decision),
    )


def test_edited_and_waiting_for_more_people(stage: Stage, finance: str, anna: Somebody, api: str) -> None:
    """An edit by one of two people is the only one after which an approval still waits."""
    ben = member(stage, groups=[finance])
    [approval] = asked(stage, call(command="echo 1"), approval={"required_approvals": 2})
    sent = message(stage, approval, anna)
    decide(stage, approval, ben, "allow", updated_input={"command": SECRET_WORK})
    with Visitor(api) as browser:
        for response in (
            browser.get(sent.path),
            browser.post(sent.path, data=fields(browser.get("/sign-in"), code=sent.code, do="allow")),
        ):
            assert "The call has changed" in response.text
            assert SECRET_WORK not in response.text
            assert "<form" not in response.text
    assert response.status_code == 409
    assert status(stage, approval) == "pending"


def test_an_input_of_another_hash_is_not_decided_even_if_one_person_is_enough(stage: Stage, approval: Approval, says: Says) -> None:
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE link SET input_sha256 = %(other)s", other="0" * 64)
    says("The call has changed", status_code=409)


def test_expired(stage: Stage, approval: Approval, says: Says, clock: Clock) -> None:
    clock.advance(3601)
    says("The deadline of this link has passed", "decides nothing any more", status_code=409)
    flow.expire_due(stage.workspace_id, approval.session_id)
    says("Expired: nobody decided in time", status_code=409, ended="expired")


def test_given_more_time(stage: Stage, approval: Approval, says: Says, clock: Clock) -> None:
    stage.locked(
        approval.session_id, lambda db, session: extend(db, session, db.get_one(Approval, approval.id), stage.principal, 86_400)
    )
    clock.advance(3601)
    says("The deadline of this link has passed", "given more time", "Sign in to decide", status_code=409)


def test_cancelled(stage: Stage, approval: Approval, says: Says) -> None:
    stage.send(approval.session_id, {"type": "user.interrupt"})
    says("Cancelled by", status_code=409, ended="cancelled")


def test_a_person_who_was_deactivated(stage: Stage, anna: Somebody, says: Says) -> None:
    with transaction(stage.workspace_id) as db:
        Member.deactivate(db, anna.person_id, by=system("test", stage.workspace_id))
    says("not, or no longer, one of the people", status_code=403)


def test_a_person_who_left_the_group(stage: Stage, anna: Somebody, finance: str, says: Says) -> None:
    with transaction(stage.workspace_id) as db:
        Group.take_out(db, finance, anna.person_id, by=stage.principal)
    says("not, or no longer, one of the people", status_code=403)


@pytest.mark.parametrize(
    ("role", "words"), [("viewer", "Your role, viewer, does not decide"), ("developer", "Your role, developer")]
)
def test_a_person_whose_role_decides_no_more(stage: Stage, anna: Somebody, says: Says, role: str, words: str) -> None:
    with transaction(stage.workspace_id) as db:
        Member.change_role(db, anna.person_id, role, by=stage.principal)  # type: ignore[arg-type]
    says(words, status_code=403)


def test_decided_is_not_told_to_a_person_who_may_not_see_it(
    stage: Stage, approval: Approval, anna: Somebody, finance: str, api: str, sent: Message
) -> None:
    ben = member(stage, email="ben@example.com", groups=[finance])
    decide(stage, approval, ben, "deny")
    with transaction(stage.workspace_id) as db:
        Member.deactivate(db, anna.person_id, by=system("test", stage.workspace_id))
    with Visitor(api) as browser:
        page = browser.get(sent.path).text
    assert "not, or no longer" in page
    for text in ("Denied", "ben", SECRET_WORK):
        assert text not in page


def test_escalated_to_others(api: str, stage: Stage, finance: str, anna: Somebody, clock: Clock) -> None:
    """Whoever could decide before still may, after a sign-in. Where the first level named nobody, only the next people decide."""
    ben = member(stage)
    steps = {"on_timeout": "escalate", "timeout_seconds": 600}
    steps |= {"escalate_to": [{"approvers": [f"user:{ben.person_id}"], "timeout_seconds": 3600}]}
    [named] = asked(stage, call(command=SECRET_WORK), approval={"approvers": [f"group:{finance}"], **steps})
    [anybody] = asked(stage, call(command=SECRET_WORK), approval=steps)
    sent = {row.id: message(stage, row, anna) for row in (named, anybody)}
    clock.advance(601)
    for row in (named, anybody):
        flow.expire_due(stage.workspace_id, row.session_id)
    with Visitor(api) as browser:
        still, no_more = (browser.get(sent[row.id].path).text for row in (named, anybody))
        for row in (named, anybody):
            values = fields(browser.get("/sign-in"), code=sent[row.id].code, do="allow")
            assert browser.post(sent[row.id].path, data=values).status_code in {403, 409}
            assert status(stage, row) == "pending"
    assert "more people were asked" in still
    assert "other people were asked" in no_more
    for page in (still, no_more):
        assert SECRET_WORK not in page
        assert "<form" not in page


def test_a_deleted_session(api: str, stage: Stage, approval: Approval, sent: Message) -> None:
    stage.locked(approval.session_id, lambda db, session: flow.delete(db, session, stage.principal))
    with Visitor(api) as browser:
        response = browser.get(sent.path)
    assert (response.status_code, "does not work" in response.text) == (404, True)


def test_the_link_s_person_who_is_signed_in_goes_on_to_the_card(
    api: str, approval: Approval, anna: Somebody, sent: Message
) -> None:
    with anna.client(api) as browser:
        response = browser.get(sent.path)
        assert (response.status_code, response.headers["location"]) == (303, f"/inbox/approvals/{approval.id}")
        assert response.headers["referrer-policy"] == "no-referrer"
        assert SECRET_WORK in browser.get(response.headers["location"]).text


def test_another_person_who_is_signed_in_is_told_so_and_led_to_their_own_card(
    api: str, stage: Stage, approval: Approval, sent: Message
) -> None:
    ben = member(stage, "approver")
    with ben.client(api) as browser:
        form = fields(browser.get("/sign-in"), code=sent.code, do="allow")
        for response in (browser.get(sent.path), browser.post(sent.path, data=form)):
            assert response.status_code == 403
            assert "for another person" in response.text
            assert f'href="/inbox/approvals/{approval.id}"' in response.text
            for text in (SECRET_WORK, "anna"):
                assert text not in response.text
        assert browser.get(f"/inbox/approvals/{approval.id}").status_code == 404, "which shows what Ben may see: nothing"
    assert status(stage, approval) == "pending"


def test_the_sign_in_leads_to_the_card(api: str, approval: Approval, sent: Message) -> None:
    with Visitor(api) as browser:
        [place] = {unescape(place) for place in re.findall(r'href="(/sign-in[^"]*)"', browser.get(sent.path).text)}
        assert f'name="next" value="/inbox/approvals/{approval.id}"' in browser.get(place).text
