"""A key without `reveal` cannot find out a masked value: not by a simulated rule, a preview or an edited input."""

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
from models.session.tool_call.input import CallInput
from models.session.tool_call.row import ToolCall

PIN = "hunter2hunter2"
RIGHT, WRONG = "hun.*", "xyz.*"


@pytest.fixture
def reader(api: str, stage: Stage) -> Iterator[Caller]:
    """A client with every scope but `reveal`."""
    with Caller(api, key(stage, "read", "agents", "sessions", "approvals", "admin")) as client:
        yield client


def simulate(client: Caller, path: str, guess: str) -> dict[str, Any]:
    """Simulate a rule that guesses the argument at `path`. Returns the result without its time."""
    rule = {"effect": "deny", "match": {"tool": "*", "input": [{"path": path, "regex": guess}]}}
    simulation = good(client.post("/v1/policy/simulate", json={"rule": rule}))
    return {name: value for name, value in simulation.items() if name != "since"}


def simulations(stage: Stage) -> list[Audit]:
    """Return the audit acts of simulations."""
    with transaction(stage.workspace_id) as db:
        return list(db.find(Audit, "WHERE action = %(action)s", action="policy.simulated"))


@pytest.mark.parametrize(
    ("path", "block"),
    [("/pin", call("transfer", amount=5, pin=PIN)), ("/command", call(command=f"PASSWORD={PIN} ./x"))],
)
def test_only_with_reveal_does_a_simulation_tell_a_right_guess_from_a_wrong_one(
    caller: Caller, reader: Caller, stage: Stage, path: str, block: dict[str, Any]
) -> None:
    tools = [SECRETIVE, {"type": "agent_toolset_20260401"}]
    asked(caller, stage, block, agent=caller.agent(tools=tools))
    right, wrong = (("PASSWORD=" if path == "/command" else "") + guess for guess in (RIGHT, WRONG))
    assert simulate(reader, path, right)["deny"]["calls"] == simulate(reader, path, wrong)["deny"]["calls"]
    assert simulate(reader, path, right)["masked"] == 1
    assert simulations(stage) == []
    assert [simulate(caller, path, guess)["deny"]["calls"] for guess in (right, wrong)] == [1, 0]
    assert simulate(caller, path, right)["masked"] == 0
    first = simulations(stage)[0]
    assert first.principal.startswith("api_key:key_")
    with transaction(stage.workspace_id) as db:
        [texts] = text.of(db, [(first.chain, first.seq)]).values()
    assert json.loads(texts["rule"])["match"]["input"][0]["regex"] == right
    assert PIN not in str(first.details) + str(texts)


def test_a_later_schema_without_the_secret_does_not_unmask_earlier_calls(caller: Caller, reader: Caller, stage: Stage) -> None:
    tool_call = secretive(caller, stage, amount=5, pin=PIN)
    plain = SECRETIVE | {"input_schema": {"type": "object", "properties": {"pin": {"type": "string"}}}}
    good(reader.post(f"/v1/sessions/{tool_call.session_id}", json={"agent": {"tools": [plain]}}))
    assert simulate(reader, "/pin", RIGHT) | {"deny": None, "ask": None} == simulate(reader, "/pin", WRONG) | {
        "deny": None,
        "ask": None,
    }
    simulated = good(reader.post("/v1/policy/simulate", json={"rule": {"effect": "deny", "match": "transfer"}}))
    [example] = simulated["deny"]["examples"]
    assert example["input"] == {"amount": 5, "pin": "«masked»"}


def test_a_simulation_counts_a_masked_call_that_a_grant_allowed(caller: Caller, reader: Caller, stage: Stage) -> None:
    tool_call = secretive(caller, stage, amount=5, pin=PIN)
    decide(caller, tool_call, result="allow", scope="session", match="exact")
    good(caller.tell(tool_call.session_id, {"type": "user.custom_tool_result", "custom_tool_use_id": tool_call.id, "content": []}))
    stage.reply(tool_call.session_id, call("transfer", amount=5, pin=PIN))
    simulated = good(reader.post("/v1/policy/simulate", json={"rule": {"effect": "deny", "match": "bash"}}))
    assert simulated["allow"]["then"] == {"allowed_by_grant": 1}


def test_a_preview_compares_masked_inputs(caller: Caller, stage: Stage) -> None:
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
def test_an_edit_that_moves_a_mask_is_a_400_with_the_remedy(
    caller: Caller, reader: Caller, stage: Stage, block: dict[str, Any], edited: dict[str, Any], pointer: str
) -> None:
    agent = caller.agent(tools=[SECRETIVE, {"type": "agent_toolset_20260401"}])
    [tool_call] = asked(caller, stage, block, agent=agent)
    path = f"/v1/approvals/{approval_of(reader, tool_call)['id']}/decision"
    answer = reader.post(path, json={"result": "allow", "updated_input": edited})
    assert PIN not in str(bad(answer, 400, f"updated_input: {pointer}: ", "type the value", "`reveal`"))
    assert stage.get(ToolCall, tool_call.id).status == "asked"


def test_only_with_reveal_does_an_edit_keep_a_mask_beside_a_change(caller: Caller, reader: Caller, stage: Stage) -> None:
    """Another field may say where the secret goes."""
    tool_call = secretive(caller, stage, amount=5, pin=PIN)
    path = f"/v1/approvals/{approval_of(reader, tool_call)['id']}/decision"
    edited = {"result": "allow", "updated_input": {"amount": 6, "pin": "«masked»"}}
    bad(reader.post(path, json=edited), 400, "updated_input: /amount: ", "type the value", "`reveal`")
    assert stage.get(ToolCall, tool_call.id).status == "asked"
    approval = decide(caller, tool_call, **edited)
    assert approval["decided_input"] == {"amount": 6, "pin": "«masked»"}
    assert stage.get(CallInput, tool_call.id).input == {"amount": 6, "pin": PIN}


def test_an_edited_input_is_masked_like_an_input(caller: Caller, stage: Stage) -> None:
    """A hidden value is masked also where somebody who knows it types it in another place."""
    [tool_call] = asked(caller, stage, call(command=f"PASSWORD={PIN} ./x"))
    path = f"/v1/approvals/{approval_of(caller, tool_call)['id']}"
    edited = {"command": f"echo {PIN}; PASSWORD=another-one ./y"}
    approval = good(caller.post(f"{path}/decision", json={"result": "allow", "updated_input": edited}))
    assert approval["decided_input"] == {"command": "echo «masked»; PASSWORD=«masked» ./y"}
    assert good(caller.get(path, params={"reveal": "true"}))["decided_input"] == edited
    stage.run_call(tool_call, "done")
    assert PIN not in str(stage.history(tool_call.session_id)[-1])
