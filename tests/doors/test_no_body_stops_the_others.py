"""No request occupies the web process: each body and each page below is answered or refused, and others are answered meanwhile."""

import json
import threading
from collections.abc import Callable
from typing import Any

import httpx2
import psutil
import pytest
from doors.served import Caller
from doors.waiting import asked
from people import member
from rows.stage import Stage, call

ALWAYS_ASK = {"type": "agent_toolset_20260401", "default_config": {"permission_policy": {"type": "always_ask"}}}
QUICK = 2.0
"""Seconds of the server's CPU time. Without limits, some of the samples below take minutes."""


def _agent(*schemas: dict[str, Any]) -> bytes:
    tools = [
        {"type": "custom", "name": f"t{number}", "description": "", "input_schema": {"type": "object"} | schema}
        for number, schema in enumerate(schemas)
    ]
    return json.dumps({"name": "x", "model": "m", "tools": tools}).encode()


def _name_given_twice() -> bytes:
    names = [f'"k{i}":0' for i in range(20_000)]
    return ("{" + ",".join([*names, names[-1]]) + "}").encode()


def _pattern_that_backtracks() -> bytes:
    return _agent({"patternProperties": {"^(a+)+$": {}}, "properties": {"a" * 28 + "!": {}}})


def _schema_that_doubles() -> bytes:
    deep = {f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(16)}
    return _agent({"$defs": deep | {"a16": {}}, "properties": {"x": {"$ref": "#/$defs/a0"}}})


def _mixed_items() -> list[Any]:
    return [item for i in range(2000) for item in (i, {"a": i})]


def _enum_of_draft_04() -> bytes:
    return _agent({"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"x": {"enum": _mixed_items()}}})


def _list_of_types() -> bytes:
    return _agent({"properties": {"x": {"type": _mixed_items()}}})


def _long_pattern() -> bytes:
    return _agent({"properties": {"x": {"type": "string", "pattern": "a?" * 200_000}}})


def _many_costly_schemas() -> bytes:
    """Each of these schemas takes a tenth of a second, within its limits: all together only the limit of a request ends."""
    return _agent(*[{"properties": {f"p{i}": {} for i in range(2400)}}] * 20)


def _many_objects() -> bytes:
    return ('{"a":[' + ",".join(["{}"] * 1_300_000) + "]}").encode()


def _many_texts() -> bytes:
    return ('{"a":[' + ",".join(['"e"'] * 970_000) + "]}").encode()


def _quotes() -> bytes:
    return b',"\\' * 1_300_000


SAMPLES = (
    *(_name_given_twice, _pattern_that_backtracks, _schema_that_doubles, _enum_of_draft_04, _list_of_types, _long_pattern),
    *(_many_costly_schemas, _many_objects, _many_texts, _quotes),
)


def _cpu_seconds(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def _slowest(caller: Caller, send: Callable[[], object]) -> float:
    """Return the longest wait of another client while `send` ran, in CPU seconds of the server: other tests may run beside this."""
    sending = threading.Thread(target=send)
    slowest = 0.0
    port = caller.base_url.port
    listening = {socket.pid for socket in psutil.net_connections("tcp") if socket.status == "LISTEN" and socket.laddr.port == port}
    server = [psutil.Process(pid) for pid in listening if pid]
    assert server
    with httpx2.Client(base_url=caller.base_url, timeout=60) as other:
        other.get("/healthz")
        sending.start()
        while sending.is_alive():
            began = _cpu_seconds(server)
            assert other.get("/healthz").status_code == 200
            slowest = max(slowest, _cpu_seconds(server) - began)
    return slowest


@pytest.mark.parametrize("sample", SAMPLES)
def test_others_are_answered_meanwhile(caller: Caller, sample: Callable[[], bytes]) -> None:
    raw = sample()
    statuses: list[int] = []
    headers = {"x-api-key": caller.headers["x-api-key"], "content-type": "application/json"}

    def post() -> None:
        statuses.append(httpx2.post(f"{caller.base_url}/v1/agents", content=raw, headers=headers, timeout=60).status_code)

    assert _slowest(caller, post) < QUICK
    assert statuses[0] in {200, 400}


HOSTILE = (
    call(command="password=" * 6_900),
    call(command="deploy --password=" + "hunter2hunter2" * 4_000),
    call("write", file_path="x.html", content="<style>" * 2_800),
    call("write", file_path="setup.au3", content="\n" * 60_000),
)
"""Calls that once took seconds to show: repeated names of secrets, a long secret, and texts that are hostile to lexers."""


def test_others_are_answered_while_a_person_reads_hostile_calls(caller: Caller, stage: Stage) -> None:
    asked(caller, stage, *HOSTILE, agent=caller.agent(tools=[ALWAYS_ASK]))
    ids = [row["id"] for row in caller.get("/v1/approvals").json()["data"]]
    assert len(ids) == len(HOSTILE)
    with member(stage, "admin").client(str(caller.base_url).rstrip("/")) as person:
        for page in ("/v1/approvals", "/inbox", *(f"/inbox/approvals/{id_}" for id_ in ids)):
            responses: list[httpx2.Response] = []
            assert _slowest(caller, lambda: responses.append(person.get(page))) < QUICK, page  # noqa: B023
            assert responses[0].status_code == 200, page
