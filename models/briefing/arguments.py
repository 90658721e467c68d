"""The arguments of a call as its tool declares them: their titles, in the order of the tool's author."""

from collections.abc import Mapping
from typing import Any

from models.database.rows import Db
from models.pure.json.property_order import in_order
from models.session.approval.row import Approval
from models.session.row import Session
from models.session.tool_call.row import ToolCall
from models.workspace.toolset import entry_of


def schema_of(db: Db, approval: Approval) -> dict[str, Any]:
    """Return the tool's schema when people were asked, with its properties in the order that its server or its agent declares.

    Where nothing says the order, those that are needed come first. The order says nothing of what is decided.
    """
    call = approval.call(db) if approval.tool_call_id else None
    entry = _entry(db, approval, call) if call else None
    schema: dict[str, Any] = in_order(approval.input_schema or {}, (entry or {}).get("property_order") or {})
    return schema


def _entry(db: Db, approval: Approval, call: ToolCall) -> Mapping[str, Any] | None:
    """Return the tool's declaration as it is now; None for a built-in tool, and for one that is no longer declared."""
    if call.address and call.tool:
        return entry_of(db, call.address, call.tool)
    if call.kind != "custom":
        return None
    agent = db.get_one(Session, approval.session_id).agent_of(db, approval.thread(db))
    return next((tool for tool in agent["tools"] if tool["type"] == "custom" and tool["name"] == call.name), None)
