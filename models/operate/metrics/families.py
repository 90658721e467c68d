"""The metrics that Assent has, by their names in Prometheus."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Family:
    """A metric."""

    kind: Literal["gauge", "counter", "histogram"]
    help: str
    bounds: tuple[float, ...] = ()
    """A histogram's upper bounds, without infinity."""
    zeros: tuple[dict[str, str], ...] = ()
    """Labels with which a counter is 0 before its first count: Prometheus sees an increase only from one sample to the next."""
    of_workspaces: bool = False
    """True if each workspace has such a 0."""


OTHERS = "others"
"""The value of a label for all that have none of their own, as their number has no limit."""
DECISION_SECONDS = "assent_decision_seconds"
TOKENS = "gen_ai_client_token_usage"
APPROVALS = "assent_approvals_total"
COST = "assent_list_cost_cents_total"
DELIVERIES = "assent_deliveries_total"
UNTIL = "assent_metrics_counted_until_timestamp_seconds"
FLOODS = "assent_waiting_list_floods"
SEALED = "assent_audit_sealed_timestamp_seconds"

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86_400.0

FAMILIES: dict[str, Family] = {
    "assent_approvals_pending": Family(
        "gauge", "Approvals that wait for a decision, counted up to 10,000 of a workspace and 110,000 of all."
    ),
    "assent_approval_oldest_seconds": Family("gauge", "The time for which the first pending approval has waited."),
    "assent_overdue_approvals": Family(
        "gauge", "Pending approvals whose deadline has passed; more than 0 for a minute means that no sweep runs."
    ),
    FLOODS: Family("gauge", "People for whom more approvals wait than ASSENT_FLOOD_APPROVALS."),
    "assent_unknown_outcomes": Family("gauge", "Tool calls of which a person must say how they ended."),
    "assent_held_back_calls": Family("gauge", "Queued tool calls that no worker may run now; /readyz names the reasons."),
    "assent_queue_runnable": Family("gauge", "Rows that wait for a worker and are due, counted up to 10,000 of each queue."),
    "assent_queue_leased": Family("gauge", "Rows on which a worker works."),
    "assent_queue_oldest_seconds": Family("gauge", "The time for which the first due row has waited for a worker."),
    "assent_audit_alarm": Family("gauge", "1 while the workspace's audit is not sealed; /readyz names the reason."),
    "assent_audit_unsealed_seconds": Family("gauge", "The time since when acts of the audit may be unsealed."),
    SEALED: Family("gauge", "The time up to which all acts of the audit are sealed."),
    "assent_sweep_last_success_timestamp_seconds": Family("gauge", "The time at which the sweep last succeeded."),
    UNTIL: Family("gauge", "The time up to which the sums below have been added up."),
    APPROVALS: Family("counter", "Approvals that were closed, by their outcome and the way by which they were decided."),
    DECISION_SECONDS: Family(
        "histogram",
        "The time from the question to the decision of a person or an API key.",
        (5, 15, 30, _MINUTE, 120, 300, 600, 1800, _HOUR, 2 * _HOUR, 4 * _HOUR, 8 * _HOUR, _DAY, 3 * _DAY, 7 * _DAY),
    ),
    DELIVERIES: Family("counter", "Webhook deliveries that have ended.", zeros=({"result": "failed"},), of_workspaces=True),
    "assent_claims_failed_total": Family(
        "counter",
        "Failures of a task to claim its row.",
        zeros=tuple({"task": task} for task in ("turn.run", "tool.run", "deliver.send", "deliver.notify")),
    ),
    TOKENS: Family(
        "histogram",
        "Tokens of a request to a model, as its provider reported them.",
        tuple(float(4**exponent) for exponent in range(14)),
    ),
    COST: Family("counter", "What requests to models cost at list prices, in US cents."),
}
"""The metrics of `GET /metrics`, by name."""
