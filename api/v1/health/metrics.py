"""Metrics for operators, in the text format of Prometheus: the figures of the API key's workspace."""

from dataclasses import asdict

from flask import Blueprint, Response
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from api.door import auth
from api.door.routes import METRICS, Door, opens
from models.operate.gauges import gauges

metrics = Blueprint("metrics", __name__)

_MEANINGS = {
    "queued_turns": "Turns that wait for a worker.",
    "running_turns": "Turns that a worker has claimed.",
    "oldest_queued_turn_seconds": "The time for which the first due turn has waited for a worker.",
    "queued_calls": "Tool calls that wait for a worker.",
    "running_calls": "Tool calls that a worker has claimed.",
    "held_back_calls": "Queued tool calls that no worker may run now; /readyz names the reasons.",
    "oldest_queued_call_seconds": "The time for which the first due tool call has waited for a worker.",
    "pending_approvals": "Approvals that wait for a decision, counted up to 10,000.",
    "oldest_pending_approval_seconds": "The time for which the first pending approval has waited.",
    "overdue_approvals": "Pending approvals whose deadline has passed; more than 0 for a minute means that no sweep runs.",
    "audit_alarm": "1 while the audit is not sealed; /readyz names the reason.",
}


@metrics.get("/metrics")
@opens(Door(scopes=("admin",), media_type=METRICS))
def show() -> Response:
    """Show the workspace's queues, approvals and alarms in the text format of Prometheus.

    Each scrape reads the database. Configure the API key as the scraper's bearer token.
    """
    principal = auth.authenticate("admin")
    registry = CollectorRegistry()
    for name, value in asdict(gauges(principal.workspace_id)).items():
        gauge = Gauge(f"assent_{name}", _MEANINGS[name], ["workspace"], registry=registry)
        gauge.labels(principal.workspace_id).set(value)
    return Response(generate_latest(registry), content_type=f"{METRICS}; version=0.0.4; charset=utf-8")
