"""A small body never takes the web process away from everybody else: what a client sends is checked in bounded time."""

import json
import threading
import time
from typing import Any

import httpx
import pytest
from doors.served import Caller

QUICK = 2.0
"""Seconds. Each of the bodies below takes three times as long today, and ten times as much of it, a hundred times."""


def _name_given_twice() -> bytes:
    names = [f'"k{i}":0' for i in range(20_000)]
    return ("{" + ",".join([*names, names[-1]]) + "}").encode()


def _agent(schema: dict[str, Any]) -> bytes:
    tool = {"type": "custom", "name": "t", "description": "", "input_schema": {"type": "object"} | schema}
    return json.dumps({"name": "x", "model": "m", "tools": [tool]}).encode()


def _pattern_that_backtracks() -> bytes:
    return _agent({"patternProperties": {"^(a+)+$": {}}, "properties": {"a" * 28 + "!": {}}})


def _schema_that_doubles() -> bytes:
    deep = {f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(16)}
    return _agent({"$defs": deep | {"a16": {}}, "properties": {"x": {"$ref": "#/$defs/a0"}}})


@pytest.mark.parametrize("body", [_name_given_twice, _pattern_that_backtracks, _schema_that_doubles])
def test_others_are_answered_meanwhile(caller: Caller, body: Any) -> None:
    raw = body()

    def post() -> None:
        httpx.post(
            f"{caller.base_url}/v1/agents",
            content=raw,
            headers={"x-api-key": caller.headers["x-api-key"], "content-type": "application/json"},
            timeout=60,
        )

    posting = threading.Thread(target=post)
    posting.start()
    time.sleep(0.2)
    began = time.monotonic()
    httpx.get(f"{caller.base_url}/healthz", timeout=60)
    waited = time.monotonic() - began
    posting.join()

    assert waited < QUICK
