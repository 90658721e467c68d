"""A turn's claim, checkpoint, retry and failure."""

from dataclasses import replace
from typing import Any

from models.audit.principal import Principal, system
from models.audit.text import Text
from models.database.rows import Db
from models.flow.grants import judge
from models.flow.next_step import carry_on, rest
from models.pure import words
from models.pure.next_move import Finish, after_reply
from models.pure.policy import Verdict
from models.session import approval_events
from models.session.approval import Approval
from models.session.call_result import text
from models.session.proposal import Proposal
from models.session.session import NO_USAGE, Session
from models.session.turn import Turn
from models.settings import settings
from models.workspace.halt import is_halted


def claim_turn(db: Db, session: Session, turn_id: str, worker: str) -> Turn | None:
    """Claim a queued turn that is due. Returns None if it is claimed, cancelled, not due or gone, or the workspace is halted."""
    turn = db.get(Turn, turn_id)
    if turn is None or turn.session_id != session.id or turn.status != "queued" or turn.due_at > session.now or is_halted(db):
        return None
    session.run_again(db)
    turn.claim(db, session, worker)
    session.note(_actor(session), "turn.started", turn.id, attempt=turn.attempt, worker=worker)
    return turn


def checkpoint(
    db: Db,
    session: Session,
    turn: Turn,
    *,
    content: list[dict[str, Any]],
    stop_reason: str,
    stop_details: dict[str, Any] | None,
    usage: dict[str, int],
    proposals: list[Proposal],
    message_id: str,
) -> None:
    """Store a reply and its calls in one transaction. `message_id` is the id under which its text was already streamed.

    `proposals` are its calls in order, with verdicts. Raises Stale, and stores nothing, if the turn ended or was taken meanwhile.
    """
    move = after_reply(stop_reason, content, turn.count, session.max_turns)
    if stop_reason != "tool_use":
        content = [block for block in content if block["type"] != "tool_use"]
        proposals = []
    turn.checkpoint(db, session, content, stop_reason, usage)
    session.calls = []
    session.count(usage)
    _say(db, session, content, message_id)
    turn.end_span(db, session, usage, is_error=False)
    if isinstance(move, Finish):
        for position, proposal in enumerate(proposals):
            _refuse(db, session, turn, position, proposal, words.turn_limit(session.max_turns))
        _finish(db, session, move, stop_details)
        return
    for position, (proposal, verdict) in enumerate(zip(proposals, judge(db, session, proposals), strict=True)):
        _propose(db, session, turn, position, proposal, verdict)
    session.emit(db, "session.usage", {"usage": session.usage})
    carry_on(db, session)


def fail_turn(
    db: Db,
    session: Session,
    turn: Turn,
    *,
    kind: str,
    message: str,
    retryable: bool,
    retry_after: float | None = None,
    leave_out: bool = False,
    server: str | None = None,
) -> None:
    """Retry the turn after an error of the model, or end the run if a retry is useless or too many failed.

    `retry_after`: seconds that the model asked to wait. `leave_out`: the prompt is at fault, so later turns leave it out. `server`:
    the MCP server that failed, if the model did not.
    """
    turn.end_span(db, session, NO_USAGE, is_error=True)
    again = retryable and turn.attempt < settings().model_attempts
    status = "retrying" if again else "exhausted" if retryable else "terminal"
    error = {"type": kind, "message": message, "retry_status": {"type": status}}
    session.emit(db, "session.error", {"error": error | ({"mcp_server_name": server} if server else {})})
    session.note(_actor(session), "turn.failed", turn.id, attempt=turn.attempt, error=kind, retry=again)
    if again:
        turn.retry(db, session, retry_after=retry_after)
        session.become("rescheduling")
        session.emit(db, "session.status_rescheduled", {})
        return
    turn.fail(db, session, "unacceptable" if leave_out else None)
    rest(db, session, {"type": "retries_exhausted"})


def rescue_turn(db: Db, session: Session, turn_id: str) -> None:
    """Retry a turn whose worker let the lease run out: at once, and at most `crash_attempts` times in all."""
    turn = db.get(Turn, turn_id)
    if turn is None or turn.status != "running" or turn.lease_until is None or turn.lease_until > session.now:
        return
    session.note(_actor(session), "turn.lost", turn.id, attempt=turn.attempt, worker=turn.worker)
    turn.end_span(db, session, NO_USAGE, is_error=True)
    if turn.losses + 1 < settings().crash_attempts:
        turn.retry(db, session, lost=True)
        return
    message = f"The worker was lost {turn.losses + 1} times at this turn. It is not tried again."
    session.emit(
        db,
        "session.error",
        {"error": {"type": "unknown_error", "message": message, "retry_status": {"type": "exhausted"}}},
    )
    turn.fail(db, session)
    rest(db, session, {"type": "retries_exhausted"})


def _say(db: Db, session: Session, content: list[dict[str, Any]], message_id: str) -> None:
    if any(block["type"] in {"thinking", "redacted_thinking"} for block in content):
        session.emit(db, "agent.thinking", {})
    texts = [{"type": "text", "text": block["text"]} for block in content if block["type"] == "text"]
    if texts:
        session.emit(db, "agent.message", {"content": texts}, id=message_id)


def _propose(db: Db, session: Session, turn: Turn, position: int, proposal: Proposal, verdict: Verdict) -> None:
    if proposal.problem is not None or proposal.asking is None:
        _refuse(db, session, turn, position, proposal, proposal.problem or words.unknown_tool(proposal.name))
        return
    unasked = verdict.effect == "ask" and session.on_ask == "deny"
    if unasked:
        verdict = replace(verdict, effect="deny", rule=words.unasked(verdict.rule))
    theirs = proposal.kind == "custom" or (proposal.kind == "builtin" and session.self_hosted)
    status = {"allow": "queued", "ask": "asked", "deny": "denied"}[verdict.effect]
    if theirs and status == "queued":
        status = "held" if is_halted(db) else "with_client"
    call = proposal.call(db, session, turn, position, verdict, status)
    if status == "denied":
        message = words.cannot_approve() if unasked else words.denied_by_policy(verdict.rule)
        call.born_settled(db, session, text(message))
        call.put(db, session)
        return
    approval = Approval.ask(db, session, call, proposal.asking) if status == "asked" else None
    if status != "held" and not (call.kind == "custom" and approval):
        call.announce(db, session, approval_events.in_call_event(approval) if approval else None)
    call.put(db, session)
    if approval:
        approval.put(db, session, _actor(session))
    else:
        session.note(_actor(session), "tool_call.allowed", call.id, rule=Text(call.rule), input_sha256=call.input_sha256)


def _refuse(db: Db, session: Session, turn: Turn, position: int, proposal: Proposal, why: str) -> None:
    verdict = Verdict("deny", "not asked: it cannot be run")
    call = proposal.call(db, session, turn, position, verdict, "refused")
    call.born_settled(db, session, text(why))
    call.put(db, session)


def _finish(db: Db, session: Session, move: Finish, stop_details: dict[str, Any] | None) -> None:
    if move.error:
        kind, message = move.error
        session.emit(db, "session.error", {"error": {"type": kind, "message": message, "retry_status": {"type": "terminal"}}})
    session.emit(db, "session.usage", {"usage": session.usage})
    more = {"stop_details": stop_details} if stop_details and move.stop_reason == "refusal" else {}
    rest(db, session, {"type": move.stop_reason}, **more)


def _actor(session: Session) -> Principal:
    return system("turn.run", session.workspace_id)
