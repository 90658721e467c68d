"""Whoever decides by the link of a mail, or asks for it, gets one more mail of the thread: whether the call worked."""

import re

import httpx2
import pytest
from inbox.linked import fields
from outbox.mailbox import Mailbox, text_of
from outbox.notified import mail_channel, notify
from own_database import Clock
from people import Somebody, Visitor, member
from rows.stage import Stage, say
from rows.voting import ask, vote

from models.notices.recipients import RESULT_WAIT
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall

LINK = re.compile(r"http://localhost:8000(/link/[\w-]{43})(?![\w-])")
CODE = re.compile(r"The code for that page: (\d{6})\b")


@pytest.fixture
def anna(stage: Stage) -> Somebody:
    return member(stage, email="anna@example.com")


def asked_by_mail(stage: Stage, mailbox: Mailbox, clock: Clock) -> Approval:
    """An approval of which a mail has told."""
    approval = ask(stage, stage.session(), command="make test")
    clock.advance(61)
    notify(stage)
    assert len(mailbox.mails) == 1
    return approval


def allow_by_link(api: str, mailbox: Mailbox) -> httpx2.Response:
    """Open the link of the last mail, and allow the call with its code."""
    [path], [code] = set(LINK.findall(text_of(mailbox.mails[-1]))), set(CODE.findall(text_of(mailbox.mails[-1])))
    with Visitor(api) as browser:
        return browser.post(path, data=fields(browser.get(path), code=code, do="allow"))


def run(stage: Stage, approval: Approval, *, is_error: bool = False) -> None:
    held = stage.begin_call(stage.get(ToolCall, approval.tool_call_id))
    stage.finish_call(held, content=[say("stdout:\nthe customers of Ada\n"), say("exit code: 0")], is_error=is_error)


def last(mailbox: Mailbox) -> str:
    return " ".join(text_of(mailbox.mails[-1]).split())


def test_a_quick_result_is_told_in_the_mail_about_the_decision(
    api: str, stage: Stage, anna: Somebody, mailbox: Mailbox, clock: Clock
) -> None:
    mail_channel(stage, anna)
    approval = asked_by_mail(stage, mailbox, clock)
    assert allow_by_link(api, mailbox).status_code == 200
    notify(stage)
    assert len(mailbox.mails) == 1, "it waits for the result"
    run(stage, approval)
    notify(stage)
    assert len(mailbox.mails) == 2
    assert "Allowed by anna. The call is done." in last(mailbox)
    assert mailbox.mails[1]["references"] == mailbox.mails[0]["message-id"]
    assert "Ada" not in last(mailbox)


def test_a_late_result_is_one_more_mail(api: str, stage: Stage, anna: Somebody, mailbox: Mailbox, clock: Clock) -> None:
    mail_channel(stage, anna)
    approval = asked_by_mail(stage, mailbox, clock)
    allow_by_link(api, mailbox)
    notify(stage)
    clock.advance(RESULT_WAIT.total_seconds() + 1)
    notify(stage)
    assert len(mailbox.mails) == 2
    assert "The call" not in last(mailbox)
    run(stage, approval, is_error=True)
    notify(stage)
    notify(stage)
    assert len(mailbox.mails) == 3
    assert "Allowed by anna. The call failed." in last(mailbox)


def test_a_channel_that_asks_for_it_is_told_whoever_decided(stage: Stage, anna: Somebody, mailbox: Mailbox, clock: Clock) -> None:
    mail_channel(stage, anna, tells_outcomes=True)
    approval = asked_by_mail(stage, mailbox, clock)
    vote(stage, member(stage, email="ben@example.com"), approval)
    run(stage, approval)
    notify(stage)
    assert len(mailbox.mails) == 2
    assert "Allowed by ben. The call is done." in last(mailbox)


def test_nobody_else_gets_a_mail_about_the_result(stage: Stage, anna: Somebody, mailbox: Mailbox, clock: Clock) -> None:
    mail_channel(stage, anna)
    approval = asked_by_mail(stage, mailbox, clock)
    vote(stage, anna, approval)
    notify(stage)
    assert len(mailbox.mails) == 2, "a decision on a page waits for nothing"
    run(stage, approval)
    notify(stage)
    assert len(mailbox.mails) == 2


def test_a_denial_waits_for_no_result(api: str, stage: Stage, anna: Somebody, mailbox: Mailbox, clock: Clock) -> None:
    mail_channel(stage, anna, tells_outcomes=True)
    approval = asked_by_mail(stage, mailbox, clock)
    vote(stage, anna, approval, "deny")
    notify(stage)
    assert len(mailbox.mails) == 2
    assert "Denied by anna." in last(mailbox)
