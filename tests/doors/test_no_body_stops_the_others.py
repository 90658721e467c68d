"""No small body occupies the web process: a body is checked in bounded time, and other clients are answered meanwhile."""

import json
import threading
import time
from typing import Any

import httpx
import pytest
from doors.served import Caller

QUICK = 2.0
"""Seconds. With quadratic or exponential checks, each body below would take at least three times as long."""


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
    slowest = 0.0
    while posting.is_alive():
        began = time.monotonic()
        httpx.get(f"{caller.base_url}/healthz", timeout=60)
        slowest = max(slowest, time.monotonic() - began)
    assert 0 < slowest < QUICK
