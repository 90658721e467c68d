"""The events that webhooks can report, and which of them a session's own event causes."""

from collections.abc import Iterator
from typing import Any

THREAD_EVENTS = ("session.thread_created", "session.thread_idled", "session.thread_terminated")
"""Events of the threads of a session that has several."""

SDK_EVENTS = (
    *("session.created", "session.updated", "session.archived", "session.deleted"),
    *("session.running", "session.idled", "session.requires_action", "session.budget_reached"),
    *("session.status_run_started", "session.status_idled", "session.status_rescheduled", "session.status_terminated"),
    *THREAD_EVENTS,
    *("agent.created", "agent.updated", "agent.archived"),
    *("environment.created", "environment.updated", "environment.archived", "environment.deleted"),
)
"""Events that the SDK's `client.beta.webhooks.unwrap` knows and Assent sends."""

OWN_EVENTS = ("approval.requested", "approval.decided", "approval.expired", "approval.reminded", "approval.escalated")
"""Events of Assent's own. An endpoint gets them only if it names them."""

EVENTS = SDK_EVENTS + OWN_EVENTS

_CAUSED = {
    "session.status_running": ("session.running", "session.status_run_started"),
    "session.status_idle": ("session.idled", "session.status_idled"),
    "session.status_rescheduled": ("session.status_rescheduled",),
    "session.status_terminated": ("session.status_terminated", "session.archived"),
    "session.updated": ("session.updated",),
    "session.thread_created": ("session.thread_created",),
    "session.thread_status_idle": ("session.thread_idled",),
    "session.thread_status_terminated": ("session.thread_terminated",),
} | {event: (event,) for event in OWN_EVENTS}


def caused_by(kind: str, body: dict[str, Any], session_id: str) -> Iterator[tuple[str, str, str | None]]:
    """Yield the webhook events that an event of a session causes: type, subject's id, and the session's id if it is another."""
    for event in _CAUSED.get(kind, ()):
        if event in OWN_EVENTS:
            yield event, body["approval_id"], session_id
        elif event in THREAD_EVENTS:
            yield event, body["session_thread_id"], session_id
        else:
            yield event, session_id, None
    if kind == "session.status_idle" and (reason := body["stop_reason"]["type"]) in {"requires_action", "budget_reached"}:
        yield f"session.{reason}", session_id, None
