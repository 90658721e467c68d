"""Votes and groups: the steps of tests about several people."""

from typing import Any

from people import Somebody
from rows.stage import Stage, call

from models.database.transactions import transaction
from models.flow.decide.decisions import decide
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.approval.vote import Vote
from models.session.locked import Locked


def vote(stage: Stage, who: Somebody, approval: Approval, result: str | None = "allow", **more: Any) -> str:
    """Vote as one person. Returns the id of the vote's event."""

    def verb(locked: Locked) -> str:
        row = locked.db.get_one(Approval, approval.id, lock=True)
        return decide(locked, row, Decision(result=result, **more))  # type: ignore[arg-type]

    return stage.locked(approval.session_id, verb, who.principal)


def ask(stage: Stage, session_id: str, **arguments: Any) -> Approval:
    """Have the model propose a call that asks. Returns the approval."""
    stage.propose(session_id, call(**(arguments or {"command": "ls"})))
    return stage.approvals(session_id)[-1]


def votes(stage: Stage, approval: Approval) -> list[tuple[str, str]]:
    """The valid votes: person and result."""
    with transaction(stage.workspace_id) as db:
        return [(row.person_id, row.result) for row in Vote.of_approval(db, approval.id)]


def leave(stage: Stage, who: Somebody, group_id: str) -> None:
    """Have somebody leave a group."""
    with transaction(stage.workspace_id) as db:
        db.write("DELETE FROM membership WHERE group_id = %(g)s AND person_id = %(p)s", g=group_id, p=who.person_id)


def escalating(clerk: Somebody, *levels: tuple[Somebody, float], then: str = "deny") -> dict[str, Any]:
    """The approval settings of a tool whose first deadline is a minute."""
    steps = [{"approvers": [f"user:{who.person_id}"], "timeout_seconds": seconds} for who, seconds in levels]
    own = {"approvers": [f"user:{clerk.person_id}"], "timeout_seconds": 60, "on_timeout": "escalate"}
    return {**own, "escalate_to": steps, "then": then}
