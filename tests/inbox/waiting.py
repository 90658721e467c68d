"""Calls that wait for people, for the pages to show."""

from typing import Any

from rows.stage import Stage, call

from models.session.approval import Approval


def asked(stage: Stage, *blocks: dict[str, Any], text: str = "Tidy up.", session_id: str = "", **session: Any) -> list[Approval]:
    """The approvals of a session's turn; by default of a new session that wants to run `ls -l`."""
    session_id = session_id or stage.session(**session)
    stage.message(session_id, text)
    stage.reply(session_id, *(blocks or [call(command="ls -l")]))
    return [row for row in stage.approvals(session_id) if row.status == "pending"]


def status(stage: Stage, approval: Approval) -> str:
    """The approval's status now."""
    return stage.get(Approval, approval.id).status
