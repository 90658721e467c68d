"""A message in Slack stays within Slack's limits, shows texts of others as nothing but text, and is edited later."""

from dataclasses import replace
from math import ceil
from typing import Any

import pytest
from outbox.fake_slack import ROOM, FakeSlack
from outbox.notices import DECIDED, NOTICE

from models.notices.slack_button import Button
from models.pure.text.visible import visible_lines
from models.session.approval.face import MESSAGE
from models.settings import settings
from workers.notifiers import Address, Gone, Retry, notifier_for
from workers.notifiers.slack import SlackNotifier

ADDRESS = Address("chan_1", NOTICE.workspace_id, None, ROOM)
HOSTILE = "<!channel> <@U0BOSS> <https://evil.example|Deny> & &lt;!here&gt; @everyone https://evil.example *bold* `x` ```\u202e"


def send(earlier: Any = None, address: Address = ADDRESS, **changes: Any) -> dict[str, str]:
    """Send `NOTICE` with these changes. Returns the receipt."""
    return SlackNotifier().send(address, replace(NOTICE, **changes), earlier)


def test_a_message_shows_the_call_with_two_buttons_and_a_link(slack: FakeSlack) -> None:
    send()
    message = slack.message
    assert message.text == "Run shell command: ls -l"
    for text in ("Agent wants to run a shell command", "```\\nls -l\\n```", "<!date^1795435200^", "the call is denied", NOTICE.url):
        assert text in message.shown
    for button in message.buttons.values():
        value = Button(NOTICE.workspace_id, NOTICE.approval_id, NOTICE.input_sha256)
        assert Button.of(button["value"]) == value
    assert list(message.buttons) == ["Allow", "Deny"]
    assert isinstance(notifier_for("slack"), SlackNotifier)


def test_an_approval_that_needs_a_sign_in_has_a_link_and_no_buttons(slack: FakeSlack) -> None:
    send(buttons=())
    assert slack.message.buttons == {}
    assert "Open in Assent> to decide." in slack.message.shown


def test_a_message_without_all_that_would_run_has_no_allow_button(slack: FakeSlack) -> None:
    send(buttons=("deny",), evidence="a" * 4000)
    assert list(slack.message.buttons) == ["Deny"]
    assert "Open in Assent> to read all that would run, and for other answers." in slack.message.shown


