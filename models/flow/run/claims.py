"""The claim of a tool call: a worker may run it if it is still allowed, by a policy or by a decision."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta

from psycopg.types.json import Jsonb

from models.audit.principal import Principal, system
from models.database.rows import Db
from models.flow.carry_on.next_step import carry_on
from models.flow.judge import votes
from models.flow.judge.grants import ask_instead, asking_of, granted_now, refuse, session_policies
from models.flow.lock import lock_and_read
from models.flow.run.rejudging import Places, Rejudged, Unresolved, judge_again
from models.policy.asking import Asking
from models.policy.session_policies import SessionPolicies
from models.pure.json.canonical import is_digest
from models.pure.json.fitting import misfit
from models.pure.masking import mask
from models.pure.naming import OURS
from models.pure.shell import read
from models.pure.text import words
from models.session.approval.row import Approval
from models.session.hints import hint_next
from models.session.row import Session
from models.session.tool_call.input import CallInput
from models.session.tool_call.result import CallResult, text
from models.session.tool_call.row import CACHED, ToolCall
from models.session.tool_call.stored_result import StoredResult
from models.workspace.halt import OPEN_HALT
from models.workspace.toolset import Entry, entry_of


@dataclass(frozen=True)
class Hands:
    """A worker, with its files and its tools."""

    worker: str
    storage_id: str
    """Id of the workdirs that the worker mounts."""
    has: Callable[[str], bool]
    """True if the worker can run the tools at an `assent:` address."""
    entry: Callable[[str | None, str], Entry | None] = lambda _address, _tool: None
    """Returns the entry of a tool, by its toolset's address (None: built in) and its name. None: see `models.workspace.toolset`."""
    places: Places = field(default_factory=dict)
    """Where the paths lead that an earlier claim of the same call returned as Unresolved."""
    git_may_run: bool | None = None
    """True if git could run a program that a repository in the session's files names. None: the worker has not looked yet."""
    task: str | None = None
    """The worker's task, for Flower. See `Leased.task`."""


@dataclass(frozen=True)
class Taken:
    """A call that a worker has claimed."""

    call: ToolCall
    input: CallInput
    entry: Entry | None
    """The entry of the call's tool, if it belongs to a toolset."""
    by: str
    """The principal who allowed the call, or `policy`."""


@dataclass(frozen=True)
class _Permission:
    """The permission of a call, by a decision, a grant or the policy."""

    approval: Approval | None
    """The approval by which a person, a deadline or a grant allowed the call. None: nobody was asked."""

    def by(self, call: ToolCall) -> str:
        """Return the principal who allowed the call, or `policy`."""
        if self.approval is not None:
            return self.approval.decided_by or ""
        return f"grant:{call.grants[0]}" if call.grants else "policy"

    def stands(self, db: Db, rules: SessionPolicies, call: ToolCall, judged: Rejudged) -> bool:
        """True if the permission holds although the policy asks now: enough people approved, or a deadline may allow the call.

        If the policy asks because of symbolic links, people must have seen where the paths lead.
        """
        if self.approval is None or (judged.leads_to and judged.leads_to != self.approval.leads_to):
            return False
        if self.approval.by_person:
            return votes.still_allows(db, self.approval, rules.quorum(call.name, self.approval.level))
        return self.approval.by_deadline and rules.lets_on_timeout(call.name, judged.verdict)


def claim_call(db: Db, session_id: str, call_id: str, hands: Hands) -> Taken | Unresolved | None:
    """Lock the session, claim a queued call and insert the row of its attempt.

    Returns Unresolved if the worker must first look at the session's files. Returns None if the call is not queued, not due or
    another session's, if the workspace is halted, if this worker cannot run the call, or if the call may not begin: a rule denies
    it, a person is asked, a cached result answers it, or its input no longer has the hash that was judged and decided. Raises
    NotFound if there is no such session.
    """
    reads = (*OPEN_HALT, Approval.about(call_id), CallInput.about(call_id))
    session, (_, halts, approvals, inputs) = lock_and_read(db, session_id, *reads)
    call = db.get(ToolCall, call_id)
    if call is not None:
        hint_next(db, "tool.run", call.queue)  # in the place of this call, which leaves the queue now or left it before
    if call is None or call.session_id != session.id or call.status != "queued" or call.due_at > session.now:
        return None
    if halts or _is_held_back(session, call, hands):
        return None
    [call_input] = inputs
    git_line = _git_line(session, call, call_input)
    if git_line and hands.git_may_run:
        session.git_written = True  # so that this call, when it is judged again, and later ones are asked
    permission = _permission(call, call_input, approvals)
    if permission is None:
        session.note(_actor(session), "tool_call.input_changed", call.id, input_sha256=call.input_sha256)
        call.settle(db, session, "refused", text(words.changed_input()), is_error=True)
        carry_on(db, session)
        return None
    rules = session_policies(db, session)
    judged = judge_again(db, session, rules, call, hands.places)
    if isinstance(judged, Unresolved) or (git_line and hands.git_may_run is None):
        return Unresolved(judged.paths if isinstance(judged, Unresolved) else frozenset(), git_line)
    entry = _entry(db, call, hands)
    if not _may_begin(db, session, rules, call, entry, permission, judged) or _answered_before(db, session, call):
        carry_on(db, session)
        return None
    idempotent = call.idempotent and (entry is None or bool(entry["idempotent"]))
    call.claim(db, session, hands.worker, idempotent=idempotent, task=hands.task)
    facts = {"attempt": call.attempt, "tool": call.name, "worker": hands.worker, "input_sha256": call.input_sha256}
    session.note(_actor(session), "tool_call.started", call.id, **facts, **({"address": call.address} if call.address else {}))
    return Taken(call, call_input, entry, permission.by(call))


