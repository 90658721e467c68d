"""A turn's claim, checkpoint, retry and failure."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

from models.audit.principal import Principal, system
from models.audit.text import Text
from models.database.exchange import Statement
from models.database.rows import Db
from models.flow.grants import judge
from models.flow.next_step import carry_on, rest
from models.pure import words
from models.pure.canonical import digest, spelled
from models.pure.next_move import Finish, after_reply
from models.pure.policy import Verdict
from models.session.approval import Approval
from models.session.proposal import Proposal
from models.session.session import NO_USAGE, Session
from models.session.tool_call import text
from models.session.turn import Turn
from models.settings import settings
from models.workspace.halt import is_halted

Messages = list[dict[str, Any]]

_TURNS = """
    SELECT id, content, stop_reason FROM turn LEFT JOIN reply ON turn_id = id WHERE session_id = %(session)s ORDER BY number
"""
_PROMPTS = """
    SELECT turn_id, body -> 'content' FROM event WHERE session_id = %(session)s AND turn_id IS NOT NULL ORDER BY seq
"""
_CALLS = """
    SELECT call.turn_id, call.provider_id, result.content, call.is_error, edited.input FROM tool_call call
    LEFT JOIN call_result result ON result.tool_call_id = call.id
    LEFT JOIN call_input edited ON edited.tool_call_id = call.id AND call.status = 'done' AND edited.proposed_input IS NOT NULL
    WHERE call.session_id = %(session)s AND call.status <> 'replaced' ORDER BY call.turn_id, call.position
"""
"""With the input that ran, where a person changed it."""
_EDITED_AS_SHOWN = "SELECT decided_shown FROM approval WHERE session_id = %(session)s AND decided_sha256 = %(sha256)s LIMIT 1"
_TOLD = 2_000
"""Characters of it that the model is told."""


def claim_turn(db: Db, session: Session, turn_id: str, worker: str) -> Turn | None:
    """Take a queued turn that is due. None if it is not to be had: claimed, cancelled, not due, halted, or gone."""
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
    """Keep a reply and what it asks for, in one transaction. `message_id` is the id that its text was already pushed under.

    `proposals` are its calls, judged, in order. Raises Stale if the turn was ended or taken meanwhile: then nothing is kept.
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
    told: float | None = None,
    leave_out: bool = False,
    server: str | None = None,
) -> None:
    """The model gave an error: again later, or, when that makes no sense any more, the run ends.

    `leave_out`: the prompt itself is at fault, and must not spoil the messages to come. `server`: the MCP server that failed, where
    it was not the model.
    """
    turn.end_span(db, session, NO_USAGE, is_error=True)
    again = retryable and turn.attempt < settings().model_attempts
    status = "retrying" if again else "exhausted" if retryable else "terminal"
    error = {"type": kind, "message": message, "retry_status": {"type": status}}
    session.emit(db, "session.error", {"error": error | ({"mcp_server_name": server} if server else {})})
    session.note(_actor(session), "turn.failed", turn.id, attempt=turn.attempt, error=kind, retry=again)
    if again:
        turn.retry(db, session, told=told)
        session.become("rescheduling")
        session.emit(db, "session.status_rescheduled", {})
        return
    turn.fail(db, session, "unacceptable" if leave_out else None)
    rest(db, session, {"type": "retries_exhausted"})


def rescue_turn(db: Db, session: Session, turn_id: str) -> None:
    """A turn whose lease ran out: its worker is gone. Again at once, at most `crash_attempts` times in all."""
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


def history(db: Db, session_id: str) -> Messages:
    """The messages for the model: prompts, replies and results in order, roles alternating, no approval machinery.

    A turn that the model refused or could not accept is left out with its prompt: continued, it would be refused again.
    """
    turns, messages_read, calls = db.read(*(Statement(sql, {"session": session_id}) for sql in (_TURNS, _PROMPTS, _CALLS)))
    prompts: dict[str, list[dict[str, Any]]] = {}
    for turn_id, content in messages_read:
        prompts.setdefault(turn_id, []).extend(content)
    # A turn may have failed over a result of the calls before it.
    spoiled = {before for (before, *_), (*_, after) in pairwise(turns) if after == "unacceptable"}
    results: dict[str, list[dict[str, Any]]] = {}
    for turn_id, provider_id, result, is_error, edited in calls:
        content = _acceptable(result or [], spoiled=turn_id in spoiled or bool(is_error))
        if edited is not None:
            content = text(words.edited(_edit(db, session_id, edited))) + content
        if is_error and not content:
            content = text(words.failed_silently())
        block = {"type": "tool_result", "tool_use_id": provider_id, "content": content, "is_error": bool(is_error)}
        results.setdefault(turn_id, []).append(block)
    messages: Messages = []
    for turn_id, reply, stop_reason in turns:
        if stop_reason in {"refusal", "unacceptable"}:
            continue
        _append(messages, "user", prompts.get(turn_id, []))
        _append(messages, "assistant", [b for b in reply or [] if b["type"] != "text" or b["text"].strip()])
        _append(messages, "user", results.get(turn_id, []))
    return messages


def _edit(db: Db, session_id: str, edited: dict[str, Any]) -> str:
    """An edited input as the model is told it: without secrets, which a person may have put there, and not at great length."""
    shown = db.value(_EDITED_AS_SHOWN, session=session_id, sha256=digest(edited))
    whole = spelled(shown or {})
    return whole if len(whole) <= _TOLD else f"{whole[:_TOLD]}... ({len(whole) - _TOLD} more characters)"


def _acceptable(content: list[dict[str, Any]], *, spoiled: bool) -> list[dict[str, Any]]:
    """A result without what the model's API refuses: blank texts, and pictures and the like that it has refused once."""
    kept = []
    for block in content:
        if block["type"] == "text":
            kept += [block] if block["text"].strip() else []
        else:
            kept += text(words.left_out(block["type"])) if spoiled else [block]
    return kept


def _append(messages: Messages, role: str, content: list[dict[str, Any]]) -> None:
    if not content:
        return
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"] = messages[-1]["content"] + content
    else:
        messages.append({"role": role, "content": content})


def _say(db: Db, session: Session, content: list[dict[str, Any]], message_id: str) -> None:
    if any(block["type"] in {"thinking", "redacted_thinking"} for block in content):
        session.emit(db, "agent.thinking", {})
    said = [{"type": "text", "text": block["text"]} for block in content if block["type"] == "text"]
    if said:
        session.emit(db, "agent.message", {"content": said}, id=message_id)


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
        call.announce(db, session, approval.told if approval else None)
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
