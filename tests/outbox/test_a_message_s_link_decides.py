"""The link and the code that a person reads in a message decide, whatever happened to the message on its way."""

import json
import re
from email.message import EmailMessage

import httpx2
import pytest
from inbox.linked import fields
from outbox.mailbox import Mailbox, html_of, text_of
from outbox.notified import channel, fan_out, mail_channel, notifications, notify
from outbox.receiver import Receiver
from own_database import Clock
from people import Somebody, Visitor, member
from rows.stage import Stage
from rows.voting import ask

from models.database.transactions import transaction
from models.flow.decide.deadlines import remind_due
from models.notices import recipients as notifying
from models.notices.notification import LEASE, Notification
from models.session.approval.row import Approval
from models.settings import settings
from workers.notifiers import Address
from workers.notifiers.mail import Mail

LINK = re.compile(r"http://localhost:8000(/link/[\w-]{43})(?![\w-])")
CODE = re.compile(r"The code for that page: (?:<b[^>]*>)?(\d{6})\b")


@pytest.fixture
def anna(stage: Stage) -> Somebody:
    return member(stage, email="anna@example.com")


def read(text: str) -> tuple[str, str]:
    """The link's path and the code in a message's text."""
    [path], [code] = set(LINK.findall(text)), set(CODE.findall(text))
    return path, code


def decide(api: str, path: str, code: str, do: str = "allow") -> httpx2.Response:
    """Open the link, type the code and press a button."""
    with Visitor(api) as browser:
        return browser.post(path, data=fields(browser.get(path), code=code, do=do))


def test_the_link_and_the_code_of_a_mail_decide(api: str, stage: Stage, anna: Somebody, mailbox: Mailbox, clock: Clock) -> None:
    """In the text as in the HTML, and in no header."""
    mail_channel(stage, anna)
    approval = ask(stage, stage.session())
    clock.advance(61)
    notify(stage)
    [mail] = mailbox.mails
    assert read(html_of(mail)) == read(text_of(mail))
    path, code = read(text_of(mail))
    headers = " ".join(f"{name}: {value}" for name, value in mail.items())
    assert path not in headers
    assert code not in headers
    assert code not in path
    assert decide(api, path, code, "deny").status_code == 200
    assert stage.get(Approval, approval.id).decided_by == f"user:{anna.person_id}"


def test_a_mail_whose_worker_died_decides_as_the_next_one_does(
    api: str, stage: Stage, anna: Somebody, mailbox: Mailbox, clock: Clock
) -> None:
    """The first mail left, but no row records it. Mail programs show one of the two, because both have the same Message-ID."""
    row = mail_channel(stage, anna)
    approval = ask(stage, stage.session())
    clock.advance(61)
    fan_out(stage)
    [waiting] = notifications(stage)
    with transaction(stage.workspace_id) as db:
        message = notifying.prepare(db, waiting.id)
    assert message is not None
    Mail().send(Address(row.id, row.workspace_id, anna.person_id, row.address, "token"), message.notice, None)
    clock.advance(LEASE.total_seconds() + 1)
    take_back(stage, waiting.id)
    clock.advance(3600)
    notify(stage)
    first, second = mailbox.mails
    assert first["message-id"] == second["message-id"]
    assert read(text_of(first)) != read(text_of(second))
    assert decide(api, *read(text_of(first))).status_code == 200
    assert stage.get(Approval, approval.id).status == "allowed"
    with Visitor(api) as browser:
        assert "Allowed by anna" in browser.get(read(text_of(second))[0]).text


def take_back(stage: Stage, notification_id: str) -> None:
    """Do what the rescue sweep does with a notification whose lease has ended."""
    with transaction(stage.workspace_id) as db:
        db.get_one(Notification, notification_id, lock=True).lose(db)


def test_failed_attempts_for_hours_end_no_link_that_has_arrived(
    api: str, stage: Stage, anna: Somebody, mailbox: Mailbox, clock: Clock
) -> None:
    """Each attempt makes a link."""
    mail_channel(stage, anna)
    approval = ask(stage, stage.session(approval={"timeout_seconds": 86_400}))
    clock.advance(61)
    notify(stage)
    [mail] = mailbox.mails
    mailbox.reply = "451 Try later"
    clock.advance(settings().remind_after_seconds)
    remind_due(stage.workspace_id, approval.session_id)
    for _ in range(12):
        notify(stage)
        clock.advance(3600)
    assert [row.status for row in notifications(stage)] == ["failed"]
    assert decide(api, *read(text_of(mail))).status_code == 200


def test_a_reminder_has_a_link_of_its_own_and_the_outcome_has_none(
    api: str, stage: Stage, anna: Somebody, mailbox: Mailbox, clock: Clock
) -> None:
    mail_channel(stage, anna)
    approval = ask(stage, stage.session(approval={"timeout_seconds": 86_400}))
    clock.advance(61)
    notify(stage)
    clock.advance(settings().remind_after_seconds)
    remind_due(stage.workspace_id, approval.session_id)
    notify(stage)
    question, reminder = mailbox.mails
    first, second = read(text_of(question)), read(text_of(reminder))
    assert first[0] != second[0]
    assert decide(api, *second).status_code == 200
    notify(stage)
    clock.advance(notifying.RESULT_WAIT.total_seconds() + 1)
    notify(stage)
    outcome: EmailMessage = mailbox.mails[-1]
    for text in (text_of(outcome), html_of(outcome)):
        assert "/link/" not in text
        assert not CODE.search(text)


def test_each_person_gets_a_link_of_their_own_and_a_room_gets_none(api: str, stage: Stage, anna: Somebody, ops: Receiver) -> None:
    ben = member(stage, email="ben@example.com")
    for who in (anna, ben, None):
        channel(stage, who)
    approval = ask(stage, stage.session())
    notify(stage)
    messages = [json.loads(request.body)["message"] for request in ops.requests]
    assert len(messages) == 3
    personal = [read(message) for message in messages if "/link/" in message]
    [room] = [message for message in messages if "/link/" not in message]
    assert f"/inbox/approvals/{approval.id}" in room
    assert not CODE.search(room)
    assert len({path for path, _ in personal}) == 2
    (path, _), (_, code) = personal
    assert "not the code" in decide(api, path, code).text, "one person's code does not fit another's link"
    assert stage.get(Approval, approval.id).status == "pending"
