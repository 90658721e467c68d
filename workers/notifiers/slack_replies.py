"""deliver.slack_reply: tell a Slack user why a click decided nothing. Nobody else sees the reply."""

import logging

from models.database.transactions import transaction
from models.notices.slack_reply import SlackReply
from models.people.slack_user import LINK_LASTS, SlackUser, link_of
from workers.celery import app
from workers.notifiers import Retry
from workers.notifiers.slack_blocks import escape
from workers.outcome import FAILURES, NOT_CLAIMED, SENT, Outcome, conclude, failed

log = logging.getLogger(__name__)


@app.task(name="deliver.slack_reply", throws=FAILURES)
def send(reply_id: str, workspace_id: str) -> str:
    """Send a reply once. An unlinked Slack user gets a new one-time link, which nobody else sees.

    Returns the outcome, or raises it for Flower.
    """
    from workers.notifiers.slack import SlackError, call  # loads Slack's SDK, which other workers than `deliver` do not need

    with transaction(workspace_id) as db:
        reply = SlackReply.take(db, reply_id)
        if reply is None:
            return NOT_CLAIMED
        secret = SlackUser.new_link(db, reply.slack_user_id) if reply.offers_link else None
    text = escape(reply.text)
    if secret:
        minutes = int(LINK_LASTS.total_seconds() // 60)
        text += f"\n<{link_of(secret)}|Link your Slack user>: sign in to Assent there and confirm."
        text += f" Good once, for {minutes} minutes. Do not pass this link on."
    outcome: Outcome = SENT
    try:
        call("chat.postEphemeral", channel=reply.conversation_id, user=reply.slack_id, text=text)
    except (Retry, SlackError) as error:
        log.warning("a reply to a click in Slack was not sent: %s", error)
        outcome = failed("Slack took no reply")
    return conclude(outcome)
