"""A person or an admin sends a channel a test message, which is tried once, and reads in plain words why it failed."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from doors.served import good, key
from outbox.fake_slack import ROOM, FakeSlack
from outbox.mailbox import Mailbox
from outbox.notified import channel, mail_channel, notifications, notify
from outbox.receiver import Receiver
from people import Visitor, member
from rows.stage import Stage

from models.database import transactions
from models.database.transactions import Outbox, transaction
from models.notices.channel import Channel
from models.notices.notification import Notification

Test = Callable[[Channel], dict[str, Any]]


@pytest.fixture
def admin(stage: Stage, api: str) -> Iterator[httpx2.Client]:
    """An API key that manages the workspace."""
    with httpx2.Client(base_url=api, headers={"x-api-key": key(stage)}, trust_env=False, timeout=20) as client:
        yield client


@pytest.fixture
def test(stage: Stage, admin: httpx2.Client) -> Test:
    """Sends a test over HTTP, does what a worker does, and returns the result."""

    def send(row: Channel) -> dict[str, Any]:
        path = f"/v1/channels/{row.id}/test"
        assert good(admin.post(path, json={}))["status"] == "queued"
        notify(stage)
        return good(admin.get(path))

    return send


def test_a_service_gets_it_also_in_quiet_hours(stage: Stage, ops: Receiver, test: Test) -> None:
    row = channel(stage, quiet_from="00:00", quiet_until="23:59")
    for _ in range(2):
        result = test(row)
        assert (result["status"], result["error"]) == ("done", "")
    assert len(ops.requests) == 2
    assert "This is a test: messages about approvals arrive here." in ops.requests[0].body
    assert stage.get(Channel, row.id).sent_at


def test_mail_and_slack_get_it(stage: Stage, mailbox: Mailbox, slack: FakeSlack) -> None:
    anna = member(stage)
    for row in (mail_channel(stage, anna), channel(stage, kind="slack", address=ROOM)):
        with transaction(stage.workspace_id) as db:
            Notification.test(db, Channel.find(db, row.id))
    notify(stage)
    assert [row.status for row in notifications(stage)] == ["done", "done"]
    assert [mail["subject"] for mail in mailbox.mails] == ["Test message"]
    assert "Open Assent" in str(mailbox.mails[0])
    assert (slack.message.text, slack.message.buttons) == ("Test message", {})


def test_a_failed_test_is_not_retried_and_says_why_in_plain_words(stage: Stage, ops: Receiver, test: Test) -> None:
    ops.status = 500
    result = test(channel(stage))
    assert (result["status"], result["error"]) == ("failed", "ops did not take the message.")
    notify(stage)
    assert len(ops.requests) == 1


def test_a_channel_that_takes_nothing_is_not_tested(stage: Stage, ops: Receiver, admin: httpx2.Client) -> None:
    off, busy = channel(stage), channel(stage)
    default = channel(stage, kind="mail", address="", for_everyone=True)
    with transaction(stage.workspace_id) as db:
        Channel.find(db, off.id).change(db, stage.principal, {"state": "disabled"})
    assert admin.get(f"/v1/channels/{busy.id}/test").status_code == 404, "no test yet"
    good(admin.post(f"/v1/channels/{busy.id}/test", json={}))
    for row, words in ((off, "is off: enable it first"), (busy, "is on its way"), (default, "the default itself")):
        response = admin.post(f"/v1/channels/{row.id}/test", json={})
        assert response.status_code == 409
        assert words in response.json()["error"]["message"]
    with transaction(stage.workspace_id) as db:
        Channel.find(db, busy.id).change(db, stage.principal, {"state": "disabled"})
    notify(stage)
    assert ops.requests == []
    assert good(admin.get(f"/v1/channels/{busy.id}/test"))["status"] == "cancelled"


def test_a_person_presses_the_button_and_reads_the_result(
    stage: Stage, api: str, ops: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna = member(stage)
    row, page = channel(stage, anna), "/inbox/channels"
    with anna.client(api) as cookies, Visitor(api, cookies=dict(cookies.cookies)) as browser:
        assert "data-stream" not in browser.get(page).text
        assert browser.submit(page, f"{page}/{row.id}", test="yes").status_code == 303
        waiting = browser.get(page).text
        assert "A test message is on its way." in waiting
        assert 'data-stream="/inbox/stream"' in waiting, "the page follows"
        assert browser.submit(page, f"{page}/{row.id}", test="yes").status_code == 409
        ops.status = 500
        published: list[Outbox] = []
        monkeypatch.setattr(transactions, "_send", published.append)
        notify(stage)
        assert any(stage.workspace_id in outbox.workspaces for outbox in published), "open pages look again"
        shown = browser.get(page).text
        assert shown.count("ops did not take the message.") == 1
        ops.status = 200
        browser.submit(page, f"{page}/{row.id}", test="yes")
        notify(stage)
        assert "The test message arrived" in browser.get(page).text
