"""A call that waits to run: it runs as proposed or as a person edited it, a person answers in its place, or it is denied."""

import json

from models.flow.decide.edits import check_runs
from models.flow.decide.kinds.denial import deny
from models.flow.judge import votes
from models.flow.judge.grants import identity_of, session_policies
from models.pure.text import words
from models.session.approval.decision import Decision
from models.session.approval.grant import Grant
from models.session.approval.row import Approval
from models.session.locked import Locked
from models.session.tool_call import edits as call_edits
from models.session.tool_call.input import CallInput
from models.session.tool_call.result import Result, text
from models.session.tool_call.row import ToolCall


def carry_out(locked: Locked, approval: Approval, decision: Decision) -> str:
    """Deny the call, answer in its place, or let it run."""
    call = approval.call(locked.db)
    if decision.result == "deny":
        return deny(locked, approval, decision)
    if decision.respond:
        event_id = approval.close(locked, "answered", decision, goes_on=False)
        call.settle(locked, "answered", Result(text(words.answered_by_person()) + list(decision.respond)))
        return event_id
    check_runs(locked, approval)
    if approval.decided_sha256 is None:
        return _allow(locked, approval, call, decision)
    return _edit(locked, approval, call, decision)


def _allow(locked: Locked, approval: Approval, call: ToolCall, decision: Decision) -> str:
    if decision.scope != "once":
        voters = [list(vote.ballot) for vote in votes.for_choice(locked.db, approval, decision.stored)] or None
        identity = identity_of(session_policies(locked), locked.session, call, CallInput.of(locked.db, call))
        Grant.give(locked, approval, decision, identity, voters)
    event_id = approval.close(locked, "allowed", decision)
    call.release(locked)
    return event_id


def _edit(locked: Locked, approval: Approval, call: ToolCall, decision: Decision) -> str:
    edited, shown = json.loads(approval.decided_input or ""), approval.decided_shown or {}
    client_has_call = call.announced and call.kind == "self_hosted"
    event_id = approval.close(locked, "allowed", decision, goes_on=not client_has_call)
    if client_has_call:
        call_edits.replace(locked, call, edited, shown, approval.started_by)
    else:
        call_edits.edit(locked.db, call, edited, approval.started_by)
        call.release(locked, shown)
    return event_id
