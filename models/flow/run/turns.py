"""A turn's claim, checkpoint, retry and failure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from models.audit.principal import system
from models.audit.text import Text
from models.database.exchange import Statement
from models.database.query import Query
from models.database.rows import Db
from models.flow.carry_on.next_move import Calls, Finish, after_reply
from models.flow.carry_on.next_step import carry_on, end_unreported, rest, stop_all
from models.flow.judge.grants import judge_proposals
from models.flow.lock import lock_and_read
from models.flow.spend import budgets, limits
from models.pure.policy import Verdict
from models.pure.pricing.charges import Charge
from models.pure.pricing.usage import NOTHING
from models.pure.text import words
from models.session.approval import events as approval_events
from models.session.approval.row import Approval
from models.session.event.fields import Text as TextBlock
from models.session.event.of_session import AgentMessage, Ended, StatusRescheduled
from models.session.hints import hint_next
from models.session.locked import Locked, lock_alone
from models.session.spending import standing as spend_standing
from models.session.tool_call.proposal import Proposal
from models.session.tool_call.result import Result
from models.session.tool_call.row import ToolCall
from models.session.turn.events import AgentThinking, ServerFault, SessionError, SessionFault
from models.session.turn.reply import Reply
from models.session.turn.row import Served, Turn
from models.session.turn.usage import TurnUsage
from models.settings import settings
from models.workspace.halt import OPEN_HALT, is_halted


@dataclass(frozen=True)
class ReplyToStore:
    """A model's reply to a turn, as the worker read it."""

    content: list[dict[str, Any]]
    stop_reason: str
    stop_details: dict[str, Any] | None
    charges: Sequence[Charge]
    """The charges of the attempt's requests; the last one is the reply's."""
    proposals: list[Proposal]
    """The reply's calls in order."""
    message_id: str
    """The id under which the reply's text was already streamed."""
    served: Served | None = None
    """The model that replied."""


@dataclass(frozen=True)
class TurnFailure:
    """An error that ended a turn's attempt."""

    kind: str
    """The type of the error for clients."""
    message: str
    retryable: bool
    """False if a retry is useless."""
    retry_after: float | None = None
    """Seconds that the model asked to wait."""
    leave_out: bool = False
    """True if the prompt is at fault, so that later turns leave it out."""
    server: str | None = None
    """The MCP server that failed, if no model did."""
    charges: Sequence[Charge] = ()
    """The charges of the attempt's requests; none if no model began to reply."""
    served: Served | None = None
    """The model that had begun to reply."""
    shorten: bool = False
    """True if the request was too long for the model, so that it is sent again once older turns are folded."""


class Step(NamedTuple):
    """What a stored reply led to."""

    calls: list[ToolCall]
    """The reply's calls."""
    error: str | None
    """The type of the `session.error` with which the reply ended the run."""


@dataclass(frozen=True)
class QueuedTurn:
    """A queued turn that is due and has read its messages, with the rows that were read under the lock of its session."""

    locked: Locked
    turn: Turn
    spend_limits: list[Any]
    rows: list[list[Any]]
    """The rows of each query that the worker added."""

    def claim(self, worker: str, charge: Charge, task: str | None = None) -> Turn | None:
        """Claim the turn. `charge` is the highest charge that its request may cause.

        Returns None if the budget or a spend limit does not allow the request.
        """
        locked, turn = self.locked, self.turn
        standings = spend_standing.lock_limits(locked, self.spend_limits)
        if not budgets.admits(locked, turn, charge):
            budgets.reach(locked, turn, charge)
            return None
        if limits.hold_back(locked, turn, charge, standings):
            return None
        locked.run_again()
        turn.claim(locked, worker, charge, task)
        spend_standing.reserve(locked, standings, charge)
        locked.note("turn.started", turn.id, attempt=turn.attempt, worker=worker)
        return turn


def queued_turn(db: Db, session_id: str, turn_id: str, *queries: Query[Any] | Statement) -> QueuedTurn | None:
    """Lock the session, and return a queued turn that is due, for a worker to quote and to claim. It has read its messages.

    The rows of `queries` are read in the same round trip. Returns None if the turn is claimed, cancelled, not due, gone or of
    another session, or if the workspace is halted. Raises NotFound if there is no such session.
    """
    reads = (Turn.by_id(turn_id), *OPEN_HALT, *spend_standing.applying(session_id, turn_id), *queries)
    locked, (turns, _, halts, _, spend_limits, *rows) = lock_and_read(db, session_id, system(Turn.TASK, db.workspace_id), *reads)
    hint_next(db, Turn.TASK)  # in the place of this turn, which leaves the queue now or left it before
    if halts or not turns or turns[0].session_id != session_id or turns[0].status != "queued" or turns[0].due_at > locked.now:
        return None
    [turn] = turns
    locked = locked.at(turn)
    turn.read_queue(locked, turn.id)
    return QueuedTurn(locked, turn, spend_limits, rows)


