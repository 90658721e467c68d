"""The calls of a workspace's past, the newest sessions first, in pages, and what became of each."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa

from models.approval import Approval
from models.db import Db
from models.grant import Grant
from models.pure.policy import Rule
from models.session import Session
from models.tool_call import ToolCall

Then = Literal[
    "allowed_by_policy",
    "allowed_by_grant",
    "allowed_by_person",
    "allowed_at_deadline",
    "answered_by_person",
    "denied_by_policy",
    "denied_by_person",
    "expired",
    "cancelled",
    "waiting",
]
"""What became of a call's question, whether or not it ran afterwards."""

SESSIONS = 50
CALLS = 100
"""At once: an input can be as long as a megabyte."""

_LOOK = sa.func.md5(
    sa.func.concat(Session.agent_id, Session.agent_version, Session.long_results, sa.cast(Session.overrides, sa.Text))
)
"""Sessions of the same look have the same rules."""
_COLUMNS = (
    *(ToolCall.id, ToolCall.session_id, ToolCall.name, ToolCall.permission, ToolCall.rule, ToolCall.grants, ToolCall.created_at),
    sa.func.coalesce(ToolCall.proposed_input, ToolCall.input).label("input"),
    ToolCall.shown_input,
)
_JUDGED = sa.and_(
    # Neither what could not be asked at all, nor the call that took the place of one whose input a person changed.
    sa.not_(sa.and_(ToolCall.status == "refused", ToolCall.permission == "deny")),
    sa.not_(sa.and_(ToolCall.proposed_input.is_not(None), ToolCall.permission == "allow")),
)
_ALLOWED: dict[str, Then] = {"grant": "allowed_by_grant", "system": "allowed_at_deadline"}
_ENDED: dict[str, Then] = {
    "pending": "waiting",
    "denied": "denied_by_person",
    "answered": "answered_by_person",
    "expired": "expired",
    "cancelled": "cancelled",
}


def pages(
    db: Db, workspace_id: str, since: datetime, *, agent_id: str | None = None, tool: str | None = None
) -> Iterator[tuple[dict[str, str], list[Any]]]:
    """The calls of a few sessions at a time, at most CALLS at once, with the looks of these sessions.

    A call has `id`, `session_id`, `name`, `permission`, `rule`, `grants`, `created_at`, `input` as the model proposed it, and
    `shown_input`, the same with its secrets masked, None if it has none.
    """
    wanted = sa.select(Session.id, Session.created_at, _LOOK.label("look"))
    wanted = wanted.where(Session.workspace_id == workspace_id, Session.updated_at >= since)
    if agent_id:
        wanted = wanted.where(Session.agent_id == agent_id)
    wanted = wanted.order_by(Session.created_at.desc(), Session.id.desc()).limit(SESSIONS)
    sessions = list(db.execute(wanted))
    while sessions:
        looks = {row.id: row.look for row in sessions}
        calls = _calls(db, looks, since, tool)
        yield looks, calls
        while len(calls) == CALLS:
            calls = _calls(db, looks, since, tool, before=calls[-1].id)
            yield looks, calls
        last = sessions[-1]
        sessions = list(db.execute(wanted.where(sa.tuple_(Session.created_at, Session.id) < (last.created_at, last.id))))


def _calls(db: Db, looks: Mapping[str, str], since: datetime, tool: str | None, before: str | None = None) -> list[Any]:
    """The newest calls of these sessions, older than the one with the id `before`: ids sort by time."""
    wanted = sa.select(*_COLUMNS).where(ToolCall.session_id.in_(looks), ToolCall.created_at >= since, _JUDGED)
    if tool:
        wanted = wanted.where(ToolCall.name == tool)
    if before:
        wanted = wanted.where(ToolCall.id < before)
    return list(db.execute(wanted.order_by(ToolCall.id.desc()).limit(CALLS)))


def given(db: Db, calls: list[Any]) -> dict[str, Rule]:
    """The grants that allowed these calls, revoked or not."""
    wanted = {grant_id for call in calls for grant_id in call.grants or ()}
    return {grant.id: grant.rule for grant in db.scalars(sa.select(Grant).where(Grant.id.in_(wanted)))} if wanted else {}


def became(db: Db, calls: list[Any]) -> dict[str, Then]:
    """What became of these calls when they were judged, and asked about."""
    asked = [call.id for call in calls if call.permission == "ask"]
    columns = (Approval.tool_call_id, Approval.status, Approval.decided_by)
    found = sa.select(*columns).where(Approval.tool_call_id.in_(asked), Approval.kind == "tool_call")
    ends = {row.tool_call_id: row for row in db.execute(found.order_by(Approval.created_at, Approval.id))} if asked else {}
    return {call.id: _end(call, ends.get(call.id)) for call in calls}


def _end(call: Any, approval: Any) -> Then:
    if call.permission == "deny":
        return "denied_by_policy"
    if call.permission == "allow":
        return "allowed_by_grant" if call.grants else "allowed_by_policy"
    if approval is None:
        return "waiting"
    if approval.status == "allowed":
        kind = (approval.decided_by or "").partition(":")[0]
        return _ALLOWED.get(kind, "allowed_by_person")
    return _ENDED[approval.status]
