"""Escalations: when an approval's deadline passes, the next approvers get the approval, with a deadline of their own."""

from dataclasses import replace
from datetime import timedelta

from models.flow.judge.grants import session_policies
from models.pure.quorum import Escalation, Quorum
from models.session.approval import events as approval_events
from models.session.approval.row import Approval
from models.session.locked import Locked
from models.settings import settings


def escalate(locked: Locked, approval: Approval) -> None:
    """Pass an approval to its next level: more approvers, and a deadline from now on. Votes stay valid."""
    escalation, present = Escalation.of(approval.escalation or {}), Quorum.of(approval.quorum)
    quorum, seconds = escalation.quorums[approval.level], escalation.seconds[approval.level]
    quorum = quorum.and_also(replace(present, approvers=()))
    rules = session_policies(locked)
    remind = rules.remind_after_seconds(approval.tool) if rules.has(approval.tool) else settings().remind_after_seconds
    approval.level += 1
    approval.require(locked.db, quorum)
    approval.expires_at, approval.deadline_from = locked.now + timedelta(seconds=seconds), locked.now
    approval.remind_at = locked.now + timedelta(seconds=remind) if remind and remind < seconds else None
    event = approval_events.escalated(locked.db, approval, len(escalation.seconds))
    locked.emit(event)
    facts = {name: event[name] for name in ("level", "levels", "expires_at", "approvers", "required_approvals")}
    locked.note("approval.escalated", approval.id, **facts)
