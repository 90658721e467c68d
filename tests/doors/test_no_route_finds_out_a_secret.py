"""No rule of one's own, no preview and no edit tells a key without `reveal` what a mask hides."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from doors.served import Caller, bad, good, key
from doors.waiting import SECRETIVE, approval_of, asked, decide, secretive
from rows.stage import Stage, call

from models.audit import text
from models.audit.acts import Audit
from models.database.transactions import transaction
from models.session.call_input import CallInput
from models.session.tool_call import ToolCall

PIN = "hunter2hunter2"
RIGHT, WRONG = "hun.*", "xyz.*"


@pytest.fixture
def reader(api: str, stage: Stage) -> Iterator[Caller]:
    """A client with every scope but `reveal`."""
    with Caller(api, key(stage, "read", "agents", "sessions", "approvals", "admin")) as client:
        yield client


def tried(client: Caller, path: str, guess: str, **more: Any) -> dict[str, Any]:
    """What a rule that guesses the argument at `path` would have done."""
    rule = {"effect": "deny", "match": {"tool": "*", "input": [{"path": path, "regex": guess}]}}
    found = good(client.post("/v1/policy/simulate", json={"rule": rule} | more))
    return {name: value for name, value in found.items() if name != "since"}


def simulations(stage: Stage) -> list[Audit]:
    """The audit's acts about simulations."""
    with transaction(stage.workspace_id) as db:
        return list(db.find(Audit, "WHERE action = %(action)s", action="policy.simulated"))


@pytest.mark.parametrize(
    ("path", "block"),
    [("/pin", call("transfer", amount=5, pin=PIN)), ("/command", call(command=f"PASSWORD={PIN} ./x"))],
)
def test_a_simulation_tells_a_right_guess_from_a_wrong_one_only_to_who_may_reveal(
    caller: Caller, reader: Caller, stage: Stage, path: str, block: dict[str, Any]
) -> None:
    tools = [SECRETIVE, {"type": "agent_toolset_20260401"}]
    asked(caller, stage, block, agent=caller.agent(tools=tools))
    right, wrong = (("PASSWORD=" if path == "/command" else "") + guess for guess in (RIGHT, WRONG))
    assert tried(reader, path, right)["deny"]["calls"] == tried(reader, path, wrong)["deny"]["calls"]
    assert tried(reader, path, right)["masked"] == 1
    assert simulations(stage) == []
    assert [tried(caller, path, guess)["deny"]["calls"] for guess in (right, wrong)] == [1, 0]
    assert tried(caller, path, right)["masked"] == 0
    first = simulations(stage)[0]
    assert first.principal.startswith("api_key:key_")
    with transaction(stage.workspace_id) as db:
        [texts] = text.of(db, [(first.chain, first.seq)]).values()
    assert json.loads(texts["rule"])["match"]["input"][0]["regex"] == right
    assert PIN not in str(first.details) + str(texts)


def test_a_schema_that_says_less_by_now_does_not_unmask_the_past(caller: Caller, reader: Caller, stage: Stage) -> None:
    found = secretive(caller, stage, amount=5, pin=PIN)
    told = SECRETIVE | {"input_schema": {"type": "object", "properties": {"pin": {"type": "string"}}}}
    good(reader.post(f"/v1/sessions/{found.session_id}", json={"agent": {"tools": [told]}}))
    assert tried(reader, "/pin", RIGHT) | {"deny": None, "ask": None} == tried(reader, "/pin", WRONG) | {"deny": None, "ask": None}
    simulated = good(reader.post("/v1/policy/simulate", json={"rule": {"effect": "deny", "match": "transfer"}}))
    [example] = simulated["deny"]["examples"]
    assert example["input"] == {"amount": 5, "pin": "«masked»"}


def test_what_a_grant_allowed_is_allowed_by_it_though_its_input_is_masked(caller: Caller, reader: Caller, stage: Stage) -> None:
    found = secretive(caller, stage, amount=5, pin=PIN)
    decide(caller, found, result="allow", scope="session", match="exact")
    said = {"type": "user.custom_tool_result", "custom_tool_use_id": found.id, "content": []}
    good(caller.tell(found.session_id, said))
    stage.reply(found.session_id, call("transfer", amount=5, pin=PIN))
    simulated = good(reader.post("/v1/policy/simulate", json={"rule": {"effect": "deny", "match": "bash"}}))
    assert simulated["allow"]["then"] == {"allowed_by_grant": 1}


