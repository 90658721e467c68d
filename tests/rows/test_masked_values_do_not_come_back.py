"""What is masked in a call's input is masked in all that comes from it. The model and the client that runs it get it whole."""

import base64
import json
from typing import Any

import pytest
from rows.stage import Stage, call, entry, say

from api.answers.approvals import Approval
from api.answers.events import shown_event
from api.door import dumps
from models import flow
from models.audit.acts import Audit
from models.database.transactions import transaction
from models.session.attempt import Attempt
from models.session.call_result import CallResult
from models.workspace import toolset
from models.workspace.toolset import OF_SESSION

SECRET = "hunter2&hunter2"
COMMAND = f"PASSWORD='{SECRET}' ./deploy"
RESULT = f"got {SECRET}\nand {json.dumps(SECRET)}\nand {base64.b64encode(SECRET.encode()).decode()}\ndone"


def told(stage: Stage, session: str) -> str:
    """All that readers without `reveal` are shown of a session: events, approvals, and the audit."""
    with transaction(stage.workspace_id) as db:
        acts = [row.details for row in db.find(Audit, "WHERE chain = %(chain)s", chain=session)]
    shown = [shown_event(event, whole=False) for event in stage.events(session)]
    return json.dumps([acts, shown], ensure_ascii=False) + "".join(dumps(Approval.of(row)) for row in stage.approvals(session))


def started(stage: Stage, *blocks: dict[str, Any], **session: Any) -> tuple[str, Any]:
    """A session, and the first of these calls."""
    found = stage.session(**session)
    stage.message(found)
    return found, stage.reply(found, *(blocks or [call(command=COMMAND)]))[0]


def test_a_result_is_masked_for_readers_and_whole_for_the_model(stage: Stage) -> None:
    session, found = started(stage, bash="always_allow")
    stage.run_call(found, RESULT)
    said = told(stage, session)
    assert "hunter2" not in said
    assert base64.b64encode(SECRET.encode()).decode()[:12] not in said
    assert "got «masked»" in said
    assert "done" in said
    assert stage.result(found) == RESULT
    assert stage.history(session)[-1]["content"][0]["content"] == [say(RESULT)]


def test_data_and_errors_are_masked_too(stage: Stage) -> None:
    session, found = started(stage, bash="always_allow")
    held = stage.claim_call(found)
    assert held
    stage.finish_call(held, f"bash: {SECRET}: command not found", is_error=True, structured={SECRET: [f"x{SECRET}", 1]})
    assert "hunter2" not in told(stage, session)


def test_the_client_s_result_is_masked_and_its_input_whole_for_who_runs_it(stage: Stage) -> None:
    session, found = started(stage, call("refund", n=1, note=f"password='{SECRET}'"), custom=("refund",))
    [event] = stage.events(session, "agent.custom_tool_use")
    assert shown_event(event, whole=True)["input"] == {"n": 1, "note": f"password='{SECRET}'"}
    assert shown_event(event, whole=False)["input"] == {"n": 1, "note": "password='«masked»'"}
    assert "shown_input" not in str([shown_event(event, whole=whole) for whole in (True, False)])
    said = {"type": "user.custom_tool_result", "custom_tool_use_id": found.id, "content": [say(f"paid with {SECRET}")]}
    first, again = stage.send(session, said), stage.send(session, said)
    assert first[0].id == again[0].id, "the same result again is the same"
    assert "hunter2" not in told(stage, session)
    assert stage.result(found) == f"paid with {SECRET}"


@pytest.mark.parametrize(
    "said",
    [
        {"result": "allow", "respond": (say(f"it says {SECRET}"),)},
        {"result": "deny", "deny_message": f"never send {SECRET}"},
    ],
)
def test_what_a_person_says_in_the_tool_s_place_is_masked(stage: Stage, said: dict[str, Any]) -> None:
    session, found = started(stage)
    stage.decide(stage.approvals(session)[0], **said)
    assert "hunter2" not in told(stage, session)
    assert SECRET in json.dumps(stage.get(CallResult, found.id).content)
    stage.decide(stage.approvals(session)[0], **said)
    stage.check(session)


