"""Unmasks the secrets in the calls and results of a page of events. Each use is audited."""

from collections.abc import Sequence
from typing import Any

from api.door import auth
from models.audit.principal import Principal
from models.database.query import select
from models.database.rows import Db
from models.flow.lock import lock
from models.session.event.row import Event
from models.session.tool_call.events import OF_CLIENT, RESULTS, USES
from models.session.tool_call.input import CallInput
from models.session.tool_call.result import CallResult
from models.session.tool_call.row import ToolCall

_CALL_FIELDS = dict(RESULTS.values())
"""By type of a result's event: the field that names the call."""


def revealed(db: Db, principal: Principal, session_id: str, events: Sequence[Event]) -> dict[str, dict[str, Any]]:
    """Return the unmasked fields of each event, by its id. Raises Denied without the scope `reveal`."""
    auth.require(principal, "reveal")
    calls = {event.id: event.id for event in events if event.type in USES}
    calls |= {event.id: event.body[_CALL_FIELDS[event.type]] for event in events if event.type in _CALL_FIELDS}
    locked = lock(db, session_id, principal)
    of_session = "WHERE id = ANY(%(ids)s) AND session_id = %(session)s"
    stored = {call.id: call for call in db.find(ToolCall, of_session, ids=list(set(calls.values())), session=session_id)}
    payloads = [select(table, "WHERE tool_call_id = ANY(%(ids)s)", ids=list(stored)) for table in (CallInput, CallResult)]
    db.read(*payloads)  # one round trip; `of` takes the rows from memory
    locked.note("events.revealed", session_id, events=len(events), tool_calls=sorted(stored))
    return {event.id: _unmasked(db, event, stored[calls[event.id]]) for event in events if calls.get(event.id) in stored}


def _unmasked(db: Db, event: Event, call: ToolCall) -> dict[str, Any]:
    if event.type in USES:
        call_input = CallInput.of(db, call)
        return {"input": event.body["input"] if call.kind in OF_CLIENT else call_input.proposed_input or call_input.input}
    result = CallResult.of(db, call)
    structured = {"structured_content": result.structured} if result.structured is not None else {}
    return {"content": result.content} | structured
