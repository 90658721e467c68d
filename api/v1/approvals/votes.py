"""Who may decide an approval, and the votes so far."""

from typing import Literal

from api.door.responses import ResponseModel, with_fields_of
from models.pure.quorum import Escalation
from models.session.approval import row as approval
from models.session.approval.events import Voting


class EscalatedLevel(ResponseModel):
    """Who may decide at one level."""

    approvers: list[list[str]]
    timeout_seconds: float


class Escalated(ResponseModel):
    """The escalation of the approval: after each missed deadline, the people of the next level may decide."""

    level: int
    """The number of escalations so far."""
    levels: list[EscalatedLevel]
    then: Literal["deny", "end_run"]
    """The effect of the last level's deadline."""

    @classmethod
    def of(cls, row: approval.Approval) -> "Escalated | None":
        """Return the levels of an approval and its present level. None if the approval does not escalate."""
        if row.escalation is None:
            return None
        escalation = Escalation.of(row.escalation)
        levels = [
            EscalatedLevel(approvers=[list(names) for names in quorum.approvers], timeout_seconds=seconds)
            for quorum, seconds in zip(escalation.quorums, escalation.seconds, strict=True)
        ]
        return cls.from_row(escalation, level=row.level, levels=levels)


@with_fields_of(Voting)
class Standing(ResponseModel):
    """Who may decide, and the votes so far."""
