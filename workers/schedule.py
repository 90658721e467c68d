"""The beat table: every promise about time, a line per sweep. Sweeps are idempotent and bounded, so several beats are harmless."""

from typing import Any

from models.settings import settings

_EVERY = settings().sweep_seconds
_HOUR = 3600.0

BEAT: dict[str, dict[str, Any]] = {
    "send again what was queued and not heard of": {"task": "sweep.dispatch", "schedule": _EVERY},
    "take back what a dead worker held": {"task": "sweep.rescue", "schedule": _EVERY},
    "expire what nobody decided in time": {"task": "sweep.expire_approvals", "schedule": _EVERY},
    "give up on clients that do not answer": {"task": "sweep.expire_calls", "schedule": _EVERY},
    "remind people of what waits": {"task": "sweep.remind_approvers", "schedule": _EVERY},
    "release what a new grant covers": {"task": "sweep.release_granted", "schedule": _EVERY},
    "go on after a halt": {"task": "sweep.end_halts", "schedule": _EVERY},
    "seal the audit": {"task": "sweep.seal_audit", "schedule": settings().seal_seconds},
    "remove the files of deleted sessions": {"task": "tool.tidy", "schedule": _HOUR},
    "forget answers kept for retries": {"task": "sweep.forget_answers", "schedule": _HOUR},
}