def test_a_preview_counts_by_what_is_shown(caller: Caller, stage: Stage) -> None:
    first, _second = asked(caller, stage, *(call(command=f"x --token {PIN} {name}") for name in "ab"))
    path = f"/v1/approvals/{approval_of(caller, first)['id']}/preview"
    guesses = ("x --token hun*", "x --token xyz*", "x *")
    counts = [good(caller.post(path, json={"scope": "session", "match": f"bash({guess})"}))["waiting"] for guess in guesses]
    assert counts == [0, 0, 1]
    transfers = [call("transfer", amount=5, pin=PIN), call("transfer", amount=5, pin=PIN)]
    [one, _other] = asked(caller, stage, *transfers, agent=caller.agent(tools=[SECRETIVE]))
    path = f"/v1/approvals/{approval_of(caller, one)['id']}/preview"
    assert good(caller.post(path, json={"scope": "session", "match": "exact"}))["waiting"] == 1


@pytest.mark.parametrize(
    ("block", "edited", "pointer"),
    [
        (call(command=f"PASSWORD={PIN} ./x"), {"command": "echo «masked»"}, "/command"),
        (call(command=f"PASSWORD={PIN} ./x"), {"command": "PASSWORD=«masked» ./x; echo $PASSWORD | rev"}, "/command"),
        (call(command=f"PASSWORD={PIN} ./x"), {"command": "PASSWORD=«masked» ./y"}, "/command"),
        (call(command=f"PASSWORD={PIN} ./x"), {"command": "PASSWORD=«masked» ./x", "description": "«masked»"}, "/description"),
        (call("transfer", amount=5, pin=PIN), {"amount": 5, "pin": "«masked»!"}, "/pin"),
        (call("transfer", amount=5, pin=PIN), {"amount": 5, "memo": "«masked»"}, "/memo"),
    ],
)
def test_an_edit_that_moves_a_mask_is_a_400_that_says_what_to_do(
    caller: Caller, reader: Caller, stage: Stage, block: dict[str, Any], edited: dict[str, Any], pointer: str
) -> None:
    agent = caller.agent(tools=[SECRETIVE, {"type": "agent_toolset_20260401"}])
    [found] = asked(caller, stage, block, agent=agent)
    path = f"/v1/approvals/{approval_of(reader, found)['id']}/decision"
    answer = reader.post(path, json={"result": "allow", "updated_input": edited})
    assert PIN not in str(bad(answer, 400, f"updated_input: {pointer}: ", "type the value", "`reveal`"))
    assert stage.get(ToolCall, found.id).status == "asked"


def test_a_mask_that_stays_where_it_was_runs_with_its_value_and_is_shown_as_a_mask(
    caller: Caller, reader: Caller, stage: Stage
) -> None:
    found = secretive(caller, stage, amount=5, pin=PIN)
    approval = decide(reader, found, result="allow", updated_input={"amount": 6, "pin": "«masked»"})
    assert approval["decided_input"] == {"amount": 6, "pin": "«masked»"}
    assert stage.get(CallInput, found.id).input == {"amount": 6, "pin": PIN}


def test_what_is_typed_is_shown_unless_it_is_a_secret_itself(caller: Caller, stage: Stage) -> None:
    """Of the hidden value, too, if somebody who knows it types it where no mask would be."""
    [found] = asked(caller, stage, call(command=f"PASSWORD={PIN} ./x"))
    path = f"/v1/approvals/{approval_of(caller, found)['id']}"
    edited = {"command": f"echo {PIN}; PASSWORD=another-one ./y"}
    approval = good(caller.post(f"{path}/decision", json={"result": "allow", "updated_input": edited}))
    assert approval["decided_input"] == {"command": "echo «masked»; PASSWORD=«masked» ./y"}
    assert good(caller.get(path, params={"reveal": "true"}))["decided_input"] == edited
    stage.run_call(found, "done")
    assert PIN not in str(stage.history(found.session_id)[-1])
