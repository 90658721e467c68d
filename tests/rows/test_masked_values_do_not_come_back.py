"""A value masked in a call's input is masked in everything that follows. The model and the running client get it whole."""

import base64
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from own_database import Clock
from rows.stage import Stage, call, entry, say

from api.door.routes import dumps
from api.v1.approvals.responses import Approval
from models.audit.acts import Audit
from models.database.transactions import transaction
from models.flow.run.results import lose_call
from models.pure.masking import mask
from models.session.tool_call.attempt import Attempt
from models.session.tool_call.result import CallResult
from models.workspace import toolset
from models.workspace.toolset import OF_SESSION

SECRET = "hunter2&hunter2"
COMMAND = f"PASSWORD='{SECRET}' ./deploy"
RESULT = f"got {SECRET}\nand {json.dumps(SECRET)}\nand {base64.b64encode(SECRET.encode()).decode()}\ndone"


def visible(stage: Stage, session: str) -> str:
    """Everything that readers without `reveal` see of a session: events, approvals and audit."""
    with transaction(stage.workspace_id) as db:
        acts = [row.details for row in db.find(Audit, "WHERE chain = %(chain)s", chain=session)]
    shown = [event.shown(whole=False) for event in stage.events(session)]
    return json.dumps([acts, shown], ensure_ascii=False) + "".join(answer(stage, row) for row in stage.approvals(session))


def answer(stage: Stage, approval: Any, **more: Any) -> str:
    """The approval as the API returns it."""
    with transaction(stage.workspace_id) as db:
        return dumps(Approval.of(db, approval, **more))


def started(stage: Stage, block: dict[str, Any] | None = None, **options: Any) -> tuple[str, Any]:
    """A session whose model proposes one call."""
    session_id = stage.session(**options)
    return session_id, stage.propose(session_id, block or call(command=COMMAND))


def test_a_result_is_masked_for_readers_and_whole_for_the_model(stage: Stage) -> None:
    session, tool_call = started(stage, bash="always_allow")
    stage.run_call(tool_call, RESULT)
    shown = visible(stage, session)
    assert "hunter2" not in shown
    assert base64.b64encode(SECRET.encode()).decode()[:12] not in shown
    assert "got «masked»" in shown
    assert "done" in shown
    assert stage.result(tool_call) == RESULT
    assert stage.history(session)[-1]["content"][0]["content"] == [say(RESULT)]


def test_errors_and_structured_content_are_masked(stage: Stage) -> None:
    session, tool_call = started(stage, bash="always_allow")
    held = stage.begin_call(tool_call)
    stage.finish_call(held, f"bash: {SECRET}: command not found", is_error=True, structured={SECRET: [f"x{SECRET}", 1]})
    assert "hunter2" not in visible(stage, session)


def test_the_client_that_runs_a_call_gets_its_input_whole_and_its_result_is_masked(stage: Stage) -> None:
    session, tool_call = started(stage, call("refund", n=1, note=f"password='{SECRET}'"), custom=("refund",))
    [event] = stage.events(session, "agent.custom_tool_use")
    assert event.shown(whole=True)["input"] == {"n": 1, "note": f"password='{SECRET}'"}
    assert event.shown(whole=False)["input"] == {"n": 1, "note": "password='«masked»'"}
    assert "shown_input" not in str([event.shown(whole=whole) for whole in (True, False)])
    result = {"type": "user.custom_tool_result", "custom_tool_use_id": tool_call.id, "content": [say(f"paid with {SECRET}")]}
    first, again = stage.send(session, result), stage.send(session, result)
    assert first[0].id == again[0].id, "the same result again is a no-op"
    assert "hunter2" not in visible(stage, session)
    assert stage.result(tool_call) == f"paid with {SECRET}"


@pytest.mark.parametrize(
    "decision",
    [
        {"result": "allow", "respond": (say(f"it says {SECRET}"),)},
        {"result": "deny", "deny_message": f"never send {SECRET}"},
    ],
)
def test_a_person_s_answer_in_the_tool_s_place_is_masked(stage: Stage, decision: dict[str, Any]) -> None:
    session, tool_call = started(stage)
    stage.decide(stage.approvals(session)[0], **decision)
    assert "hunter2" not in visible(stage, session)
    assert SECRET in json.dumps(stage.get(CallResult, tool_call.id).content)
    stage.decide(stage.approvals(session)[0], **decision)
    stage.check(session)


def test_the_output_of_a_lost_attempt_is_masked_even_where_it_is_cut(stage: Stage) -> None:
    session, tool_call = started(stage, bash="always_allow")
    held = stage.begin_call(tool_call)
    Attempt.say(held, f"r2&hunter2 is what it begins with, then {SECRET}, then hunter2&")
    stage.worked(held, lambda locked: lose_call(locked, locked.db.get_one(type(tool_call), held.id)))
    [approval] = stage.approvals(session)
    shown = json.loads(answer(stage, approval))
    assert shown["attempt"]["output"] == "«masked» is what it begins with, then «masked», then «masked»"
    assert SECRET in answer(stage, approval, reveal=True)
    stage.decide(approval, outcome="happened", content=(say(f"it printed {SECRET}"),))
    assert "hunter2" not in visible(stage, session)


