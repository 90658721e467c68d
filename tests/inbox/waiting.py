"""Calls that wait for people, for the pages to show."""

from typing import Any

from rows.stage import Stage, call, entry
from rows.tasks import claim_delivery

from models.database.transactions import transaction
from models.flow.run.results import lose_call
from models.outbox.delivery import Delivery
from models.outbox.endpoint import Endpoint, NewEndpoint
from models.outbox.webhook_events import EVENTS
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall
from models.workspace import toolset


def asked(stage: Stage, *blocks: dict[str, Any], text: str = "Tidy up.", session_id: str = "", **session: Any) -> list[Approval]:
    """The approvals that wait after a turn of a session. By default a new session wants to run `ls -l`."""
    session_id = session_id or stage.session(**session)
    stage.message(session_id, text)
    stage.reply(session_id, *(blocks or [call(command="ls -l")]))
    return [row for row in stage.approvals(session_id) if row.status == "pending"]


def status(stage: Stage, approval: Approval) -> str:
    """The approval's status now."""
    return stage.get(Approval, approval.id).status


def unknown_outcome(stage: Stage) -> Approval:
    """The approval of a call with an unknown outcome: its worker died while the call ran."""
    [approval] = asked(stage)
    stage.decide(approval, result="allow")
    held = stage.claim_call(stage.get(ToolCall, approval.tool_call_id))
    assert held
    stage.worked(held, lambda locked: lose_call(locked, locked.db.get_one(ToolCall, held.id)))
    return stage.approvals(held.session_id)[-1]


def asks_back(stage: Stage, questions: dict[str, Any]) -> Approval:
    """The approval of a toolset's call that asks questions before it goes on."""
    toolset.announce({"orders": [entry("refund")]})
    [approval] = asked(stage, call("mcp__shop__refund", n=5), servers={"shop": "assent:orders"})
    stage.decide(approval, result="allow")
    held = stage.claim_call(stage.get(ToolCall, approval.tool_call_id))
    assert held
    stage.finish_call(held, question={"requests": questions, "state": None})
    return stage.approvals(held.session_id)[-1]


def endpoint_with_deliveries(stage: Stage, url: str = "https://hooks.example.com/assent", **texts: str) -> str:
    """The id of an endpoint with three deliveries: one has arrived, one has failed once, one waits."""
    with transaction(stage.workspace_id) as db:
        values = {"name": "Ops", "description": "What ops read.", **texts}
        endpoint, _secret = Endpoint.create(db, stage.principal, NewEndpoint(url=url, enabled_events=EVENTS, **values))
        rows = [Delivery.test(db, endpoint, event_type) for event_type in ("session.created", "session.idled", "agent.created")]
    for row, status, error in ((rows[0], 204, None), (rows[1], 503, "The response was 503.")):
        with transaction(stage.workspace_id) as db:
            claimed = claim_delivery(db, row.id)
            assert claimed
            claimed.finish(db, status=status, error=error, seconds=0.04)
    return endpoint.id
