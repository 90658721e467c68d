"""Slack: one message per approval and conversation, posted when people are asked and edited afterwards."""

import http.client
from typing import Any, cast

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from models.notices.notice import Notice
from models.notices.notification import Receipt
from models.settings import settings
from workers.notifiers import Address, Gone, Retry, slack_blocks

SECONDS = 10
"""Time limit of one request."""
_QUIETLY = {"unfurl_links": False, "unfurl_media": False}

_GONE = {
    "channel_not_found": "Slack has no such conversation, or it is private and the app is not in it: invite the app.",
    "not_in_channel": "The Slack app is not in this conversation: invite the app, then enable the channel.",
    "is_archived": "The Slack conversation is archived.",
    "user_not_found": "Slack has no such user.",
    "user_disabled": "The Slack user is deactivated.",
    "cannot_dm_bot": "This Slack user is a bot.",
    "messages_tab_disabled": "The Slack app takes no direct messages: enable its messages tab.",
    "restricted_action": "A setting of the Slack workspace forbids the app to post there.",
}
"""Errors of one address, with the remedy for its owner. Errors of the whole app, such as `token_revoked`, disable no channel."""
_TOO_MUCH = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long"})
_NOT_EDITABLE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})


class SlackError(Exception):
    """Slack refused a call. `code` is Slack's code of the error."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(f"Slack responded with {code}.")


class SlackNotifier:
    """Sends to a conversation (`C...`, `G...`) or to a user's direct messages (`U...`)."""

    def send(self, address: Address, notice: Notice, earlier: Receipt | None) -> Receipt:
        """Post the message, or edit the earlier one. A reminder is also a reply, because Slack tells nobody of an edit."""
        try:
            if earlier is None:
                return _post(address.text, notice)
            receipt = _edit(earlier, notice)
            if notice.stage in {"reminded", "escalated"}:
                words = "This still waits" if notice.stage == "reminded" else "This was escalated"
                _reply(receipt, f"{words}: {slack_blocks.fallback(notice)}")
            return receipt
        except SlackError as error:
            if error.code in _GONE:
                raise Gone(_GONE[error.code]) from None
            raise Retry(str(error)) from None


def call(method: str, **arguments: Any) -> dict[str, Any]:
    """Call a method of Slack's Web API. Raises Retry, SlackError."""
    token = settings().slack_bot_token
    if token is None:
        raise Retry("Slack is not set up: ASSENT_SLACK_BOT_TOKEN is not set.")
    client = WebClient(token.get_secret_value(), base_url=settings().slack_api_url, timeout=SECONDS, retry_handlers=[])
    try:
        return cast("dict[str, Any]", client.api_call(method, json=arguments).data)
    except SlackApiError as error:
        response = error.response
        if response.status_code == 429:
            waits = {name.lower(): value for name, value in response.headers.items()}
            seconds = str(waits.get("retry-after", ""))
            raise Retry("Slack is limiting the rate of messages.", float(seconds) if seconds.isdecimal() else None) from None
        if response.status_code != 200:
            raise Retry(f"Slack responded with {response.status_code}.") from None
        raise SlackError(str(response.get("error", "with an unknown error"))[:100]) from None
    except (OSError, http.client.HTTPException) as error:
        raise Retry(f"Slack is not reachable: {type(error).__name__}.") from None


def _post(conversation: str, notice: Notice) -> Receipt:
    response = _write("chat.postMessage", notice, channel=conversation, **_QUIETLY)
    return {"channel": response["channel"], "ts": response["ts"]}


def _edit(earlier: Receipt, notice: Notice) -> Receipt:
    """Edit the message and return the receipt. Replies to a message that cannot be edited.

    Posts a deleted message again, unless the notice has an outcome.
    """
    try:
        _write("chat.update", notice, **earlier)
    except SlackError as error:
        if error.code not in _NOT_EDITABLE:
            raise
        if error.code != "message_not_found":
            _reply(earlier, slack_blocks.fallback(notice))
        elif not notice.outcome:
            return _post(earlier["channel"], notice)
    return earlier


def _write(method: str, notice: Notice, **arguments: Any) -> dict[str, Any]:
    """Call the method with the notice, or with only its title and link if Slack finds the notice too long."""
    text, blocks = slack_blocks.message(notice)
    try:
        return call(method, text=text, blocks=blocks, **arguments)
    except SlackError as error:
        if error.code not in _TOO_MUCH:
            raise
        return call(method, text=f"{text}\n{slack_blocks.link(notice)}", blocks=[], **arguments)


def _reply(receipt: Receipt, text: str) -> None:
    """Reply to the message, and show the reply in the conversation too."""
    place = {"channel": receipt["channel"], "thread_ts": receipt["ts"], "reply_broadcast": True}
    call("chat.postMessage", text=text, mrkdwn=False, **place, **_QUIETLY)
