"""Edited calls: a person's input takes the place of the proposed one."""

from typing import Any

from models.database import ids
from models.database.rows import Db
from models.pure.json.canonical import digest
from models.pure.text import words
from models.session.locked import Locked
from models.session.tool_call.input import CallInput
from models.session.tool_call.result import Result
from models.session.tool_call.row import ToolCall
from models.workspace.halt import is_halted

_COPIED = (
    *("workspace_id", "session_id", "thread_id", "turn_id", "position", "provider_id"),
    *("name", "kind", "idempotent", "rule", "answer_seconds"),
)


def edit(db: Db, call: ToolCall, edited: dict[str, Any], asked_by: list[str]) -> None:
    """Replace the input of a call whose event is not emitted yet. `asked_by` is a column of CallInput."""
    call_input = CallInput.of(db, call)
    if call_input.proposed_input is None:
        call_input.proposed_input = call_input.input
    call_input.input, call_input.asked_by = edited, asked_by
    call.input_sha256 = digest(edited)


def replace(
    locked: Locked,
    call: ToolCall,
    edited: dict[str, Any],
    shown: dict[str, Any],
    asked_by: list[str],
) -> None:
    """Settle a call whose event the client already has, and send the client another call, with the edited input.

    `shown` is the edited input with its secrets masked. `asked_by` as for `edit`.
    """
    before = CallInput.of(locked.db, call)
    call.settle(locked, "replaced", Result.error(words.replaced()))
    copy = ToolCall(
        id=ids.new("sevt"),
        input_sha256=digest(edited),
        permission="allow",
        status="held",
        due_at=locked.now,
        created_at=locked.now,
        **{name: getattr(call, name) for name in _COPIED},
    )
    copy.put_input(
        locked.db, input=edited, proposed_input=before.input, shown_input=shown, secrets=before.secrets, asked_by=asked_by
    )
    if not is_halted(locked.db):
        copy.begin_with_client(locked)
        copy.announce(locked)
    copy.put(locked)
