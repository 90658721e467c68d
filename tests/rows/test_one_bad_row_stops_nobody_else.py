"""A broken row is refused or skipped, and does not stop the sweep for other rows."""

from datetime import timedelta

from psycopg.types.json import Jsonb
from rows.stage import Stage

from models.database.transactions import transaction
from models.session.tool_call.row import ToolCall
from workers.sweeps import rescuing

BEYOND = {"command": "true", "n": 2**60}
"""JSON that Postgres stores and RFC 8785 cannot express. No API writes it."""


def _tamper(stage: Stage, tool_call: ToolCall) -> None:
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE call_input SET input = %(input)s WHERE tool_call_id = %(id)s", id=tool_call.id, input=Jsonb(BEYOND))


def _lapse(stage: Stage, *calls: ToolCall) -> None:
    with transaction(stage.workspace_id) as db:
        for age, one in enumerate(calls):
            lapse = "UPDATE tool_call SET lease_until = assent_now() - %(ago)s WHERE id = %(id)s"
            db.write(lapse, id=one.id, ago=timedelta(minutes=len(calls) - age))


def test_a_changed_input_that_cannot_be_hashed_is_refused(stage: Stage) -> None:
    session_id = stage.session(bash="always_ask")
    tool_call = stage.propose(session_id)
    stage.confirm(session_id, tool_call.id)
    _tamper(stage, tool_call)

    assert stage.claim_call(tool_call) is None

    assert stage.get(ToolCall, tool_call.id).status == "refused"


def test_a_call_that_cannot_be_rescued_does_not_stop_the_rescue_of_the_next(stage: Stage) -> None:
    calls = []
    for _ in range(2):
        session_id = stage.session(bash="always_allow")
        tool_call = stage.propose(session_id)
        assert stage.claim_call(tool_call)
        calls.append(tool_call)
    _tamper(stage, calls[0])
    _lapse(stage, *calls)

    rescuing.rescue()

    assert stage.get(ToolCall, calls[1].id).status == "unknown"
