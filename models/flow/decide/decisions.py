"""Decisions on approvals. The default is no: only an allow that comes in time releases a call."""

from dataclasses import replace

from models.audit.principal import Principal
from models.database.rows import Db
from models.errors import Conflict, Forbidden
from models.flow.carry_on.next_step import carry_on_with, one_step, stop
from models.flow.decide.edits import check_runs, take_edit
from models.flow.decide.kinds import CARRY_OUT
from models.flow.decide.questions import with_keys
from models.flow.judge import votes
from models.flow.judge.grants import session_policies
from models.people.delegation import Right
from models.pure.offer import Option
from models.session.approval.deadline import DeadlinePassed, overdue
from models.session.approval.decision import Decision
from models.session.approval.grant import is_exact, rules_for
from models.session.approval.row import Approval
from models.session.locked import Locked


def decide(locked: Locked, approval: Approval, decision: Decision) -> str:
    """Decide an approval. The first decision wins. Returns the id of the `user.tool_confirmation` that stores it.

    A person's decision is a vote. While votes are missing, nothing else happens, and the id is that of the vote's event. An equal
    decision changes nothing and gets the same id. Raises Conflict for a different decision, or if the person was shown an input
    that would not run; Forbidden for a principal that may not decide, and for an option that is not offered; DeadlinePassed;
    Invalid for a decision or an answer that does not fit.
    """
    locked, decision = locked.at(approval), with_keys(approval, decision)
    if approval.status != "pending":
        return _repeated(locked.db, locked.actor, approval, decision)
    right = check(locked, approval, decision)
    if decision.updated_input is not None and approval.traits.takes_edits:
        take_edit(locked, approval, decision.updated_input)
        _check_offered(approval, replace(decision, updated_input=None))
    if right is not None:
        _check_vote(locked, approval, decision)
        agreed, event_id = votes.cast(locked, right, approval, decision)
        if agreed is None:
            return event_id
        decision = agreed
    event_id = CARRY_OUT[approval.kind](locked, approval, decision)
    if (seq := next((event.seq for event in locked.events if event.id == event_id), None)) is not None:
        locked.session.stream_behind(locked.actor, seq)
    with one_step(locked):
        if decision.interrupt:
            stop(locked, decision.deny_message)
        carry_on_with(locked, approval)
    return event_id


def check(locked: Locked, approval: Approval, decision: Decision) -> Right | None:
    """Return the right by which the principal decides a pending approval. None for an API key.

    Raises the errors of `decide`, but for those of the input that would run: `models.flow.decide.edits` has these.
    """
    if overdue(locked.db, [approval], locked.now):
        raise DeadlinePassed(approval)
    approval.tighten(locked.db, session_policies(locked).quorum(approval.tool, approval.level))
    right = votes.right_to_decide(locked, approval, decision)
    _check(approval, decision)
    _check_offered(approval, decision)
    return right


def _repeated(db: Db, principal: Principal, approval: Approval, decision: Decision) -> str:
    """Return the event id of the decision that this one repeats. Raises Conflict for a different decision."""
    hash_fits = decision.expected_input_sha256 in {None, approval.input_sha256, approval.runs}
    same = approval.decision == decision.stored and approval.status not in {"expired", "cancelled"}
    if not same and approval.by_person:  # a vote that another person's vote made the decision
        winning = votes.for_choice(db, approval, approval.decision or {})
        same = any(vote.person_id == principal.id and vote.decision == decision.stored for vote in winning)
    if same and hash_fits and approval.by_person and approval.event_id:
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
    approval.traits.check(decision, approval.questions or {})


def _check_offered(approval: Approval, decision: Decision) -> None:
    """Raise Forbidden if the approval does not offer this option, Invalid for a faulty match. Denying is always offered."""
    if not approval.traits.asks_to_run or decision.result != "allow":
        return
    edits = decision.updated_input is not None or approval.decided_sha256 is not None
    options: list[Option] = ["answer"] if decision.respond else ["edit"] if edits else ["once"] if decision.scope == "once" else []
    why = approval.offer.why_not(approval.tool, *options)
    if decision.scope != "once":
        for rule in rules_for(approval, decision):
            why = why or approval.offer.why_no_grant(approval.tool, decision.scope, exact=is_exact(rule))
    if why:
        raise Forbidden(f"{why} Nothing was decided.")


def _check_vote(locked: Locked, approval: Approval, decision: Decision) -> None:
    """Raise the errors of the decision itself, so that a vote that could not take effect is not counted."""
    if decision.result != "allow" or not approval.traits.asks_to_run:
        return
    if decision.scope != "once":
        rules_for(approval, decision)
    if not decision.respond:
        check_runs(locked, approval)