def _is_held_back(session: Session, call: ToolCall, hands: Hands) -> bool:
    """True if this worker cannot run the call. The call then says why."""
    call.held_back = _lacking(session, call, hands)
    return call.held_back is not None


def _lacking(session: Session, call: ToolCall, hands: Hands) -> str | None:
    """Return why this worker cannot run the call, for operators; None if it can."""
    if call.address and call.address.startswith(OURS) and not hands.has(call.address):
        return f"it needs toolset {call.address.removeprefix(OURS)}, which worker {hands.worker} does not have"
    if call.workdir:
        session.storage_id = session.storage_id or hands.storage_id
        if session.storage_id != hands.storage_id:
            return f"its files are on storage {session.storage_id}, and worker {hands.worker} has {hands.storage_id}"
    return None


def _git_line(session: Session, call: ToolCall, call_input: CallInput) -> str | None:
    """Return the call's command line if it runs git, so that the worker must look at the session's repositories first."""
    command = call_input.input.get("command") if call.kind == "builtin" and call.name == "bash" else None
    if not isinstance(command, str) or session.git_written:
        return None
    line = read(command)
    return command if not line.doubt and line.runs("git") else None


def _entry(db: Db, call: ToolCall, hands: Hands) -> Entry | None:
    known = hands.entry(call.address, call.tool or call.name)
    return known or (entry_of(db, call.address, call.tool) if call.address and call.tool else None)


def _may_begin(
    db: Db, session: Session, rules: SessionPolicies, call: ToolCall, entry: Entry | None, permission: _Permission, judged: Rejudged
) -> bool:
    """True if the call is still allowed and still fits its tool. If not, the call is settled or put to a person."""
    verdict, leads_to, call_input = judged.verdict, judged.leads_to, CallInput.of(db, call.id)
    if verdict.effect == "deny":
        refuse(db, session, call, verdict.rule, words.denied_by_policy(verdict.rule))
        return False
    stands = verdict.effect == "allow" or permission.stands(db, rules, call, judged)
    if not stands and (leads_to or not granted_now(db, session, rules, call)):
        ask_instead(db, session, call, _asking(rules, call, call_input, entry), rule=verdict.rule, leads_to=leads_to)
        return False
    if entry and not call.attempt and misfit(entry["input_schema"], call_input.input):
        session.note(_actor(session), "tool_call.tool_changed", call.id, input_sha256=call.input_sha256)
        ask_instead(db, session, call, _asking(rules, call, call_input, entry), input_schema=dict(entry["input_schema"]))
        return False
    return True


def _asking(rules: SessionPolicies, call: ToolCall, call_input: CallInput, entry: Entry | None) -> Asking:
    """Return how people are asked about a call. The call of a built-in tool that was allowed at once has not stored this."""
    if entry is None or call_input.asking is not None:
        return asking_of(call, call_input)
    return rules.asking(call.name, mask(call_input.input, entry["input_schema"]).shown, entry)


def _answered_before(db: Db, session: Session, call: ToolCall) -> bool:
    """True if a cached result of an equal call still holds. The call is then settled with that result, and nothing runs."""
    before = _same_before(db, session, call)
    if before is None or (before.session_id != call.session_id and StoredResult.exists(db, before.id)):
        return False
    session.note(_actor(session), "tool_call.cached", call.id, cached_from=before.id, input_sha256=call.input_sha256)
    result = CallResult.of(db, before.id)
    call.settle(db, session, "done", result.content, is_error=False, structured=result.structured, cached_from=before.id)
    return True


def _same_before(db: Db, session: Session, call: ToolCall) -> ToolCall | None:
    """Return the newest call of the same tool with the same input whose result may still be used."""
    if call.cache is None or call.attempt:
        return None
    scope = "AND session_id = %(session)s" if call.cache["scope"] == "session" else ""
    return db.first(
        ToolCall,
        f"{_CACHED} {scope} ORDER BY settled_at DESC LIMIT 1",
        workspace=call.workspace_id,
        session=call.session_id,
        sha256=call.input_sha256,
        cache=Jsonb(call.cache),
        since=session.now - timedelta(seconds=call.cache["seconds"]),
    )


# The tool's own result: neither a person's, nor made of a person's answers to the tool.
_CACHED = f"""
    WHERE workspace_id = %(workspace)s AND input_sha256 = decode(%(sha256)s, 'hex') AND cache = %(cache)s AND {CACHED}
    AND NOT is_error AND settled_at > %(since)s AND cached_from IS NULL
    AND EXISTS (SELECT FROM attempt WHERE tool_call_id = tool_call.id AND number = tool_call.attempt AND outcome = 'done')
    AND EXISTS (SELECT FROM call_input WHERE tool_call_id = tool_call.id AND question IS NULL)
"""  # noqa: S608 - names of our own


def _permission(call: ToolCall, call_input: CallInput, approvals: Iterable[Approval]) -> _Permission | None:
    """Return the latest permission for the call. None if the input is not the one that was judged or decided."""
    if not is_digest(call_input.input, call.input_sha256):
        return None
    for approval in sorted(approvals, key=Approval.age, reverse=True):
        if approval.lets_run(call.input_sha256):
            return _Permission(approval)
    return None if call.permission == "ask" else _Permission(None)


def _actor(session: Session) -> Principal:
    return system("tool.run", session.workspace_id)
