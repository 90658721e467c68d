"""The claim of a tool call: a worker may run it if it is still allowed, by a policy or by a decision.

The worker reads the call under the lock of its session, says what it has for the call, and claims, all in one transaction. If the
claim needs to know more of the session's files, the worker looks at them without a transaction, and starts again.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from psycopg.types.json import Jsonb

from models.audit.principal import system
from models.database.rows import Db
from models.database.trace import Run
from models.flow.carry_on.next_step import carry_on
from models.flow.judge import votes
from models.flow.judge.grants import Change, ask_instead, asking_of, granted_now, refuse, session_policies
from models.flow.lock import lock_with_calls
from models.flow.run.rejudging import UNSEEN, Files, Places, Rejudged, Unresolved, judge_again
from models.flow.run.shared_files import awaits_writer
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
from models.session.locked import Locked
from models.session.tool_call.input import CallInput
from models.session.tool_call.result import CallResult, Result
from models.session.tool_call.row import CACHED, ToolCall
from models.session.tool_call.stored_result import StoredResult
from models.workspace.halt import OPEN_HALT
from models.workspace.toolset import Entry, entry_of


@dataclass(frozen=True)
class ClaimingWorker:
    """A worker, as one call sees it."""

    name: str
    storage_id: str
    """Id of the workdirs that the worker mounts."""
    has_toolset: bool
    """True if the worker has the toolset of the call's `assent:` address."""
    entry: Entry | None
    """The entry of the call's tool, if it is built in or in a toolset of the worker."""
    task: str | None = None
    """The worker's task, for Flower. See `Leased.task`."""


@dataclass(frozen=True)
class ClaimedCall:
    """A call that a worker has claimed."""

    call: ToolCall
    input: CallInput
    entry: Entry | None
    """The entry of the call's tool, if it belongs to a toolset."""
    by: str
    """The principal who allowed the call, or `policy`."""
    places: Places
    """Where the paths in the input led when the call was judged."""
    run: Run | None = None
    """The run to which the call belongs, if it is traced."""


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
        return self.approval.by_deadline and rules.may_allow_on_timeout(call.name, judged.verdict)


@dataclass(frozen=True)
class QueuedCall:
    """A queued call that is due, with the rows that were read under the lock of its session."""

    locked: Locked
    call: ToolCall
    input: CallInput
    approvals: list[Approval]

    def claim(self, worker: ClaimingWorker, files: Files = UNSEEN) -> ClaimedCall | Unresolved | None:
        """Claim the call, and insert the row of its attempt. `files` is what the worker saw of the session's files.

        Returns Unresolved if the worker must first look at the files. Returns None if this worker cannot run the call, or if the
        call may not begin: a rule denies it, a person is asked, a cached result serves it, or its input no longer has the hash
        that was judged and decided.
        """
        locked, call = self.locked, self.call
        call.held_back = self._lacking(worker)
        if call.held_back is not None or awaits_writer(locked, call):
            return None
        git_line = self._git_line()
        if git_line and files.git_may_run:
            locked.session.git_written = True  # so that this call, when it is judged again, and later ones are asked
        permission = self._permission()
        if permission is None:
            self._note("tool_call.input_changed")
            call.settle(locked, "refused", Result.error(words.changed_input()))
            carry_on(locked)
            return None
        rules = session_policies(locked)
        judged = judge_again(locked, rules, call, files.places)
        if isinstance(judged, Unresolved) or (git_line and files.git_may_run is None):
            return Unresolved(judged.paths if isinstance(judged, Unresolved) else frozenset(), git_line)
        entry = worker.entry or (entry_of(locked.db, call.address, call.tool) if call.address and call.tool else None)
        if not self._may_begin(rules, entry, permission, judged) or self._is_cached():
            carry_on(locked)
            return None
        if call.workdir:
            locked.session.shell_start = None  # the call may change the files
        idempotent = call.idempotent and (entry is None or bool(entry["idempotent"]))
        call.claim(locked, worker.name, idempotent=idempotent, task=worker.task)
        address = {"address": call.address} if call.address else {}
        self._note("tool_call.started", attempt=call.attempt, tool=call.name, worker=worker.name, **address)
        run = Run.of(locked.thread.id, locked.thread.trace)
        return ClaimedCall(call, self.input, entry, permission.by(call), files.places, run)

    def _lacking(self, worker: ClaimingWorker) -> str | None:
        """Return why the worker cannot run the call, for operators; None if it can."""
        call, session = self.call, self.locked.session
        if call.address and call.address.startswith(OURS) and not worker.has_toolset:
            return f"it needs toolset {call.address.removeprefix(OURS)}, which worker {worker.name} does not have"
        if call.workdir:
            session.storage_id = session.storage_id or worker.storage_id
            if session.storage_id != worker.storage_id:
                return f"its files are on storage {session.storage_id}, and worker {worker.name} has {worker.storage_id}"
        return None

    def _git_line(self) -> str | None:
        """Return the call's command line if it runs git, so that the worker must look at the session's repositories first."""
        command = self.input.input.get("command") if self.call.kind == "builtin" and self.call.name == "bash" else None
        if not isinstance(command, str) or self.locked.session.git_written:
            return None
        line = read(command)
        return command if not line.doubt and line.runs("git") else None

    def _permission(self) -> _Permission | None:
        """Return the latest permission for the call. None if the input is not the one that was judged or decided."""
        if not is_digest(self.input.input, self.call.input_sha256):
            return None
        for approval in sorted(self.approvals, key=Approval.age, reverse=True):
            if approval.lets_run(self.call.input_sha256):
                return _Permission(approval)
        return None if self.call.permission == "ask" else _Permission(None)

    def _may_begin(self, rules: SessionPolicies, entry: Entry | None, permission: _Permission, judged: Rejudged) -> bool:
        """True if the call is still allowed and still fits its tool. If not, the call is settled or put to a person."""
        locked, call, verdict = self.locked, self.call, judged.verdict
        if verdict.effect == "deny":
            refuse(locked, call, verdict.rule, words.denied_by_policy(verdict.rule))
            return False
        stands = verdict.effect == "allow" or permission.stands(locked.db, rules, call, judged)
        if not stands and (judged.leads_to or not granted_now(locked, rules, call)):
            ask_instead(locked, call, self._asking(rules, entry), Change(verdict.rule, leads_to=judged.leads_to))
            return False
        if entry and not call.attempt and misfit(entry["input_schema"], self.input.input):
            self._note("tool_call.tool_changed")
            ask_instead(locked, call, self._asking(rules, entry), Change(input_schema=dict(entry["input_schema"])))
            return False
        return True

    def _asking(self, rules: SessionPolicies, entry: Entry | None) -> Asking:
        """Return how people are asked about the call. The call of a built-in tool that was allowed at once has not stored this."""
        if entry is None or self.input.asking is not None:
            return asking_of(self.call, self.input)
        return rules.asking(self.call.name, mask(self.input.input, entry["input_schema"]).arguments, entry)

    def _is_cached(self) -> bool:
        """True if a cached result of an equal call still holds. The call is then settled with that result, and nothing runs."""
        db, call = self.locked.db, self.call
        before = _same_before(self.locked, call)
        if before is None or (before.session_id != call.session_id and StoredResult.exists(db, before.id)):
            return False
        self._note("tool_call.cached", cached_from=before.id)
        result = CallResult.of(db, before)
        call.settle(self.locked, "done", Result(result.content, structured=result.structured, cached_from=before.id))
        return True

    def _note(self, act: str, **facts: Any) -> None:
        self.call.note(self.locked, act, **facts, input_sha256=self.call.input_sha256)