def checkpoint(locked: Locked, turn: Turn, reply: ReplyToStore) -> Step:
    """Store a reply and its calls in one transaction. Returns the step.

    Raises Stale, and stores nothing, if the turn ended or another worker took it.
    """
    locked = locked.at(turn)
    thread = locked.thread
    content, stop_reason, proposals = reply.content, reply.stop_reason, reply.proposals
    max_turns = _max_turns(locked)
    move = after_reply(stop_reason, content, turn.count, max_turns)
    if isinstance(move, Calls) and _is_broken_again(locked, turn, content):
        move = Finish("retries_exhausted", ("model_request_failed_error", words.broken_twice()))
    if stop_reason != "tool_use":
        content = [block for block in content if block["type"] != "tool_use"]
        proposals = []
    content = _with_our_ids(content, proposals)
    verdicts = judge_proposals(locked, proposals) if isinstance(move, Calls) else []
    if reply.served:
        turn.serve(locked, reply.served)
    usage = reply.charges[-1].usage
    turn.checkpoint(locked, content, stop_reason)
    calls: list[ToolCall] = []
    locked.changes.calls[thread.id] = calls
    thread.context_tokens = usage.context_tokens + usage.output_tokens
    thread.context_at = locked.now
    TurnUsage.record(locked, turn, reply.charges)
    _say(locked, content, reply.message_id)
    turn.end_span(locked, usage, is_error=False)
    if isinstance(move, Finish):
        for position, proposal in enumerate(proposals):
            why = proposal.problem if move.stop_reason == "retries_exhausted" else words.turn_limit(max_turns)
            _refuse(locked, turn, position, proposal, why or words.not_run_beside_broken())
        _finish(locked, move, reply.stop_details)
        return Step(calls, move.error[0] if move.error else None)
    for position, (proposal, verdict) in enumerate(zip(proposals, verdicts, strict=True)):
        _propose(locked, turn, position, proposal, verdict)
    locked.report_usage()
    carry_on(locked)
    return Step(calls, None)


def fail_turn(locked: Locked, turn: Turn, failure: TurnFailure) -> None:
    """Retry the turn after an error of the model, or end the run if a retry is useless or too many failed."""
    locked, charges = locked.at(turn), failure.charges
    if failure.served:
        turn.serve(locked, failure.served)
    TurnUsage.record(locked, turn, charges)
    turn.end_span(locked, charges[-1].usage if charges else NOTHING, is_error=True)
    refusals = int(turn.overlong_after is not None)
    again = failure.shorten or (failure.retryable and turn.attempt - turn.folds - refusals < settings().model_attempts)
    status = "retrying" if again else "exhausted" if failure.retryable else "terminal"
    _emit_error(locked, failure.kind, failure.message, status, failure.server)
    locked.note("turn.failed", turn.id, attempt=turn.attempt, error=failure.kind, retry=again)
    if again:
        if failure.shorten:
            turn.shorten(locked)
        else:
            turn.retry(locked, retry_after=failure.retry_after)
        if locked.become("rescheduling"):
            locked.tell(StatusRescheduled(type="session.status_rescheduled"))
        return
    turn.fail(locked, "unacceptable" if failure.leave_out else None)
    locked.report_usage()
    rest(locked, {"type": "retries_exhausted"})


def rescue_turn(locked: Locked, turn_id: str) -> None:
    """Retry a turn whose worker let the lease run out: at once, and at most `crash_attempts` times in all."""
    turn = locked.db.get(Turn, turn_id)
    if turn is None or not turn.is_lapsed(locked.now):
        return
    locked = locked.at(turn)
    locked.note("turn.lost", turn.id, attempt=turn.attempt, worker=turn.worker)
    end_unreported(locked, turn)
    if turn.losses + 1 < settings().crash_attempts:
        turn.lose(locked)
        return
    message = f"The worker was lost {turn.losses + 1} times at this turn. It is not tried again."
    _emit_error(locked, "unknown_error", message, "exhausted")
    turn.fail(locked)
    locked.report_usage()
    rest(locked, {"type": "retries_exhausted"})


def give_up_turn(db: Db, session_id: str, turn_id: str, why: str) -> None:
    """End a turn that no worker can claim, or that cannot be taken back, and end its run.

    Reads the rows of the session and of the turn alone. Later turns leave its messages out, because these may be unreadable.
    """
    locked = lock_alone(db, session_id, system(Turn.TASK, db.workspace_id))
    turn = db.get(Turn, turn_id)
    if turn is None or turn.session_id != locked.session.id or not turn.is_unheld(locked.now):
        return
    locked = locked.at(turn)
    if turn.status == "queued":
        turn.read_queue(locked, turn.id)
    else:
        turn.end_span(locked, NOTHING, is_error=True)
    _emit_error(locked, "unknown_error", words.turn_given_up(why), "exhausted")
    locked.note("turn.given_up", turn.id, attempt=turn.attempt)
    turn.fail(locked, "unacceptable")
    rest(locked, {"type": "retries_exhausted"})


