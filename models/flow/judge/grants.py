"""Verdicts that count grants, and the release of waiting calls by new grants."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from models.audit.principal import Principal, system
from models.audit.text import Text
from models.database import clock
from models.database.rows import Db
from models.database.transactions import transaction
from models.flow.carry_on.next_step import carry_on, may_have_begun, one_step
from models.flow.judge import votes
from models.policy.asking import Asking
from models.policy.session_policies import UNKNOWN_TOOL, SessionPolicies
from models.pure.masking import Echoes, mask
from models.pure.policy import Granted, Verdict
from models.pure.quorum import Quorum
from models.pure.text import words
from models.session.approval.deadline import overdue
from models.session.approval.decision import Decision
from models.session.approval.grant import Grant
from models.session.approval.row import Approval
from models.session.approval.vote import Ballot
from models.session.locked import Locked, try_lock
from models.session.row import Session
from models.session.tool_call.input import CallInput
from models.session.tool_call.proposal import Proposal
from models.session.tool_call.result import Result
from models.session.tool_call.row import ToolCall
from models.settings import settings


def session_policies(locked: Locked) -> SessionPolicies:
    """Return the policies that apply to the thread's calls now."""
    return locked.session.policies_of(locked.db, locked.thread, locked.policies)


def judge_proposals(locked: Locked, proposals: Sequence[Proposal]) -> list[Verdict]:
    """Return a verdict on each proposed call, in order. Counts each use of a grant, in this transaction."""
    if not proposals:
        return []
    rules = session_policies(locked)
    verdicts = [rules.judge(each.name, each.input) for each in proposals]
    if not any(each.effect == "ask" for each in verdicts):
        return verdicts
    usable = Grant.to_use(locked.db, locked.thread, {each.name for each in proposals})
    grants = counting(locked, rules, usable, locked.session.askers)
    for position, each in enumerate(proposals):
        if verdicts[position].effect == "ask" and each.problem is None:
            verdicts[position] = _granted(locked, rules, grants, each.name, each)
    return verdicts


def release_waiting(workspace_id: str, session_id: str, limit: int = 100) -> int | None:
    """Allow the waiting calls of one session that a grant covers now. Returns how many; None if the session is locked."""
    with transaction(workspace_id) as db:
        locked = try_lock(db, session_id, system("sweep.release_granted", workspace_id))
        if locked is None:
            return None
        pending = [each for each in Approval.pending(db, session_id) if each.traits.asks_to_run]
        late = overdue(db, pending, locked.now)
        waiting = [approval for approval in pending if approval not in late]
        released = 0
        with one_step(locked):
            for each in locked.each:
                of_thread = [approval for approval in waiting if approval.thread_id == each.thread.id]
                released += _release_some(each, of_thread, limit - released) if of_thread else 0
        return released


def _release_some(locked: Locked, waiting: Sequence[Approval], limit: int) -> int:
    """Allow the waiting calls of one thread that a grant covers now, at most `limit`. Returns how many."""
    rules = session_policies(locked)
    usable = Grant.to_use(locked.db, locked.thread, {each.tool for each in waiting})
    grants = counting(locked, rules, usable, locked.session.askers)
    count = 0
    for approval in waiting if grants else ():
        if count == limit:
            break
        count += _release(locked, rules, grants, approval)
    if count:
        carry_on(locked)
    return count


def swept(workspace_id: str, grant_id: str, to: str | None, *, over: bool) -> None:
    """Record how far the sweep of a new grant has come: to the session `to`, or, if `over`, to the end."""
    with transaction(workspace_id) as db:
        grant = db.get(Grant, grant_id)
        if grant is not None:
            grant.swept_to, grant.swept_at = to, clock.now(db) if over else None


def granted_now(locked: Locked, rules: SessionPolicies, call: ToolCall) -> bool:
    """True if grants cover a call whose earlier permission no longer holds. Counts their use."""
    session = locked.session
    call_input = CallInput.of(locked.db, call)
    if identity_of(rules, session, call, call_input) != rules.identity(call.name, self_hosted=session.self_hosted):
        return False
    grants = counting(locked, rules, Grant.to_use(locked.db, locked.thread, {call.name}), call_input.askers(locked))
    verdict = _granted(locked, rules, grants, call.name, call_input)
    if verdict.effect == "allow":
        call.grants = [rule.id for rule in verdict.rules if rule.source == "grant"]
    return verdict.effect == "allow"


def verdict_on(
    rules: SessionPolicies,
    call: ToolCall,
    call_input: CallInput,
    granted: Granted | None = None,
    *,
    instead: dict[str, Any] | None = None,
) -> Verdict:
    """Return the verdict on a stored call, with its own input or with `instead`. `granted.shown` is that input, masked.

    Returns UNKNOWN_TOOL if the server's name now points to another address.
    """
    if not rules.is_at(call.name, call.address):
        return UNKNOWN_TOOL
    verdict = rules.judge(call.name, call_input.input if instead is None else instead, granted)
    return replace(verdict, rule=Echoes(call_input.secrets or (), may_quote=True).text(verdict.rule))  # it may quote the input


def identity_of(rules: SessionPolicies, session: Session, call: ToolCall, call_input: CallInput) -> str:
    """Return the identity of the tool that people were asked about."""
    shown = (call_input.asking or {}).get("identity")
    return shown if call.kind == "mcp" and shown else rules.identity(call.name, self_hosted=session.self_hosted)


