"""Notices of an approval, as notifiers get them."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from models.notices.notice import Notice
from models.session.approval.row import Approval

NOTICE = Notice(
    approval_id="appr_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0",
    workspace_id="wrkspc_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0",
    stage="requested",
    title="Run shell command: ls -l",
    sentence="Agent wants to run a shell command",
    evidence="ls -l",
    agent="Agent",
    deadline=datetime(2026, 11, 23, 12, 0, tzinfo=UTC),
    afterwards="If nobody decides, the call is denied.",
    url="http://localhost:8000/inbox/approvals/appr_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0",
    buttons=("allow", "deny"),
    input_sha256="0" * 64,
)
DECIDED: dict[str, Any] = {
    "stage": "decided",
    "outcome": "Allowed by Anna",
    "buttons": (),
    "evidence": "",
    "deadline": None,
    "afterwards": "",
}
"""The fields that differ once the approval is decided."""


def notice_of(approval: Approval, **changes: Any) -> Notice:
    """The notice of a call that waits."""
    own = {"approval_id": approval.id, "workspace_id": approval.workspace_id, "input_sha256": approval.input_sha256}
    return replace(NOTICE, deadline=approval.expires_at, **own | changes)
