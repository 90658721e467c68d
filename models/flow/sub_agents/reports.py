"""Reports: when the run of a sub-agent ends, its coordinator gets its last text, and why it ended."""

from collections.abc import Mapping
from typing import Any

from models.flow.sub_agents.messages import deliver
from models.pure.text import words
from models.session.locked import Locked


def report(locked: Locked, stop_reason: Mapping[str, Any]) -> None:
    """Send the report of the thread at hand, whose run ends, to its coordinator. No-op for a session's own thread.

    The report starts the coordinator's next turn, unless only people wake the coordinator, or the sub-agent reached a cap, which
    the coordinator would reach as well: then the coordinator's next run knows the report.
    """
    thread = locked.thread
    parent = next((each for each in locked.threads if each.id == thread.parent_id), None)
    if parent is None or parent.status == "terminated":
        return
    last_text = _last_text(locked) or words.no_text()
    why = _why(locked, stop_reason)
    text = f"{words.ended_early(why)}\n\n{last_text}" if why else last_text
    at_cap = stop_reason["type"] == "budget_reached"
    deliver(locked, parent, text, wakes=not at_cap and not only_people_wake(parent.stop_reason))


def only_people_wake(stop_reason: Mapping[str, Any] | None) -> bool:
    """True if messages of other threads start no run after one with this stop reason: somebody ended it, or it reached a cap."""
    reason = stop_reason or {}
    return "ended_by" in reason or reason.get("type") == "budget_reached"


def _last_text(locked: Locked) -> str | None:
    """Return the text of the last reply in the thread's run that has one, or None."""
    thread = locked.thread
    first = thread.turn_number - thread.turn_count + 1
    rows = locked.db.rows(_TEXTS, session=thread.session_id, thread=thread.id, first=first)
    for (content,) in rows:
        texts = [block["text"] for block in content if block["type"] == "text" and block["text"].strip()]
        if texts:
            return "\n".join(texts)
    return None


_TEXTS = """
    SELECT content FROM turn JOIN reply ON turn_id = turn.id
    WHERE session_id = %(session)s AND thread_id = %(thread)s AND number >= %(first)s ORDER BY number DESC LIMIT 5
"""


def _why(locked: Locked, stop_reason: Mapping[str, Any]) -> str | None:
    """Return why the thread's run ended early; None if it ended by itself."""
    if "ended_by" in stop_reason:
        return words.ended_by_somebody(stop_reason.get("message"))
    errors = [
        event.body["error"] for event in locked.events if event.type == "session.error" and event.thread_id == locked.thread.id
    ]
    if errors and errors[-1]["retry_status"]["type"] != "retrying":
        message: str = errors[-1]["message"]
        return message
    return _WHY.get(stop_reason["type"])


_WHY = {
    "refusal": words.refused_by_model(),
    "budget_reached": words.cap_reached(),
    "retries_exhausted": words.retries_exhausted(),
}