@dataclass(frozen=True)
class Change:
    """What has changed since a call was allowed, so that the permission no longer holds."""

    rule: str | None = None
    """The rule that asks now. None: the rule that allowed the call."""
    input_schema: dict[str, Any] | None = None
    """The tool's present schema, if the input no longer fits the tool."""
    leads_to: dict[str, str] | None = None
    """Where paths in the input lead now, by JSON Pointer. The decision is bound to it."""


def ask_instead(locked: Locked, call: ToolCall, asking: Asking, change: Change) -> None:
    """Ask a person about a queued call whose earlier permission no longer holds.

    `asking` is used if nobody was asked before. If the session's `on_ask` is `deny`, the call is refused.
    """
    rule, input_schema = change.rule or call.rule, change.input_schema
    if locked.session.on_ask == "deny":
        refuse(locked, call, words.unasked(rule), words.cannot_approve())
        return
    before = [approval for approval in Approval.of_call(locked.db, call) if approval.traits.asks_to_run]
    call.ask_again(locked.db, rule)
    rules, call_input = session_policies(locked), CallInput.of(locked.db, call)
    if before:
        approval = before[-1].again(locked, call, rules)
    else:
        approval = Approval.ask(locked, call, replace(asking, **rules.approvers(call.name)))
    if input_schema is not None:
        masked = mask(call_input.input, input_schema)
        call_input.masks_also(masked)
        approval.input_schema, approval.prompt = input_schema, words.tool_changed(approval.prompt)
        approval.shown_input = masked.arguments if masked.paths else None
    approval.leads_to = change.leads_to or None
    echoes = Echoes(call_input.secrets or (), may_quote=True)
    approval.prompt = words.leads_to(approval.prompt, [echoes.text(place) for place in (change.leads_to or {}).values()])
    approval.put(locked)


def refuse(locked: Locked, call: ToolCall, rule: str, message: str) -> None:
    """Settle a queued call that may not run. `message` is for the model, unless the call may have begun earlier."""
    call.note(locked, "tool_call.denied", rule=Text(rule), input_sha256=call.input_sha256)
    if may_have_begun(locked.db, call):
        call.settle(locked, "cancelled", Result.error(words.outcome_unknown()))
    else:
        call.settle(locked, "refused", Result.error(message))


def _release(locked: Locked, rules: SessionPolicies, grants: list[Grant], approval: Approval) -> bool:
    session = locked.session
    call = approval.call(locked.db)
    call_input = CallInput.of(locked.db, call)
    if identity_of(rules, session, call, call_input) != rules.identity(call.name, self_hosted=session.self_hosted):
        return False
    if not set(approval.started_by) <= set(session.askers):
        return False  # a person edited the input, so people decide
    if not approval.may_go_without_people(call_input):
        return False
    own = Quorum.of(approval.quorum)  # what people were told: a milder setting takes nothing away
    of_enough = [each for each in grants if _given_by_enough(locked.db, session.askers, own, each)]
    verdict = _granted(locked, rules, of_enough, call.name, call_input)
    used = [rule.id for rule in verdict.rules if rule.source == "grant"]
    if verdict.effect != "allow" or not used:
        return False
    with locked.acting_as(Principal("grant", used[0], session.workspace_id)):
        approval.close(locked, "allowed", Decision("allow", grant_id=used[0]))
    call.release(locked, grants=used, rule=verdict.rule)
    return True


def counting(locked: Locked, rules: SessionPolicies, grants: list[Grant], askers: Collection[str]) -> list[Grant]:
    """Return the grants that cover exactly the session's tools, that these tools still offer, and that were given by as many people
    as must approve now.

    `askers` are the people who asked for the calls.
    """
    about = [g for g in grants if g.identity == rules.identity(g.tool, self_hosted=locked.session.self_hosted)]
    about = [g for g in about if g.is_offered(rules.quorum(g.tool).offer)]
    return [g for g in about if _given_by_enough(locked.db, askers, rules.quorum(g.tool), g)]


def _given_by_enough(db: Db, askers: Collection[str], quorum: Quorum, grant: Grant) -> bool:
    ballots = [Ballot(*voter) for voter in grant.voters or ()]
    return not quorum.needs_people or votes.meets(db, quorum, ballots, askers)


def _granted(locked: Locked, rules: SessionPolicies, grants: list[Grant], tool: str, source: Proposal | CallInput) -> Verdict:
    """Return the verdict with grants on the input of `source`, and count their uses.

    A grant that is used up leaves the list.
    """
    while True:
        about = tuple(grant.rule for grant in grants if grant.tool == tool)
        verdict = rules.judge(tool, source.input, Granted(about, source.shown))
        used = {rule.id for rule in verdict.rules if rule.source == "grant"}
        over = Grant.spend(locked, [grant for grant in grants if grant.id in used]) if verdict.effect == "allow" else None
        if over is None:
            return verdict
        grants[:] = [grant for grant in grants if grant.id != over]


def asking_of(call: ToolCall, call_input: CallInput) -> Asking:
    """Return how people are asked about the call, as the proposal stored it."""
    if call_input.asking is None:
        return Asking(f"Run {call.name}", settings().approval_seconds)
    return Asking(**call_input.asking)