@pytest.mark.parametrize("character", ["a", "&", "\U0001f600", "`", "\n", "\u202e"])
def test_a_message_has_room_for_every_call_that_it_may_let_people_allow(slack: FakeSlack, character: str) -> None:
    send(evidence=character * (MESSAGE.characters // len(visible_lines(character))))
    [section] = [block for block in slack.message.blocks if block["type"] == "section"]
    assert "more characters" not in section["text"]["text"]
    assert section["expand"], "Slack folds no part of it"


def test_an_address_leads_to_a_conversation_or_to_direct_messages(slack: FakeSlack) -> None:
    person = replace(ADDRESS, text="U0ANNA")
    receipt = send(address=person)
    assert receipt["channel"] == "D0ANNA"
    assert send(receipt, person, **DECIDED) == receipt
    assert slack.message.edits == 1
    assert send()["channel"] == ROOM


def test_a_reminder_is_a_reply_and_the_buttons_stay(slack: FakeSlack) -> None:
    receipt = send()
    assert send(receipt, stage="reminded") == receipt
    assert [method for method, _ in slack.calls] == ["chat.postMessage", "chat.update", "chat.postMessage"]
    reply = slack.calls[-1][1]
    assert (reply["thread_ts"], reply["reply_broadcast"]) == (receipt["ts"], True)
    assert reply["text"] == "This still waits: Run shell command: ls -l"
    assert slack.messages[receipt["channel"], receipt["ts"]].buttons


@pytest.mark.parametrize("field", ["title", "sentence", "evidence", "agent", "outcome"])
def test_texts_of_others_mention_nobody_and_link_nowhere(slack: FakeSlack, field: str) -> None:
    send(**{field: HOSTILE})
    message = slack.message
    for text in (message.text, message.shown):
        assert "<!channel>" not in text
        assert "<@U0BOSS>" not in text
        assert "|Deny>" not in text
        assert "\u202e" not in text
    if field != "outcome":
        assert "&lt;!channel&gt;" in message.shown + message.text
    parsed = [part for block in message.blocks for part in texts(block) if part["type"] == "mrkdwn"]
    assert all(part["verbatim"] for part in parsed), "Slack looks for no links and names"
    assert all("everyone" not in part["text"] or field == "evidence" for part in parsed)
    for part in parsed:
        assert part["text"].count("```") in {0, 2}, "no text ends the code block"


def texts(block: dict[str, Any]) -> list[dict[str, Any]]:
    """The text objects of a block."""
    return [block["text"]] if "text" in block else [element for element in block["elements"] if "text" in element]


@pytest.mark.parametrize("text", ["a", "&", "\U0001f600", "`", "\n", "\u202e", "<!channel>"])
def test_a_text_of_any_length_is_cut_to_slack_s_limits(slack: FakeSlack, text: str) -> None:
    for length in (1, 149, 150, 151, 299, 301, 2999, 3001, 4000):
        long = text * ceil(length / len(text))
        send(title=long, sentence=long, evidence=long, agent=long, afterwards=long, code="123456")
        send(**{**DECIDED, "title": long, "sentence": long, "outcome": long})
    assert all(body["blocks"] for _, body in slack.calls), "nothing had to be sent again without blocks"


def test_a_cut_says_how_much_is_missing(slack: FakeSlack) -> None:
    send(evidence="a" * 4000)
    [code] = [block["text"]["text"] for block in slack.message.blocks if block["type"] == "section"]
    kept = code.count("a") - "characters".count("a")
    assert f"… ({4000 - kept} more characters)" in code
    assert kept > 2900


def test_a_message_whose_blocks_slack_refuses_is_sent_as_a_link(slack: FakeSlack) -> None:
    slack.errors = ["invalid_blocks"]
    send()
    assert slack.message.blocks == []
    assert NOTICE.url in slack.message.text


@pytest.mark.parametrize("code", ["channel_not_found", "not_in_channel", "is_archived", "user_disabled"])
def test_a_conversation_that_takes_no_messages_is_gone(slack: FakeSlack, code: str) -> None:
    slack.errors = [code]
    with pytest.raises(Gone):
        send()


@pytest.mark.parametrize("code", ["account_inactive", "token_revoked", "invalid_auth", "internal_error", "fatal_error"])
def test_a_fault_of_the_app_or_of_slack_disables_no_channel(slack: FakeSlack, code: str) -> None:
    slack.errors = [code]
    with pytest.raises(Retry, match=code):
        send()
    assert send(), "the next attempt succeeds"


def test_a_wrong_token_a_missing_one_and_a_dead_slack_are_tried_again(slack: FakeSlack, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value, message in (
        ("ASSENT_SLACK_BOT_TOKEN", "xoxb-wrong", "invalid_auth"),
        ("ASSENT_SLACK_API_URL", "http://127.0.0.1:1/", "not reachable"),
    ):
        monkeypatch.setenv(name, value)
        settings.cache_clear()
        with pytest.raises(Retry, match=message) as error:
            send()
        assert "xoxb" not in str(error.value)
    monkeypatch.delenv("ASSENT_SLACK_BOT_TOKEN")
    settings.cache_clear()
    with pytest.raises(Retry, match="ASSENT_SLACK_BOT_TOKEN is not set"):
        send()


def test_a_message_that_cannot_be_edited_is_followed_up(slack: FakeSlack) -> None:
    receipt = send()
    slack.errors = ["edit_window_closed"]
    assert send(receipt, **DECIDED) == receipt
    assert slack.calls[-1][1]["text"] == "Allowed by Anna: Run shell command: ls -l"


def test_a_message_that_somebody_deleted_is_sent_again_while_it_waits(slack: FakeSlack) -> None:
    receipt = send()
    slack.messages.clear()
    assert send(receipt, **DECIDED) == receipt
    assert slack.messages == {}
    again = send(receipt, stage="reminded")
    assert again != receipt
    assert (again["channel"], again["ts"]) in slack.messages
