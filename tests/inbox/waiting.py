"""Calls that wait for people, for the pages to show."""

from typing import Any

from rows.stage import Stage, call, entry

from models import flow
from models.database.transactions import transaction
from models.outbox import claims
from models.outbox.delivery import Delivery
from models.outbox.endpoint import Endpoint
from models.pure.webhook_events import EVENTS
from models.session.approval import Approval
from models.session.tool_call import ToolCall
from models.workspace import toolset


def asked(stage: Stage, *blocks: dict[str, Any], text: str = "Tidy up.", session_id: str = "", **session: Any) -> list[Approval]:
    """The approvals of a session's turn; by default of a new session that wants to run `ls -l`."""
    session_id = session_id or stage.session(**session)
    stage.message(session_id, text)
    stage.reply(session_id, *(blocks or [call(command="ls -l")]))
    return [row for row in stage.approvals(session_id) if row.status == "pending"]


def status(stage: Stage, approval: Approval) -> str:
    """The approval's status now."""
    return stage.get(Approval, approval.id).status


def began(stage: Stage) -> Approval:
    """The approval of a call whose worker died in the middle: nobody knows the outcome."""
    [approval] = asked(stage)
    stage.decide(approval, result="allow")
    taken = stage.claim_call(stage.get(ToolCall, approval.tool_call_id))
    assert taken
    stage.locked(taken.session_id, lambda db, session: flow.lose_call(db, session, db.get_one(ToolCall, taken.id)))
    return stage.approvals(taken.session_id)[-1]


def asks_back(stage: Stage, questions: dict[str, Any]) -> Approval:
    """The approval of a toolset's call that wants to know something before it goes on."""
    toolset.announce({"orders": [entry("refund")]})
    [approval] = asked(stage, call("mcp__shop__refund", n=5), servers={"shop": "assent:orders"})
    stage.decide(approval, result="allow")
    taken = stage.claim_call(stage.get(ToolCall, approval.tool_call_id))
    assert taken
    stage.finish_call(taken, question={"requests": questions, "state": None})
    return stage.approvals(taken.session_id)[-1]


def delivered(stage: Stage, url: str = "https://hooks.example.com/assent", **texts: str) -> str:
    """The id of an endpoint with a delivery of each kind: one that arrived, one that failed once, one that waits."""
    with transaction(stage.workspace_id) as db:
        named = {"name": "Ops", "description": "What ops read.", **texts}
        endpoint, _secret = Endpoint.create(db, stage.principal, url=url, enabled_events=EVENTS, **named)
        rows = [Delivery.test(db, endpoint, event_type) for event_type in ("session.created", "session.idled", "agent.created")]
    for row, status, error in ((rows[0], 204, None), (rows[1], 503, "The response was 503.")):
        with transaction(stage.workspace_id) as db:
            claimed = claims.claim(db, row.id)
            assert claimed
            claimed.delivery.finish(db, status=status, error=error, seconds=0.04)
    return endpoint.id
