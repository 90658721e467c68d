"""Changes to a session by its owner: title, metadata, budget, and the agent's tools from the next turn on."""

from collections.abc import Mapping
from typing import Any

from models.errors import Conflict
from models.flow.spend import budgets
from models.pure.json.canonical import canonical
from models.session.event.of_session import SessionChanges, SessionUpdated
from models.session.locked import Locked
from models.workspace.agent import patched
from models.workspace.roster import with_bodies


def update(locked: Locked, changes: Mapping[str, Any]) -> None:
    """Apply `changes`: `title`, `metadata` (a patch; null deletes), `budget`, `tools` and `mcp_servers` (normal form). Idempotent.

    Raises Conflict for an archived session, and for tools while the session works; Invalid for too much metadata.
    """
    session = locked.session
    if session.status == "terminated":
        raise Conflict(f"Session {session.id} is archived and cannot be changed.")
    changed: SessionChanges = {}
    if "title" in changes and changes["title"] != session.title:
        session.title = changed["title"] = changes["title"]
    if "metadata" in changes:
        metadata = patched(session.metadata_, changes["metadata"])
        if metadata != session.metadata_:
            session.metadata_ = changed["metadata"] = metadata
    lists = {name: changes[name] for name in ("tools", "mcp_servers") if name in changes}
    if any(canonical(value) != canonical(session.configured(locked.db).get(name) or []) for name, value in lists.items()):
        if session.live:
            raise Conflict(f"Session {session.id} is {session.status}: its tools can change while it is idle or waits.")
        session.overrides = (session.overrides or {}) | lists
        changed["agent"] = with_bodies(locked.db, session.agent(locked.db))
    if "budget" in changes and budgets.replace(locked, changes["budget"]):
        changed["budget"] = session.budget
    if changed:
        locked.tell(SessionUpdated({"type": "session.updated", **changed}))
        locked.note("session.updated", session.id, fields=sorted(changed))
    if "budget" in changed:
        budgets.resume(locked)
