"""Decisions on approvals. The default is no: only an allow that comes in time releases a call."""

import json
from collections.abc import Callable
from dataclasses import replace

from models.audit.principal import Principal
from models.database.rows import Db
from models.errors import Conflict, Forbidden, Invalid
from models.flow.carry_on.next_step import carry_on, stop
from models.flow.decide.edits import check_runs, take_edit
from models.flow.decide.questions import check_answers, named
from models.flow.judge import votes
from models.flow.judge.grants import identity_of, session_policies
from models.flow.spend import limits
from models.flow.spend.budgets import raise_by
from models.people.delegation import Right
from models.pure.offer import Option
from models.pure.text import words
from models.session.approval.deadline import DeadlinePassed, overdue
from models.session.approval.decision import Decision
from models.session.approval.grant import Grant, is_exact, rule_for
from models.session.approval.row import Approval
from models.session.row import Session
from models.session.tool_call import edits as call_edits
from models.session.tool_call.input import CallInput
from models.session.tool_call.result import text
from models.session.tool_call.row import BUDGET, ToolCall


def decide(db: Db, session: Session, principal: Principal, approval: Approval, decision: Decision) -> str:
    """Decide an approval. The first decision wins. Returns the id of the `user.tool_confirmation` that stores it.

    A person's decision is a vote. While votes are missing, nothing else happens, and the id is that of the vote's event. An equal
    decision changes nothing and gets the same id. Raises Conflict for a different decision, or if the person was shown an input
    that would not run; Forbidden for a principal that may not decide, and for an answer that is not offered; DeadlinePassed;
    Invalid for a decision or an answer that does not fit.
    """
    decision = named(approval, decision)
    if approval.status != "pending":
        return _repeated(db, principal, approval, decision)
    right = check(db, session, principal, approval, decision)
    call = db.get_one(ToolCall, approval.tool_call_id)
    if decision.updated_input is not None and approval.kind in {"tool_call", BUDGET}:
        take_edit(db, session, principal, approval, call, decision.updated_input)
        _check_offered(approval, replace(decision, updated_input=None))
    if right is not None:
        _check_vote(db, session, approval, call, decision)
        agreed, event_id = votes.cast(db, session, principal, right, approval, decision)
        if agreed is None:
            return event_id
        decision = agreed
    event_id = _way(approval, decision)(db, session, principal, approval, call, decision)
    if (seq := next((event.seq for event in session.events if event.id == event_id), None)) is not None:
        session.stream_behind(principal, seq)
    if decision.interrupt:
        stop(db, session, principal, decision.deny_message)
    else:
        carry_on(db, session)
    return event_id


def check(db: Db, session: Session, principal: Principal, approval: Approval, decision: Decision) -> Right | None:
    """Return the right by which the principal decides a pending approval. None for an API key.

    Raises the errors of `decide`, but for those of the input that would run: `models.flow.decide.edits` has these.
    """
    if overdue(db, [approval], session.now):
        raise DeadlinePassed(approval)
    approval.tighten(db, session_policies(db, session).quorum(approval.tool, approval.level))
    right = votes.right_to_decide(db, session, principal, approval, decision)
    _check(approval, decision)
    _check_offered(approval, decision)
    return right


def _repeated(db: Db, principal: Principal, approval: Approval, decision: Decision) -> str:
    """Return the event id of the decision that this one repeats. Raises Conflict for a different decision."""
    seen = decision.expected_input_sha256 in {None, approval.input_sha256, approval.runs}
    same = approval.decision == decision.stored and approval.status not in {"expired", "cancelled"}
    if not same and approval.by_person:  # a vote that another person's vote made the decision
        winning = votes.for_choice(db, approval, approval.decision or {})
        same = any(vote.person_id == principal.id and vote.decision == decision.stored for vote in winning)
    if same and seen and approval.by_person and approval.event_id:
        return approval.event_id
    raise taken(approval)


def taken(approval: Approval) -> Conflict:
    """Return the conflict that names the winning decision."""
    winner = {"status": approval.status, "decision": approval.decision, "decided_by": approval.decided_by}
    return Conflict(f"Approval {approval.id} is already {approval.status}, by {approval.decided_by}.", winner)


def _check(approval: Approval, decision: Decision) -> None:
    """Raise Conflict if the person did not see the input that would run, Invalid if the decision does not fit the approval."""
    if decision.expected_input_sha256 not in {None, approval.runs}:
        raise Conflict(
            f"expected_input_sha256 is not the hash of what would run, which is {approval.runs}. Nothing was decided.",
            {"input_sha256": approval.runs},
        )
    blind = decision.expected_input_sha256 is None and decision.updated_input is None and decision.result == "allow"
    if blind and approval.decided_sha256 is not None:
        raise Conflict(
            "Another voter has edited the input. Look at decided_input, then vote with the hash of what you saw as "
            f"expected_input_sha256; it is {approval.runs} now. Nothing was decided.",
            {"input_sha256": approval.runs},
        )
    decision.check()
    if approval.kind == BUDGET:
        _check_budget(decision)
    if approval.kind == "question":
        check_answers(approval, decision)
    elif decision.answers is not None:
        raise Invalid(
            "answers", "is for a call that asks something; this one only wants to run: decide it by result allow or deny."
        )
    if approval.kind == "unknown_outcome":
        if decision.outcome is None and decision.result != "deny":
            raise Invalid(
                "result",
                "this call began and its outcome is unknown: decide its approval with outcome rerun, happened or give_up.",
            )
        if decision.outcome == "happened" and not decision.content:
            raise Invalid("result", "outcome happened needs the result, as text or as content blocks.")
    elif decision.outcome is not None:
        raise Invalid("outcome", "is for a call whose outcome is unknown; this one has not run: decide it by result allow or deny.")


