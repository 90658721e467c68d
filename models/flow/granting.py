"""Verdicts that take grants into account, and what grants do to calls that wait already."""

from collections.abc import Sequence

from models.approval import Approval
from models.db import Db, transaction
from models.decision import Decision
from models.flow.following import carry_on
from models.grant import Grant
from models.principal import Principal
from models.pure.policy import Verdict
from models.ruling import Asking, Ruling
from models.session import Session
from models.tool_call import Proposal, ToolCall
from models.workspace import Workspace


def ruling(db: Db, session: Session) -> Ruling:
    """The policies that hold for the session's calls now."""
    return Ruling.of(session.agent, Workspace.policies(db, session.workspace_id))


def judge(db: Db, session: Session, proposals: Sequence[Proposal]) -> list[Verdict]:
    """A verdict on each proposed call, in order. What a grant allows is counted as its use, in this transaction."""
    if not proposals:
        return []
    rules = ruling(db, session)
    verdicts = [rules.verdict(each.name, each.input) for each in proposals]
    if not any(each.effect == "ask" for each in verdicts):
        return verdicts
    grants = Grant.live(db, session)
    for position, each in enumerate(proposals):
        if verdicts[position].effect == "ask" and each.problem is None:
            verdicts[position] = _granted(db, session, rules, grants, each.name, each.input)
    return verdicts


def release_waiting(workspace_id: str, session_id: str, limit: int = 100) -> int:
    """Allow what waits in one session and is covered by a grant by now. Returns how many; 0 if somebody else works on it."""
    with transaction(workspace_id) as db:
        session = Session.try_lock(db, session_id)
        if session is None:
            return 0
        grants = Grant.live(db, session)
        waiting = [a for a in Approval.pending(db, session_id) if a.kind == "tool_call" and a.expires_at > session.now]
        if not grants or not waiting:
            return 0
        rules = ruling(db, session)
        released = sum(_release(db, session, rules, grants, approval) for approval in waiting[:limit])
        if released:
            carry_on(db, session)
        return released


def still_granted(db: Db, session: Session, call: ToolCall) -> bool:
    """Whether a call that grants allowed is still allowed. If not, it is put to a person now."""
    if not call.grants or Grant.all_stand(db, session, call.grants):
        return True
    before = Approval.of_call(db, call.id)
    approval = before[-1].again(session, call) if before else Approval.ask(session, call, _asking(call))
    call.ask_again(db)
    approval.put(db, session, Principal("system", "tool.run", session.workspace_id))
    return False


def _release(db: Db, session: Session, rules: Ruling, grants: list[Grant], approval: Approval) -> bool:
    call = db.get_one(ToolCall, approval.tool_call_id)
    verdict = _granted(db, session, rules, grants, call.name, call.input)
    if verdict.effect != "allow" or not verdict.rules:
        return False
    used = [rule.id for rule in verdict.rules if rule.source == "grant"]
    by = Principal("grant", used[0] if used else "policy", session.workspace_id)
    approval.close(db, session, by, "allowed", Decision("allow", grant_id=used[0] if used else None))
    call.release(db, session, grants=used or None, rule=verdict.rule)
    return True


def _granted(db: Db, session: Session, rules: Ruling, grants: list[Grant], tool: str, given: dict[str, object]) -> Verdict:
    """The verdict with grants, whose uses are counted; a grant that is used up or gone meanwhile is taken off the list."""
    while True:
        about = [grant.rule for grant in grants if grant.tool == tool]
        verdict = rules.verdict(tool, given, about)
        used = [rule.id for rule in verdict.rules if rule.source == "grant"]
        over = Grant.spend(db, session, used) if verdict.effect == "allow" else None
        if over is None:
            return verdict
        grants[:] = [grant for grant in grants if grant.id != over]


def _asking(call: ToolCall) -> Asking:
    assert call.asking is not None, "a call that grants allowed before anybody was asked keeps how to ask"
    return Asking(**call.asking)
