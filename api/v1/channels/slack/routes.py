"""The route that Slack calls when somebody clicks a button of a message.

Slack signs each request with the app's signing secret. Slack waits three seconds for the response, so the route decides in one
transaction and sends no request. `deliver` edits the message afterwards, and tells the Slack user of a refusal.
"""

from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import parse_qs

from flask import Blueprint, Response, request

from api.door import limits, parsing
from api.door.errors import Denied
from api.v1.channels.slack.requests import BlockActions
from models.database import clock
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Conflict, Forbidden, Invalid, NotFound, Refusal
from models.flow.decide.deadlines import transact_in_time
from models.flow.decide.decisions import decide
from models.flow.lock import lock
from models.notices.notification import Notification
from models.notices.slack_button import RESULTS, Button, Result
from models.notices.slack_reply import Clicker, SlackReply
from models.people.member import Member
from models.people.names import Names
from models.people.principal import PersonPrincipal
from models.people.slack_user import SlackUser
from models.session.approval import sentences
from models.session.approval.decision import Decision
from models.session.approval.face import MESSAGE, require_whole
from models.session.approval.row import Approval
from models.settings import settings
from models.workspace.row import Workspace

slack = Blueprint("slack", __name__)

MAX_BYTES = 1_000_000
"""Most bytes of a request. A click's payload contains the whole message."""
_NOT_LINKED = "Nothing was decided: your Slack user is not linked to a person in Assent. Link it, then click again."


class _NotLinked(Refusal):
    """The Slack user is not linked to a person."""


@dataclass(frozen=True)
class Click:
    """A click of a Slack user on a button of Assent."""

    button: Button
    result: Result
    team_id: str
    slack_id: str
    name: str
    conversation_id: str


@slack.post("/v1/slack/interactions")
def interact() -> Response:
    """Make the decision that a Slack user has clicked. The response is empty, so Slack shows nothing."""
    if (click := _click(_signed_body())) is not None:
        _act(click)
    return Response(status=200)


def _signed_body() -> bytes:
    """Return the body of a request that Slack has signed within the last five minutes. Raises Denied."""
    secret = settings().slack_signing_secret
    if secret is None:
        raise Denied(404, "Slack is not set up on this server: set ASSENT_SLACK_SIGNING_SECRET.")
    from slack_sdk.signature import SignatureVerifier  # its import takes 0.3 s, which only servers with Slack need

    raw = parsing.raw_body(MAX_BYTES)
    signature, timestamp = (request.headers.get(f"x-slack-{name}") for name in ("signature", "request-timestamp"))
    try:
        is_good = SignatureVerifier(secret.get_secret_value()).is_valid(raw, timestamp, signature)
    except (TypeError, ValueError):  # no ASCII, no number, no UTF-8
        is_good = False
    if not is_good:
        raise Denied(
            401, "This request has no valid signature by Slack of the last five minutes. Check ASSENT_SLACK_SIGNING_SECRET."
        )
    return raw


def _click(raw: bytes) -> Click | None:
    """Return the click in a request's body. None for payloads of other types, and for buttons of others."""
    fields = parse_qs(raw.decode(), max_num_fields=10).get("payload", [])
    if len(fields) != 1:
        raise Invalid("payload", "must appear once, as a field of a form.")
    payload = parsing.json_object(fields[0].encode())
    if payload.get("type") != "block_actions":
        return None
    body = parsing.validated(BlockActions, payload)
    action = body.actions[0]
    button, result = Button.of(action.value), RESULTS.get(action.action_id)
    if button is None or result is None or not body.team_id:
        return None
    return Click(button, result, body.team_id, body.user.id, body.user_name, body.container.channel_id)


def _act(click: Click) -> None:
    """Make the decision, or store the reply that says why nothing was decided."""
    try:
        transact_in_time(click.button.workspace_id, partial(_decide, click=click))
    except Refusal as refusal:
        _refuse(click, refusal)


def _decide(db: Db, click: Click) -> None:
    """Decide as the person to whom the Slack user is linked. A repeated click changes nothing. Raises Refusal."""
    if db.get(Workspace, click.button.workspace_id) is None:
        return  # the button of another installation that had the same Slack app
    approval = db.get(Approval, click.button.approval_id)
    if approval is None:
        raise NotFound("approval", click.button.approval_id)
    person = _person(db, click)
    locked = lock(db, approval.session_id, person)
    approval = db.get_one(Approval, approval.id, lock=True)
    decision = Decision(click.result, expected_input_sha256=click.button.input_sha256)
    if approval.status != "pending":
        if approval.decided_by == str(person) and approval.decision == decision.stored:
            return
        by = Names.of(db, [approval.decided_by])[approval.decided_by]
        raise Conflict(f"Your click changed nothing. {sentences.outcome(approval, by, clock.now(db))}.")
    if approval.traits.why_no_click:
        raise Forbidden("This question needs more than a click: answer it in Assent.")
    if click.button.input_sha256 != approval.runs:
        raise Conflict("Nothing was decided: the input has changed since this message was sent. Look at it in Assent.")
    if click.result == "allow":
        require_whole(approval, MESSAGE)
    decide(locked, approval, decision)


def _person(db: Db, click: Click) -> PersonPrincipal:
    """Return the person to whom a Slack user is linked, with the person's present role. Raises Refusal."""
    row = SlackUser.of(db, click.team_id, click.slack_id, click.name)
    if row.person_id is None:
        raise _NotLinked(_NOT_LINKED)
    member = db.get(Member, db.workspace_id, row.person_id)
    if member is None or member.deactivated_at is not None:
        raise Forbidden("Nothing was decided: you have no role in this workspace of Assent any more. Ask an admin.")
    person = replace(member.principal(db, row.makers), through=f"slack:{row.id}")
    limits.take(person)
    return person


def _refuse(click: Click, refusal: Refusal) -> None:
    """Store the reply to a click that decided nothing. Hurries the edit of a message whose approval is no longer pending."""
    with transaction(click.button.workspace_id) as db:
        approval = db.get(Approval, click.button.approval_id)
        if approval is None or approval.status != "pending":
            Notification.hurry(db, click.button.approval_id)
        row = SlackUser.of(db, click.team_id, click.slack_id, click.name)
        clicker = Clicker(click.conversation_id, click.slack_id, row.id)
        SlackReply.put(db, clicker, str(refusal), offers_link=isinstance(refusal, _NotLinked))