def _check_offered(approval: Approval, decision: Decision) -> None:
    """Raise Forbidden if the approval does not offer this answer, Invalid for a faulty match. Denying is always offered."""
    if approval.kind != "tool_call" or decision.result != "allow":
        return
    edits = decision.updated_input is not None or approval.decided_sha256 is not None
    options: list[Option] = ["answer"] if decision.respond else ["edit"] if edits else ["once"] if decision.scope == "once" else []
    why = approval.offer.why_not(approval.tool, *options)
    if decision.scope != "once":
        exact = is_exact(rule_for(approval, decision.match))
        why = why or approval.offer.why_no_grant(approval.tool, decision.scope, exact=exact)
    if why:
        raise Forbidden(f"{why} Nothing was decided.")


def _check_budget(decision: Decision) -> None:
    """Raise Invalid for fields that only a tool's call can have."""
    if decision.respond:
        raise Invalid("respond", "is for a tool's call; this approval raises a budget: decide it by result allow or deny.")
    if decision.scope != "once":
        raise Invalid("scope", "is for a tool's call; this approval raises a budget: send once.")


Way = Callable[[Db, Session, Principal, Approval, ToolCall, Decision], str]


def _way(approval: Approval, decision: Decision) -> Way:
    """Return the function that carries out the decision and returns the id of its event."""
    if approval.kind == "unknown_outcome":
        return _settle_unknown
    if approval.kind == "question" and decision.result == "allow":
        return _go_on
    if decision.result == "deny":
        return _deny
    if approval.kind == BUDGET:
        return _raise_budget
    if decision.respond:
        return _answer
    return _allow if approval.decided_sha256 is None else _edit


def _deny(db: Db, session: Session, principal: Principal, approval: Approval, call: ToolCall, decision: Decision) -> str:
    event_id = approval.close(db, session, principal, "denied", decision)
    if approval.kind == "question":
        call.settle(db, session, "denied", text(words.question_denied(decision.deny_message)), is_error=True)
        return event_id
    if call.attempt:  # an earlier attempt began, and was lost before the grant behind it was
        call.settle(db, session, "cancelled", text(words.given_up(decision.deny_message)), is_error=True)
        return event_id
    say = words.ended_by_person if decision.interrupt else words.denied
    call.settle(db, session, "denied", text(say(decision.deny_message)), is_error=True)
    return event_id


def _raise_budget(db: Db, session: Session, principal: Principal, approval: Approval, call: ToolCall, decision: Decision) -> str:
    event_id = approval.close(db, session, principal, "allowed", decision)
    raise_cap = limits.let_spend if approval.tool == limits.TOOL else raise_by
    raise_cap(db, session, principal, approval, call, json.loads(approval.decided_input or approval.input))
    return event_id


def _allow(db: Db, session: Session, principal: Principal, approval: Approval, call: ToolCall, decision: Decision) -> str:
    check_runs(db, session, approval, call)
    if decision.scope != "once":
        voters = [list(vote.ballot) for vote in votes.for_choice(db, approval, decision.stored)] or None
        identity = identity_of(session_policies(db, session), session, call, CallInput.of(db, call.id))
        Grant.give(db, session, principal, approval, decision, identity, voters)
    event_id = approval.close(db, session, principal, "allowed", decision)
    call.release(db, session)
    return event_id


def _go_on(db: Db, session: Session, principal: Principal, approval: Approval, call: ToolCall, decision: Decision) -> str:
    event_id = approval.close(db, session, principal, "answered", decision)
    CallInput.of(db, call.id).answers = decision.answers
    call.release(db, session)
    return event_id


def _answer(db: Db, session: Session, principal: Principal, approval: Approval, call: ToolCall, decision: Decision) -> str:
    event_id = approval.close(db, session, principal, "answered", decision, goes_on=False)
    call.settle(db, session, "answered", text(words.answered()) + list(decision.respond), is_error=False)
    return event_id


def _edit(db: Db, session: Session, principal: Principal, approval: Approval, call: ToolCall, decision: Decision) -> str:
    check_runs(db, session, approval, call)
    edited, shown = json.loads(approval.decided_input or ""), approval.decided_shown or {}
    seen = call.announced and call.kind == "self_hosted"
    event_id = approval.close(db, session, principal, "allowed", decision, goes_on=not seen)
    if seen:
        call_edits.replace(db, session, call, edited, shown, approval.started_by)
    else:
        call_edits.edit(db, call, edited, approval.started_by)
        call.release(db, session, shown)
    return event_id


def _check_vote(db: Db, session: Session, approval: Approval, call: ToolCall, decision: Decision) -> None:
    """Raise the errors of the decision itself, so that a vote that could not take effect is not counted."""
    if decision.result != "allow" or approval.kind != "tool_call":
        return
    if decision.scope != "once":
        rule_for(approval, decision.match)
    if not decision.respond:
        check_runs(db, session, approval, call)


def _settle_unknown(db: Db, session: Session, principal: Principal, approval: Approval, call: ToolCall, decision: Decision) -> str:
    event_id = approval.close(db, session, principal, "answered", decision)
    if decision.outcome == "rerun":
        call.release(db, session, grants=None)
    elif decision.outcome == "happened":
        call.settle(db, session, "done", list(decision.content), is_error=False)
    else:
        call.settle(db, session, "done", text(words.given_up(decision.deny_message)), is_error=True)
    return event_id