def test_a_tool_s_question_is_masked(stage: Stage) -> None:
    session, tool_call = started(stage, bash="always_allow")
    held = stage.begin_call(tool_call)
    asks = {"ok": {"message": f"Send {SECRET}?", "schema": {"type": "object"}}}
    stage.finish_call(held, question={"requests": asks, "state": None})
    assert "hunter2" not in visible(stage, session)


def test_a_rule_that_quotes_the_command_is_masked(stage: Stage) -> None:
    policy = {"type": "rules", "default": "allow", "rules": [{"effect": "deny", "match": "bash(rm *)"}]}
    for secret in ("hunter2hunter2", "hunter2" * 9):
        session, tool_call = started(stage, call(command=f'x "://b:{secret}@h/$(id)"'), bash=policy)
        assert "is computed when it runs" in tool_call.rule
        assert "hunter2" not in visible(stage, session)


def test_a_cached_result_is_masked_again(stage: Stage) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "pin": {"type": "string", "writeOnly": True}}}
    cached = {"seconds": 60, "scope": "session"}
    toolset.announce(
        {"orders": [entry("look", idempotent=True, input_schema=schema, cache=cached, policy={"type": "always_allow"})]}
    )
    session = stage.session(servers={"shop": "assent:orders"})
    first = stage.propose(session, call("mcp__shop__look", n=1, pin=SECRET))
    stage.run_call(first, RESULT)
    [second] = stage.reply(session, call("mcp__shop__look", n=1, pin=SECRET))
    assert stage.claim_call(second) is None
    assert stage.get(type(second), second.id).cached_from == first.id
    assert "hunter2" not in visible(stage, session)


def test_a_long_result_read_in_parts_is_masked(stage: Stage) -> None:
    toolset.announce({OF_SESSION: [entry("read_result", input_schema={"type": "object"})]})
    session, tool_call = started(stage, bash="always_allow")
    stage.finish_call(stage.begin_call(tool_call), "its ends", whole=RESULT.encode())
    [reading] = stage.reply(session, call(f"mcp__{OF_SESSION}__read_result", call_id=tool_call.id))
    stage.run_call(reading, f"[lines 2 to 3 of 9]\nr2&hunter2 and on\n7:a line with {SECRET}\n8:that ends in hunter2&")
    shown = visible(stage, session)
    assert "hunter2" not in shown
    assert "7:a line with «masked»" in shown
    assert SECRET in stage.result(reading)


def test_a_value_that_a_person_edited_away_stays_masked(stage: Stage) -> None:
    """The tool may know the value from elsewhere. The value typed instead is masked, too."""
    session, tool_call = started(stage)
    typed = "PASSWORD=another-one ./deploy; cat .env"
    stage.decide(stage.approvals(session)[0], result="allow", updated_input={"command": typed})
    stage.run_call(tool_call, f"{SECRET} and another-one")
    shown = visible(stage, session)
    assert "hunter2" not in shown
    assert "another-one" not in shown
    assert "cat .env" in shown


def test_a_short_value_is_masked_only_in_the_input(stage: Stage) -> None:
    session, tool_call = started(stage, call(command="PASSWORD=sesame ./x"), bash="always_allow")
    stage.run_call(tool_call, "open sesame")
    assert "open sesame" in visible(stage, session)


def test_a_list_of_approvals_masks_nothing_again(stage: Stage) -> None:
    """However long the calls' texts are: what people are shown is stored with the question."""
    session = stage.session()
    stage.message(session)
    texts = [f"echo {number} " + "password=" * 2_000 for number in range(4)]
    stage.reply(session, *(call(command=text) for text in texts))
    rows = stage.approvals(session)
    listed = cpu_seconds(lambda: [answer(stage, row) for row in rows])
    assert listed < cpu_seconds(lambda: mask({"command": texts[0]}))
    assert [row.masked.arguments["command"] for row in rows] == [f"echo {number} password=«masked»" for number in range(4)]


def test_an_edited_call_that_is_asked_about_again_is_shown_as_it_was_edited(stage: Stage, clock: Clock) -> None:
    session = stage.session()
    tool_call = stage.propose(session, call(command="ls"))
    stage.decide(stage.approvals(session)[0], result="allow", updated_input={"command": "deploy --password=hunter2hunter2"})
    stage.lose(stage.begin_call(tool_call), clock)
    [again] = [approval for approval in stage.approvals(session) if approval.kind == "unknown_outcome"]
    assert again.masked.arguments == {"command": "deploy --password=«masked»"}


def cpu_seconds(act: Callable[[], object]) -> float:
    """Return the least CPU time of three runs."""

    def once() -> float:
        start = time.thread_time()
        act()
        return time.thread_time() - start

    return min(once() for _ in range(3))