def test_the_output_of_a_lost_attempt_is_masked_even_where_it_is_cut(stage: Stage) -> None:
    session, found = started(stage, bash="always_allow")
    held = stage.claim_call(found)
    assert held
    Attempt.say(stage.workspace_id, held.id, held.attempt, f"r2&hunter2 is what it begins with, then {SECRET}, then hunter2&")
    stage.locked(session, lambda db, locked: flow.lose_call(db, locked, db.get_one(type(found), held.id)))
    [approval] = stage.approvals(session)
    shown = json.loads(dumps(Approval.of(approval)))
    assert shown["attempt"]["output"] == "«masked» is what it begins with, then «masked», then «masked»"
    assert SECRET in dumps(Approval.of(approval, reveal=True))
    stage.decide(approval, outcome="happened", content=(say(f"it printed {SECRET}"),))
    assert "hunter2" not in told(stage, session)


def test_what_a_tool_asks_is_masked(stage: Stage) -> None:
    session, found = started(stage, bash="always_allow")
    held = stage.claim_call(found)
    assert held
    asks = {"ok": {"message": f"Send {SECRET}?", "schema": {"type": "object"}}}
    stage.finish_call(held, question={"requests": asks, "state": None})
    assert "hunter2" not in told(stage, session)


def test_a_rule_that_quotes_the_command_is_masked(stage: Stage) -> None:
    policy = {"type": "rules", "default": "allow", "rules": [{"effect": "deny", "match": "bash(rm *)"}]}
    for secret in ("hunter2hunter2", "hunter2" * 9):
        session, found = started(stage, call(command=f'x "://b:{secret}@h/$(id)"'), bash=policy)
        assert "is computed when it runs" in found.rule
        assert "hunter2" not in told(stage, session)


def test_a_cached_result_is_masked_again(stage: Stage) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "pin": {"type": "string", "writeOnly": True}}}
    cached = {"seconds": 60, "scope": "session"}
    toolset.announce(
        {"orders": [entry("look", idempotent=True, input_schema=schema, cache=cached, policy={"type": "always_allow"})]}
    )
    session = stage.session(servers={"shop": "assent:orders"})
    stage.message(session)
    [first] = stage.reply(session, call("mcp__shop__look", n=1, pin=SECRET))
    stage.run_call(first, RESULT)
    [second] = stage.reply(session, call("mcp__shop__look", n=1, pin=SECRET))
    assert stage.claim_call(second) is None
    assert stage.get(type(second), second.id).cached_from == first.id
    assert "hunter2" not in told(stage, session)


def test_a_long_result_read_in_parts_is_masked(stage: Stage) -> None:
    toolset.announce({OF_SESSION: [entry("read_result", input_schema={"type": "object"})]})
    session, found = started(stage, bash="always_allow")
    held = stage.claim_call(found)
    assert held
    stage.finish_call(held, "its ends", whole=RESULT.encode())
    [reading] = stage.reply(session, call(f"mcp__{OF_SESSION}__read_result", call_id=found.id))
    stage.run_call(reading, f"[lines 2 to 3 of 9]\nr2&hunter2 and on\n7:a line with {SECRET}\n8:that ends in hunter2&")
    said = told(stage, session)
    assert "hunter2" not in said
    assert "7:a line with «masked»" in said
    assert SECRET in stage.result(reading)


def test_what_a_person_edited_away_is_masked_still(stage: Stage) -> None:
    """The tool may know it from elsewhere; and so is what the person typed instead."""
    session, found = started(stage)
    typed = "PASSWORD=another-one ./deploy; cat .env"
    stage.decide(stage.approvals(session)[0], result="allow", updated_input={"command": typed})
    stage.run_call(found, f"{SECRET} and another-one")
    said = told(stage, session)
    assert "hunter2" not in said
    assert "another-one" not in said
    assert "cat .env" in said


def test_a_short_value_is_only_masked_where_it_was(stage: Stage) -> None:
    session, found = started(stage, call(command="PASSWORD=sesame ./x"), bash="always_allow")
    stage.run_call(found, "open sesame")
    assert "open sesame" in told(stage, session)
