"""The beat schedule: one line per sweep. Sweeps are idempotent and bounded, so several beats do no harm."""

from typing import Any

from models.settings import settings

_EVERY = settings().sweep_seconds
_MINUTE = 60.0

BEAT: dict[str, dict[str, Any]] = {
    "send hints again for queued rows": {"task": "sweep.dispatch", "schedule": _EVERY},
    "take back the rows of dead workers": {"task": "sweep.rescue", "schedule": _EVERY},
    "expire overdue approvals": {"task": "sweep.expire_approvals", "schedule": _EVERY},
    "expire calls without a client's result": {"task": "sweep.expire_calls", "schedule": _EVERY},
    "remind people of approvals": {"task": "sweep.remind_approvers", "schedule": _EVERY},
    "release calls that a new grant covers": {"task": "sweep.release_granted", "schedule": _EVERY},
    "continue below spend limits": {"task": "sweep.resume_at_limits", "schedule": _MINUTE},
    "continue after a halt": {"task": "sweep.end_halts", "schedule": _EVERY},
    "seal the audit": {"task": "sweep.seal_audit", "schedule": settings().seal_seconds},
    "cut the audit behind its anchors": {"task": "sweep.cut_audit", "schedule": _MINUTE},
    "remove the files of deleted sessions": {"task": "tool.tidy", "schedule": 10 * _MINUTE},
    "remove the rows of deleted sessions": {"task": "sweep.remove_deleted", "schedule": _MINUTE},
    "find sessions that go on by nothing": {"task": "sweep.check_sessions", "schedule": _MINUTE / 2},
    "watch the waiting lists": {"task": "sweep.watch_waiting_lists", "schedule": _MINUTE / 2},
    "add up the metrics": {"task": "sweep.add_up_metrics", "schedule": 15.0},
    "add up usage, and uses of grants": {"task": "sweep.add_up_uses", "schedule": 15.0},
    "say that the sweeps run": {"task": "sweep.report", "schedule": _MINUTE},
    "delete old archived sessions": {"task": "sweep.delete_archived", "schedule": _MINUTE},
    "archive old sessions": {"task": "sweep.archive", "schedule": _MINUTE},
    "remove erased parts of the archive": {"task": "sweep.remove_parts", "schedule": _MINUTE},
    "check parts of the archive": {"task": "sweep.check_parts", "schedule": 10 * _MINUTE},
    "delete old rows": {"task": "sweep.delete_old", "schedule": _MINUTE},
}