def queued_call(db: Db, session_id: str, call_id: str) -> QueuedCall | None:
    """Lock the session, and return a queued call that is due, for a worker to claim.

    Returns None if the call is not queued, not due or another session's, or if the workspace is halted. Raises NotFound if there is
    no such session.
    """
    reads = (*OPEN_HALT, Approval.about(call_id), CallInput.about(call_id))
    actor = system(ToolCall.TASK, db.workspace_id)
    locked, (_, halts, approvals, inputs) = lock_with_calls(db, session_id, actor, *reads, of=call_id)
    call = db.get(ToolCall, call_id)
    if call is not None:
        hint_next(db, ToolCall.TASK, call.queue)  # in the place of this call, which leaves the queue now or left it before
    if halts or call is None or call.session_id != session_id or call.status != "queued" or call.due_at > locked.now:
        return None
    [call_input] = inputs
    return QueuedCall(locked.at(call), call, call_input, approvals)


def _same_before(locked: Locked, call: ToolCall) -> ToolCall | None:
    """Return the newest call of the same tool with the same input whose result may still be used."""
    if call.cache is None or call.attempt:
        return None
    scope = "AND session_id = %(session)s" if call.cache["scope"] == "session" else ""
    return locked.db.first(
        ToolCall,
        f"{_CACHED} {scope} ORDER BY settled_at DESC LIMIT 1",
        workspace=call.workspace_id,
        session=call.session_id,
        sha256=call.input_sha256,
        cache=Jsonb(call.cache),
        since=locked.now - timedelta(seconds=call.cache["seconds"]),
    )


# The tool's own result: neither a person's, nor made of a person's answers to the tool.
_CACHED = f"""
    WHERE workspace_id = %(workspace)s AND input_sha256 = decode(%(sha256)s, 'hex') AND cache = %(cache)s AND {CACHED}
    AND NOT is_error AND settled_at > %(since)s AND cached_from IS NULL
    AND EXISTS (SELECT FROM attempt WHERE tool_call_id = tool_call.id AND number = tool_call.attempt AND outcome = 'done')
    AND EXISTS (SELECT FROM call_input WHERE tool_call_id = tool_call.id AND question IS NULL)
"""  # noqa: S608 - names of our own
