"""The arguments of a call as its tool declares them: their titles, in the order of the tool's author."""

from typing import Any

from models.database.rows import Db
from models.pure.json.property_order import in_order
from models.session.approval.row import Approval
from models.workspace.toolset import entry_of


def schema_of(db: Db, approval: Approval) -> dict[str, Any]:
    """Return the tool's schema when people were asked, with its properties in the order that the tool's server declares.

    Where no server says the order, those that are needed come first. The order says nothing of what is decided.
    """
    call = approval.call(db) if approval.tool_call_id else None
    entry = entry_of(db, call.address, call.tool) if call and call.address and call.tool else None
    schema: dict[str, Any] = in_order(approval.input_schema or {}, (entry or {}).get("property_order") or {})
    return schema
