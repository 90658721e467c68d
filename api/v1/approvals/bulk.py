"""Makes several decisions of one request: all of them, or none."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

from flask import Response

from api.door import errors
from api.v1.approvals import visible
from api.v1.approvals.requests import BulkDecision
from models.audit.principal import Principal
from models.database.rows import Db
from models.errors import Conflict, Forbidden, Invalid, NotFound, Refusal
from models.flow.carry_on.next_step import one_step
from models.flow.decide.decisions import decide
from models.flow.lock import lock
from models.session.approval.face import Room, require_whole
from models.session.approval.row import Approval
from models.session.locked import Locked

Outcome = Literal["decided", "voted", "repeated"]

_WOULD = {"decided": "would_decide", "voted": "would_vote"}


class NoneDecided(Refusal):
    """One of several decisions was refused, so none is stored."""

    def __init__(self, items: Sequence[BulkDecision], before: Sequence[Outcome], cause: Refusal) -> None:
        count = len(before)
        outcomes = [_WOULD.get(outcome, outcome) for outcome in before]
        outcomes += ["refused"] + ["not_tried"] * (len(items) - count - 1)
        self.outcomes: list[dict[str, Any]] = [
            {"approval_id": item.approval_id, "outcome": outcome} for item, outcome in zip(items, outcomes, strict=True)
        ]
        self.outcomes[count]["message"] = str(cause)
        between = "." if isinstance(cause, Invalid) else ": "
        super().__init__(f"decisions.{count}{between}{cause} None of the decisions was made.")

    def response(self) -> Response:
        """Return the error's response: with the status and the winner of the refusal that is its cause."""
        cause = self.__cause__
        assert isinstance(cause, Refusal), "a refusal has caused it"
        winner = cause.winner if isinstance(cause, Conflict) else None
        return errors.respond(errors.status_of(cause), str(self), winner=winner, details={"decisions": self.outcomes})


@dataclass(frozen=True)
class LockedApprovals:
    """Approvals as they are under the locks of their sessions."""

    sessions: dict[str, Locked]
    rows: dict[str, Approval]
    """By id. An approval whose session is deleted may be among them: its session is not among `sessions`."""

    @classmethod
    def of(cls, db: Db, principal: Principal, ids: Sequence[str]) -> "LockedApprovals":
        """Lock the sessions of the approvals, and read the approvals again."""
        sessions = _lock(db, principal, ids)
        return cls(sessions, {row.id: row for row in db.find(Approval, "WHERE id = ANY(%(ids)s)", ids=list(ids))})


def decide_all(
    db: Db,
    principal: Principal,
    items: Sequence[BulkDecision],
    room: Room | None = None,
    locked_approvals: LockedApprovals | None = None,
) -> list[tuple[Approval, Outcome]]:
    """Make all decisions, in their order. Raises NoneDecided at the first refusal: the caller must then end the transaction.

    `room`: the place that showed the calls to a person. An allow of a call that does not fit into it is refused.
    `locked_approvals`: those of the items, if the caller has locked them already.
    """
    approvals = locked_approvals or LockedApprovals.of(db, principal, [item.approval_id for item in items])
    sessions, rows = approvals.sessions, approvals.rows
    results: list[tuple[Approval, Outcome]] = []
    with ExitStack() as steps:
        for locked in sessions.values():
            steps.enter_context(one_step(locked))
        for item in items:
            try:
                approval = rows.get(item.approval_id)
                if approval is None or approval.session_id not in sessions or not visible.may_see(db, principal, approval):
                    raise NotFound("approval", item.approval_id)
                if room and item.result == "allow":
                    require_whole(approval, room)
                outcome: Outcome = "decided" if approval.status == "pending" else "repeated"
                decide(sessions[approval.session_id], approval, item.decision())
                outcome = "voted" if approval.status == "pending" else outcome
            except (NotFound, Forbidden, Conflict, Invalid) as refusal:
                raise NoneDecided(items, [before for _, before in results], refusal) from refusal
            results.append((approval, outcome))
    return results


def _lock(db: Db, principal: Principal, ids: Sequence[str]) -> dict[str, Locked]:
    """Lock the approvals' sessions in the order of their ids. Leaves out sessions that are deleted."""
    rows = db.rows("SELECT DISTINCT session_id FROM approval WHERE id = ANY(%(ids)s) ORDER BY session_id", ids=list(ids))
    sessions: dict[str, Locked] = {}
    for (session_id,) in rows:
        try:
            sessions[session_id] = lock(db, session_id, principal)
        except NotFound:
            continue
    return sessions
