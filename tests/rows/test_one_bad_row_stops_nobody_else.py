"""A row that cannot be dealt with is refused or left alone; it neither stays for ever nor stops the sweep for the others."""

from datetime import timedelta

from psycopg.types.json import Jsonb
from rows.stage import Stage, call

from models.database.transactions import transaction
from models.session.tool_call import ToolCall
from workers import sweeps

BEYOND = {"command": "true", "n": 2**60}
"""JSON that Postgres keeps and RFC 8785 cannot say: somebody wrote it past our doors (fault 27)."""


def _tamper(stage: Stage, found: ToolCall) -> None:
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE call_input SET input = %(input)s WHERE tool_call_id = %(id)s", id=found.id, input=Jsonb(BEYOND))


def _lapse(stage: Stage, *found: ToolCall) -> None:
    with transaction(stage.workspace_id) as db:
        for age, one in enumerate(found):
            lapse = "UPDATE tool_call SET lease_until = assent_now() - %(ago)s WHERE id = %(id)s"
            db.write(lapse, id=one.id, ago=timedelta(minutes=len(found) - age))


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
