"""A tool call's claim: whether it may begin, still may, and need; and on whose word."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa

from models.approval import Approval
from models.attempt import Attempt
from models.db import Db
from models.flow.following import carry_on
from models.flow.granting import ask_instead, still_allowed
from models.principal import Principal, system
from models.pure import words
from models.pure.canonical import is_digest
from models.pure.fitting import misfit
from models.pure.naming import OURS
from models.session import Session
from models.stored_result import StoredResult
from models.tool_call import CACHED, ToolCall, text
from models.toolset import Entry, entry_of


@dataclass(frozen=True)
class Hands:
    """What a worker has to run calls with."""

    worker: str
    storage_id: str
    """Of the workdirs that it sees."""
    has: Callable[[str], bool]
    """Whether it has what is behind an `assent:` address."""
    entry: Callable[[str, str], Entry | None] = lambda _address, _tool: None
    """What it knows itself of a tool of its toolsets, by address and name; None where only `models.toolset` does."""
    git_may_run: Callable[[str, str], bool] = lambda _session_id, _command: False
    """Whether git, in a command line, could run a program that a repository in the session's files names."""


@dataclass(frozen=True)
class Taken:
    """A call that a worker has claimed."""

    call: ToolCall
    entry: Entry | None
    """Of its tool, if it is a toolset's."""
    by: str
    """Who let it run: a principal, or `policy`."""


def claim_call(db: Db, session: Session, call_id: str, hands: Hands) -> Taken | None:
    """Take a queued call, its attempt's row written.

    None if it is not to be had, if this worker has not what it takes, or if it needs no worker: its result was cached. What is
    about to run must hash to what was judged and, if it was asked, to what was decided; otherwise it is refused for good.
    """
    call = db.get(ToolCall, call_id)
    if call is None or call.session_id != session.id or call.status != "queued":
        return None
    lacking = _lacking(session, call, hands)
    if lacking != call.held_back:  # the same again would be a change to the unit of work
        call.held_back = lacking
    if lacking:
        return None
    _look_for_git(session, call, hands)
    by = _let_by(db, call)
    if by is None:
        session.note(_actor(session), "tool_call.input_changed", call.id, input_sha256=call.input_sha256)
        call.settle(db, session, "refused", text(words.changed_input()), is_error=True)
        carry_on(db, session)
        return None
    entry = _entry(db, call, hands)
    if not _may_begin(db, session, call, entry) or _answered_before(db, session, call):
        carry_on(db, session)
        return None
    call.claim(db, session, hands.worker, idempotent=call.idempotent and (entry is None or bool(entry["idempotent"])))
    session.note(
        _actor(session),
        "tool_call.started",
        call.id,
        attempt=call.attempt,
        tool=call.name,
        **({"address": call.address} if call.address else {}),
        worker=hands.worker,
        input_sha256=call.input_sha256,
    )
    return Taken(call, entry, by)


def _lacking(session: Session, call: ToolCall, hands: Hands) -> str | None:
    """What this worker has not, of what the call takes; readiness says it to operators."""
    if call.address and call.address.startswith(OURS) and not hands.has(call.address):
        return f"it is of toolset {call.address.removeprefix(OURS)}, which worker {hands.worker} has not"
    if call.workdir:
        session.storage_id = session.storage_id or hands.storage_id
        if session.storage_id != hands.storage_id:
            return f"its files are on storage {session.storage_id}, and worker {hands.worker} has {hands.storage_id}"
    return None


def _look_for_git(session: Session, call: ToolCall, hands: Hands) -> None:
    """Have the session remember what was found, so that this call, when it is judged again, and later ones are asked."""
    command = call.input.get("command") if call.kind == "builtin" and call.name == "bash" else None
    if isinstance(command, str) and not session.git_written and hands.git_may_run(session.id, command):
        session.git_written = True


def _entry(db: Db, call: ToolCall, hands: Hands) -> Entry | None:
    if call.address is None or call.tool is None:
        return None
    return hands.entry(call.address, call.tool) or entry_of(db, call.address, call.tool)


def _may_begin(db: Db, session: Session, call: ToolCall, entry: Entry | None) -> bool:
    """Whether no rule came that denies the call, the grants behind it stand, and its tool is what it was. If not, it is settled,
    or put to a person."""
    verdict = still_allowed(db, session, call)
    if verdict.effect == "deny":
        session.note(_actor(session), "tool_call.denied", call.id, rule=verdict.rule, input_sha256=call.input_sha256)
        if call.attempt:
            call.settle(db, session, "cancelled", text(words.outcome_unknown()), is_error=True)
        else:
            call.settle(db, session, "refused", text(words.denied_by_policy(verdict.rule)), is_error=True)
        return False
    if call.grants and verdict.effect == "ask":
        ask_instead(db, session, call)
        return False
    if entry and not call.attempt and misfit(entry["input_schema"], call.input):
        session.note(_actor(session), "tool_call.tool_changed", call.id, input_sha256=call.input_sha256)
        ask_instead(db, session, call, input_schema=dict(entry["input_schema"]))
        return False
    return True


def _answered_before(db: Db, session: Session, call: ToolCall) -> bool:
    """Whether the result of the same call still holds; it is then this one's, and nothing runs."""
    before = _same_before(db, session, call)
    if before is None or (before.session_id != call.session_id and StoredResult.of(db, before.id)):
        return False
    session.note(_actor(session), "tool_call.cached", call.id, cached_from=before.id, input_sha256=call.input_sha256)
    content = before.result or []
    call.settle(db, session, "done", content, is_error=False, structured=before.structured, cached_from=before.id)
    return True


def _same_before(db: Db, session: Session, call: ToolCall) -> ToolCall | None:
    """An earlier call whose result still answers this one: of the same tool, with the same input."""
    if call.cache is None or call.attempt:
        return None
    since = session.now - timedelta(seconds=call.cache["seconds"])
    same = (
        ToolCall.workspace_id == call.workspace_id,
        ToolCall.input_sha256 == call.input_sha256,
        ToolCall.cache == call.cache,
    )
    good = (ToolCall.status == "done", ToolCall.is_error.is_(False), ToolCall.settled_at > since)
    last = (Attempt.tool_call_id == ToolCall.id, Attempt.number == ToolCall.attempt, Attempt.outcome == "done")
    # Its tool's own word: neither a person's, nor made of what a person said to it.
    own = (sa.exists().where(*last), ToolCall.cached_from.is_(None), ToolCall.question.is_(None))
    found = sa.select(ToolCall).where(*same, *good, *own, sa.text(CACHED))
    if call.cache["scope"] == "session":
        found = found.where(ToolCall.session_id == call.session_id)
    return db.scalars(found.order_by(ToolCall.settled_at.desc()).limit(1)).first()


def _let_by(db: Db, call: ToolCall) -> str | None:
    """Who let it run. None unless shown = decided = run: one hash, and where it was asked, an allowed approval that carries it."""
    if not is_digest(call.input, call.input_sha256):
        return None
    if call.permission != "ask":
        return f"grant:{call.grants[0]}" if call.grants else "policy"
    asked = [a for a in Approval.of_call(db, call.id) if a.kind == "tool_call" and a.status == "allowed"]
    return next((approval.decided_by for approval in reversed(asked) if approval.runs == call.input_sha256), None)


def _actor(session: Session) -> Principal:
    return system("tool.run", session.workspace_id)
