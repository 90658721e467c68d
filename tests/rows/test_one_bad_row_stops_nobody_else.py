"""A row that cannot be dealt with is refused or left alone; it neither stays for ever nor stops the sweep for the others."""

import sqlalchemy as sa
from rows.stage import Stage, call

from models.clock import DB_NOW
from models.db import transaction
from models.tool_call import ToolCall
from workers import sweeps

BEYOND = {"command": "true", "n": 2**60}
"""JSON that Postgres keeps and RFC 8785 cannot say: somebody wrote it past our doors (fault 27)."""


def _tamper(stage: Stage, found: ToolCall) -> None:
    with transaction(stage.workspace_id) as db:
        db.execute(sa.update(ToolCall).where(ToolCall.id == found.id).values(input=BEYOND))


def _lapse(stage: Stage, *found: ToolCall) -> None:
    with transaction(stage.workspace_id) as db:
        for age, one in enumerate(found):
            was = DB_NOW - sa.text(f"interval '{len(found) - age} minutes'")
            db.execute(sa.update(ToolCall).where(ToolCall.id == one.id).values(lease_until=was))


def test_a_changed_input_is_refused_also_when_it_cannot_be_hashed(stage: Stage) -> None:
    session_id = stage.session(bash="always_ask")
    stage.message(session_id)
    found = stage.reply(session_id, call())[0]
    stage.confirm(session_id, found.id)
    _tamper(stage, found)

    assert stage.claim_call(found) is None

    assert stage.get(ToolCall, found.id).status == "refused"


def test_a_call_that_cannot_be_rescued_does_not_keep_the_next_one_from_it(stage: Stage) -> None:
    calls = []
    for _ in range(2):
        session_id = stage.session(bash="always_allow")
        stage.message(session_id)
        found = stage.reply(session_id, call())[0]
        assert stage.claim_call(found)
        calls.append(found)
    _tamper(stage, calls[0])
    _lapse(stage, *calls)

    sweeps.rescue()

    assert stage.get(ToolCall, calls[1].id).status == "unknown"