def give_up_run(db: Db, session_id: str, why: str) -> None:
    """End a run whose turn or call cannot be given up alone, as an interrupt does."""
    locked = lock_alone(db, session_id, system(Turn.TASK, db.workspace_id))
    if locked.session.status not in {"idle", "terminated"}:
        _emit_error(locked, "unknown_error", words.run_given_up(why), "exhausted")
        stop_all(locked.each, words.run_given_up(why))


def correct_usage(locked: Locked, turn: Turn, charges: Sequence[Charge]) -> None:
    """Replace the estimate for an attempt that was ended from outside by its worker's charges. Idempotent.

    Emits no event, because nothing may follow the end of a run. `turn` is the turn as the worker claimed it.
    """
    TurnUsage.correct(locked.at(turn), turn, charges)


def _is_broken_again(locked: Locked, turn: Turn, content: list[dict[str, Any]]) -> bool:
    """True if this reply and the reply before it in the run have an unreadable call. The model was told of the first one."""
    is_broken = any(block.get("problem") for block in content)
    return is_broken and turn.count > 1 and Reply.had_a_problem(locked.db, locked.thread, turn.number - 1)


def _with_our_ids(content: list[dict[str, Any]], proposals: list[Proposal]) -> list[dict[str, Any]]:
    """Return the reply with the ids of its calls' rows. The provider's own ids are in `provider_data`."""
    ids = iter(proposals)
    return [{**block, "id": next(ids).id} if block["type"] == "tool_use" else block for block in content]


def _max_turns(locked: Locked) -> int:
    """Return the turns that the thread may take for one message. A sub-agent may have its own limit."""
    own: int | None = locked.agent.get("max_turns") if locked.thread.parent_id else None
    return own or locked.session.max_turns


def _say(locked: Locked, content: list[dict[str, Any]], message_id: str) -> None:
    if any(block["type"] in {"thinking", "redacted_thinking"} for block in content):
        locked.emit(AgentThinking(type="agent.thinking"))
    texts = [TextBlock(type="text", text=block["text"]) for block in content if block["type"] == "text"]
    if texts:
        locked.emit(AgentMessage(type="agent.message", content=texts), id=message_id)


def _propose(locked: Locked, turn: Turn, position: int, proposal: Proposal, verdict: Verdict) -> None:
    if proposal.problem is not None or proposal.asking is None:
        _refuse(locked, turn, position, proposal, proposal.problem or words.unknown_tool(proposal.name))
        return
    unasked = verdict.effect == "ask" and locked.session.on_ask == "deny"
    if unasked:
        verdict = replace(verdict, effect="deny", rule=words.unasked(verdict.rule))
    theirs = proposal.kind == "custom" or (proposal.kind == "builtin" and locked.session.self_hosted)
    status = {"allow": "queued", "ask": "asked", "deny": "denied"}[verdict.effect]
    if theirs and status == "queued":
        status = "held" if is_halted(locked.db) else "with_client"
    call = proposal.call(locked, turn, position, verdict, status)
    if status == "denied":
        message = words.cannot_approve() if unasked else words.denied_by_policy(verdict.rule)
        call.born_settled(locked, Result.error(message))
        call.put(locked)
        return
    approval = Approval.ask(locked, call, proposal.asking) if status == "asked" else None
    if status != "held" and not (call.kind == "custom" and approval):
        call.announce(locked, approval_events.in_call_event(locked.db, approval) if approval else None)
    call.put(locked)
    if approval:
        approval.put(locked)
    else:
        call.note(locked, "tool_call.allowed", rule=Text(call.rule), input_sha256=call.input_sha256)


def _refuse(locked: Locked, turn: Turn, position: int, proposal: Proposal, why: str) -> None:
    verdict = Verdict("deny", "not asked: it cannot be run")
    call = proposal.call(locked, turn, position, verdict, "refused")
    call.born_settled(locked, Result.error(why))
    call.put(locked)


def _finish(locked: Locked, move: Finish, stop_details: dict[str, Any] | None) -> None:
    if move.error:
        _emit_error(locked, *move.error, "terminal")
    locked.report_usage()
    reason = Ended(type=move.stop_reason)
    if move.limit:
        reason["limit_reached"] = move.limit
    rest(locked, reason, stop_details if move.stop_reason == "refusal" else None)


def _emit_error(locked: Locked, kind: str, message: str, retry_status: str, server: str | None = None) -> None:
    """Emit an error. `kind` is one of those that the event's classes name; `server`: the MCP server that failed."""
    error = {"type": kind, "message": message, "retry_status": {"type": retry_status}}
    error |= {"mcp_server_name": server} if server else {}
    locked.emit(SessionError(type="session.error", error=cast("SessionFault | ServerFault", error)))
