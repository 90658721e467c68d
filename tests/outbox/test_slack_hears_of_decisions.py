"""A question in Slack becomes an edited message with the outcome, in a conversation or in direct messages."""

from typing import Any

from outbox.fake_slack import ROOM, FakeSlack, click, press
from outbox.notified import changes, channel, channels, notifications, notify
from outbox.receiver import Receiver
from own_database import Clock
from people import Somebody
from rows.stage import Stage, say
from rows.voting import ask, vote

from models.database.transactions import transaction
from models.notices.channel import Channel
from models.notices.notification import ATTEMPTS
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall
from models.settings import settings

SLACK: dict[str, Any] = {"kind": "slack", "address": ROOM}


def test_a_click_decides_and_takes_the_buttons_away(api: str, stage: Stage, slack: FakeSlack, anna: Somebody) -> None:
    channel(stage, **SLACK)
    approval = ask(stage, stage.session(), command="rm -rf build")
    notify(stage)
    message = slack.message
    assert (message.channel, list(message.buttons)) == (ROOM, ["Allow", "Deny"])
    assert "rm -rf build" in message.shown
    assert f"{settings().public_url}/inbox/approvals/{approval.id}" in message.shown
    assert click(api, message, "Allow").status_code == 200
    assert stage.get(Approval, approval.id).decided_by == f"user:{anna.person_id}"
    notify(stage)
    assert (message.buttons, message.edits) == ({}, 1)
    assert "Allowed by anna" in message.shown
    assert message.text.startswith("Allowed by anna")


def test_a_message_has_no_button_that_a_tool_leaves_out_and_says_why(
    api: str, stage: Stage, slack: FakeSlack, anna: Somebody
) -> None:
    channel(stage, **SLACK)
    session = stage.session()
    first = ask(stage, session)
    notify(stage)
    message = slack.message
    stage.change_policies(approval={"options": ["session"]})
    assert click(api, message, "Allow").status_code == 200
    assert stage.get(Approval, first.id).status == "pending", "a button of an earlier message does not allow either"
    slack.messages.clear()
    ask(stage, stage.session())
    notify(stage)
    assert list(slack.message.buttons) == ["Deny"]
    assert "Not offered by the approval settings of the workspace: allow once" in slack.message.shown


def test_a_decision_elsewhere_and_a_deadline_edit_the_message_too(
    stage: Stage, slack: FakeSlack, anna: Somebody, clock: Clock
) -> None:
    channel(stage, **SLACK)
    decided = ask(stage, stage.session())
    notify(stage)
    vote(stage, anna, decided, "deny")
    notify(stage)
    assert "Denied by anna" in slack.message.shown
    assert slack.message.buttons == {}
    slack.messages.clear()
    late = ask(stage, stage.session())
    notify(stage)
    clock.advance(settings().approval_seconds + 1)
    stage.expire(late.session_id)
    notify(stage)
    assert "Expired: nobody decided in time" in slack.message.shown
    assert slack.message.buttons == {}


def test_a_person_is_told_in_direct_messages(api: str, stage: Stage, slack: FakeSlack, anna: Somebody) -> None:
    channel(stage, anna, kind="slack", address="U0ANNA")
    approval = ask(stage, stage.session())
    notify(stage)
    assert slack.message.channel == "D0ANNA"
    click(api, slack.message, "Deny")
    notify(stage)
    assert stage.get(Approval, approval.id).status == "denied"
    assert "Denied by anna" in slack.message.shown


def test_a_message_waits_for_slack_s_rate_limit(stage: Stage, slack: FakeSlack, clock: Clock) -> None:
    channel(stage, **SLACK)
    ask(stage, stage.session())
    slack.limited_for = 120
    notify(stage)
    notify(stage)
    assert slack.messages == {}
    clock.advance(119)
    notify(stage)
    assert slack.messages == {}
    clock.advance(2)
    notify(stage)
    assert slack.message.buttons


def test_a_conversation_without_the_app_disables_the_channel_with_the_remedy(stage: Stage, slack: FakeSlack) -> None:
    channel(stage, **SLACK)
    slack.errors = ["not_in_channel"]
    ask(stage, stage.session())
    notify(stage)
    [row] = channels(stage)
    assert row.state == "disabled"
    assert "invite the app" in row.disabled_reason


def test_a_revoked_token_disables_nothing_and_a_stale_click_edits_the_message_at_last(
    api: str, stage: Stage, slack: FakeSlack, anna: Somebody, clock: Clock
) -> None:
    channel(stage, **SLACK)
    approval = ask(stage, stage.session())
    notify(stage)
    message = slack.message
    button = message.buttons["Allow"]
    vote(stage, anna, approval)
    slack.errors = ["token_revoked"] * ATTEMPTS
    for _ in range(ATTEMPTS):
        notify(stage)
        clock.advance(3700)
    [row] = notifications(stage)
    assert (row.status, row.error) == ("failed", "Slack responded with token_revoked.")
    with transaction(stage.workspace_id) as db:
        assert Channel.find(db, row.channel_id).state == "enabled"
    assert message.buttons
    press(api, message, button | {"action_id": "assent_deny"})
    notify(stage)
    assert message.buttons == {}
    assert "Allowed by anna" in message.shown


def test_the_message_tells_what_came_of_the_call_but_not_its_output(stage: Stage, slack: FakeSlack, anna: Somebody) -> None:
    channel(stage, **SLACK)
    approval = ask(stage, stage.session(), command="make test")
    notify(stage)
    vote(stage, anna, approval)
    notify(stage)
    assert "The call" not in slack.message.shown
    held = stage.claim_call(stage.get(ToolCall, approval.tool_call_id))
    assert held
    stage.finish_call(held, content=[say("stdout:\nthe customers of Ada\n"), say("exit code: 0\ndirectory: .")])
    notify(stage)
    assert slack.message.edits == 2
    assert "Allowed by anna" in slack.message.shown
    assert "The call is done" in slack.message.shown
    assert "Ada" not in slack.message.shown


def test_only_a_message_that_can_be_edited_hears_of_the_result(
    stage: Stage, slack: FakeSlack, anna: Somebody, ops: Receiver
) -> None:
    channel(stage)
    approval = ask(stage, stage.session(), command="make test")
    notify(stage)
    vote(stage, anna, approval)
    notify(stage)
    before = len(ops.requests)
    held = stage.claim_call(stage.get(ToolCall, approval.tool_call_id))
    assert held
    stage.finish_call(held, "ok")
    assert changes(stage) == []
    notify(stage)
    assert len(ops.requests) == before
