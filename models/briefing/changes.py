"""What differs since people were asked: the files that a tools worker saw, the branch, and what the session has cost."""

from collections.abc import Iterator, Mapping
from typing import Any

from models.database.rows import Db
from models.session.approval.evidence import Evidence
from models.session.approval.row import Approval
from models.session.row import Session


def changes_since(db: Db, approval: Approval) -> list[str]:
    """Return a sentence for each thing that differs since people were asked. Only of an approval that waits."""
    if approval.status != "pending":
        return []
    if approval.tool_call_id is None:
        return [f"The session has cost ${db.get_one(Session, approval.session_id).list_cost:.2f} by now."]
    evidence = db.get(Evidence, approval.id)
    return list(_of_files(evidence.first_body, evidence.body)) if evidence and evidence.first_body else []


def _of_files(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    if "problem" in now and "problem" not in before:
        yield "Since it was asked, the files have changed: the call would fail now."
    elif "problem" in before and "problem" not in now:
        yield "When it was asked, the call would have failed. The files have changed since."
    elif now.get("is_new") != before.get("is_new"):
        yield "Since it was asked, the file was removed." if now.get("is_new") else "Since it was asked, the file was made."
    elif "hunks" in now and now["hunks"] != before.get("hunks"):
        yield "Since it was asked, the file has changed. The change is shown as it would be now."
    if now.get("directory") != before.get("directory") and "directory" in now and "directory" in before:
        yield f"When it was asked, the command would have started in {before['directory']}."
    elif now.get("branch") != before.get("branch"):
        yield f"When it was asked, the branch was {before.get('branch') or 'none'}; it is {now.get('branch') or 'none'} now."
    elif now.get("commit") != before.get("commit"):
        yield f"Since it was asked, the branch {now.get('branch')} has moved to another commit."
