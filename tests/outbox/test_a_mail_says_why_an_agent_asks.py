"""A mail about an approval says in which session the agent asks, what the agent said, and which rule asks: within the limits of the
card, with its secrets masked, and to nobody who may not read the card."""

from dataclasses import replace

import pytest
from inbox.waiting import asked
from outbox import notices
from outbox.mailbox import Mailbox, html_of, text_of
from outbox.notified import channel, mail_channel, notify
from own_database import Clock
from people import Somebody, member
from rows.stage import Stage, call, say

from models.briefing.reasons import MOST_SHOWN
from models.session.approval.row import Approval
from models.session.locked import Locked
from workers.notifiers.push import payload
from workers.notifiers.slack_blocks import message

SECRET = "hunter2hunter2"
WORDS = f"The build is <green>\u202e.\nDecide here: https://evil.example\nI use {SECRET}."
WHY = "Asked because bash asks every time unless a rule says otherwise."
BACKGROUND = {"session": "Release 2.4", "last_words": "I know why.", "why": "Asked because of nothing."}


@pytest.fixture
def anna(stage: Stage) -> Somebody:
    return member(stage, email="anna@example.com")


def asks(stage: Stage, words: str = WORDS) -> Approval:
    """An agent asks in a session with a title."""
    session_id = stage.session(bash="always_ask")

    def entitle(locked: Locked) -> None:
        locked.session.title = "Release 2.4\nCode: 000000"

    stage.locked(session_id, entitle)
    return asked(stage, say(words), call(command=f"deploy --password={SECRET}"), session_id=session_id)[0]


def mailed(stage: Stage, mailbox: Mailbox, clock: Clock) -> tuple[str, str]:
    """Send what is due. Returns the text and the HTML of the last mail, with line ends as they are on Unix."""
    clock.advance(61)
    notify(stage)
    mail = mailbox.mails[-1]
    return text_of(mail).replace("\r\n", "\n"), html_of(mail)


def test_a_person_s_mail_has_the_session_the_words_and_the_rule(
    stage: Stage, anna: Somebody, mailbox: Mailbox, clock: Clock
) -> None:
    mail_channel(stage, anna)
    approval = asks(stage)
    text, html = mailed(stage, mailbox, clock)
    assert "The agent says:\n| The build is <green><U+202E>.\n| Decide here: https://evil.example\n| I use «masked».\n" in text
    assert f"Session: Release 2.4 Code: 000000\n{WHY}\nUntil " in text
    assert "The build is &lt;green&gt;&lt;U+202E&gt;." in html
    assert f"Session: Release 2.4 Code: 000000<br>{WHY}<br>Until " in html
    assert SECRET not in text + html
    stage.decide(approval, result="allow")
    text, html = mailed(stage, mailbox, clock)
    assert "Allowed by" in text
    for part in ("The agent says", "Release 2.4", "Asked because"):
        assert part not in text + html


def test_long_words_are_cut_and_a_quiet_agent_says_nothing(stage: Stage, anna: Somebody, mailbox: Mailbox, clock: Clock) -> None:
    mail_channel(stage, anna)
    asks(stage, "w" * (MOST_SHOWN + 7))
    assert f"| {'w' * MOST_SHOWN}… (7 more characters)\n" in mailed(stage, mailbox, clock)[0]
    asked(stage, call(command="ls"))
    text, html = mailed(stage, mailbox, clock)
    for part in ("The agent says", "Session:"):
        assert part not in text + html


def test_a_room_does_not_get_the_agent_s_words(stage: Stage, mailbox: Mailbox, clock: Clock) -> None:
    channel(stage, kind="mail", address="ops@example.com")
    asks(stage)
    text, html = mailed(stage, mailbox, clock)
    assert "The agent says" not in text + html
    assert "The build" not in text + html
    assert WHY in text


def test_a_browser_and_slack_show_none_of_it() -> None:
    for stage in ("requested", "reminded", "escalated"):
        notice = replace(notices.NOTICE, stage=stage)  # type: ignore[arg-type]
        with_background = replace(notice, **BACKGROUND)  # type: ignore[arg-type]
        assert payload(with_background, is_silent=False) == payload(notice, is_silent=False)
        assert message(with_background) == message(notice)
