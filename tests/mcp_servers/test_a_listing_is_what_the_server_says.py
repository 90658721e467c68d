"""Listings are bounded and usable: what cannot be used is left out. What a server says of effects counts only if it is trusted."""

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import warm
from mcp_servers.conftest import Caller, tools_of
from mcp_servers.lying import Liar, Request

from models.pure.json.canonical import digest
from workers.tools.mcp import listing as module
from workers.tools.mcp.calling import Unreachable
from workers.tools.mcp.listing import listing
from workers.tools.mcp.servers import Server

SCHEMA = {"type": "object"}


def say(liar: Liar, *tools: dict[str, Any]) -> None:
    liar.answers["tools/list"] = lambda request: request.tools(*tools)


def test_a_listing_has_all_fields_of_an_entry(caller: Caller) -> None:
    schema = {
        "properties": {"a": {"title": "A", "type": "integer"}, "b": {"title": "B", "type": "integer"}},
        "required": ["a", "b"],
    }
    entry = tools_of(caller.server)["add"]
    output = entry.pop("output_schema")
    assert isinstance(output, dict)
    assert output["properties"] == {"result": {"title": "Result", "type": "integer"}}
    assert entry == {
        "name": "add",
        "title": "Sum",
        "description": "Adds two numbers.",
        "input_schema": {"type": "object", "title": "addArguments", **schema},
        "effect": "write",
        "idempotent": False,
        "seconds": None,
        "prompt": None,
        "cache": None,
        "policy": None,
        "approval": None,
        "queue": None,
        "workdir": False,
        "annotations": {"title": "Sum", "readOnlyHint": True},
    }


def test_a_server_s_word_on_effects_counts_only_if_the_operator_trusts_the_server(modern: Caller) -> None:
    named = tools_of(replace(modern.server, trusted=True))
    assert [(named[name]["effect"], named[name]["idempotent"]) for name in ("add", "note", "die")] == [
        ("read", True),
        ("write", True),
        ("write", False),
    ]


def test_every_page_is_read(liar: Liar) -> None:
    def page(request: Request) -> None:
        number = int(request.message["params"].get("cursor", "0"))
        more = {"nextCursor": str(number + 1)} if number < 2 else {}
        request.tools({"name": f"tool{number}", "inputSchema": SCHEMA}, **more)

    liar.answers["tools/list"] = page
    assert list(tools_of(liar.server)) == ["tool0", "tool1", "tool2"]


def test_a_listing_has_at_most_a_thousand_tools(liar: Liar) -> None:
    def page(request: Request) -> None:
        start = int(request.message["params"].get("cursor", "0"))
        tools = ({"name": f"tool{n}", "inputSchema": SCHEMA} for n in range(start, start + 300))
        request.tools(*tools, nextCursor=str(start + 300))

    liar.answers["tools/list"] = page
    assert len(listing(liar.server)) == 1000


def test_a_listing_has_a_limit_in_bytes(liar: Liar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_BYTES", 1000)
    say(liar, *({"name": f"tool{n}", "description": "x" * 200, "inputSchema": SCHEMA} for n in range(9)))
    assert 0 < len(listing(liar.server)) < 3


@pytest.mark.parametrize(
    ("tool", "why"),
    [
        ({"name": "with space"}, "its name must be"),
        ({"name": ""}, "its name must be"),
        ({"name": "x" * 129}, "its name must be"),
        ({"name": "good"}, "the name is taken by an earlier tool"),
        ({"inputSchema": {"type": "array"}}, "1 of its tools are left out: they are malformed"),
        ({"name": 5}, "1 of its tools are left out: they are malformed"),
        ({"inputSchema": "none"}, "1 of its tools are left out: they are malformed"),
        ({"title": 5}, "1 of its tools are left out: they are malformed"),
        ({"annotations": {"readOnlyHint": "perhaps"}}, "1 of its tools are left out: they are malformed"),
        (
            {"inputSchema": {**SCHEMA, "properties": {"a": {"$ref": "https://example.com/schema"}}}},
            "has a $ref that points outside",
        ),
        ({"inputSchema": {**SCHEMA, "properties": {"a": {"type": "string", "pattern": "(?=a)b"}}}}, "(RE2's syntax)"),
        ({"inputSchema": {**SCHEMA, "description": "x" * 70_000}}, "has more than 65536 bytes"),
        ({"inputSchema": {**SCHEMA, "properties": {"a": {"type": "sthing"}}}}, "is not a JSON Schema"),
        ({"inputSchema": {**SCHEMA, "title": "a\0"}}, "cannot be stored"),
    ],
)
def test_an_unusable_tool_is_left_out_with_a_reason(
    liar: Liar, caplog: pytest.LogCaptureFixture, tool: dict[str, Any], why: str
) -> None:
    say(liar, {"name": "good", "inputSchema": SCHEMA}, {"name": "bad", "inputSchema": SCHEMA, **tool})
    with caplog.at_level(logging.WARNING, "workers.tools.mcp"):
        assert list(tools_of(liar.server)) == ["good"]
    assert why in caplog.text


def test_a_schema_without_a_type_is_completed_and_a_wrong_output_schema_dropped(liar: Liar) -> None:
    say(liar, {"name": "act", "inputSchema": {}, "outputSchema": {"type": "array"}})
    entry = tools_of(liar.server)["act"]
    assert (entry["input_schema"], entry["output_schema"]) == ({"type": "object"}, None)


def test_integers_that_json_cannot_hold_become_floats(liar: Liar) -> None:
    say(liar, {"name": "big", "inputSchema": {**SCHEMA, "properties": {"a": {"type": "integer", "maximum": 2**64 - 1}}}})
    entries = listing(liar.server)
    assert entries[0]["input_schema"]["properties"]["a"]["maximum"] == float(2**64)
    assert digest(entries)


def test_invisible_characters_of_a_description_are_written_out(liar: Liar) -> None:
    say(liar, {"name": "act", "description": "Reads.\U000e0041", "inputSchema": SCHEMA})
    assert listing(liar.server)[0]["description"] == "Reads.\\U000e0041"


@pytest.mark.parametrize(
    ("status", "kind"), [(401, "authentication"), (403, "authentication"), (404, "connection"), (500, "connection")]
)
def test_a_server_that_answers_with_an_http_error_is_unreachable(liar: Liar, status: int, kind: str) -> None:
    liar.on_greeting(lambda request: request.plain(status))
    with pytest.raises(Unreachable) as caught:
        listing(liar.server)
    assert caught.value.kind == kind
    assert f"HTTP {status}" in caught.value.message


def test_a_server_that_does_not_answer_is_unreachable(liar: Liar, set_environment: Callable[..., None]) -> None:
    set_environment(ASSENT_MCP_CONNECT_SECONDS="0.2")
    liar.answers["server/discover"] = lambda request: request.rfile.read(1)
    with pytest.raises(Unreachable, match=r"no response within 0.2 s"):
        listing(liar.server)


def test_an_address_shows_no_secret(liar: Liar, set_environment: Callable[..., None]) -> None:
    set_environment(ASSENT_ALLOWED_PRIVATE_HOSTS="127.0.0.1 localhost")
    liar.on_greeting(lambda request: request.plain(401))
    url = f"{liar.url}?key=hunter2"
    with pytest.raises(Unreachable) as caught:
        listing(Server(url, url))
    assert liar.url in caught.value.message
    assert "hunter2" not in caught.value.message


GEVENT = """
from gevent import monkey
monkey.patch_all()
import gevent, json, sys
from workers.tools.mcp.listing import listing
from workers.tools.mcp.servers import Server

ticks = 0

def tick():
    global ticks
    while True:
        ticks += 1
        gevent.sleep(0.005)

gevent.spawn(tick)
server = Server("served", sys.argv[1], ours=True)
pool = gevent.get_hub().threadpool
jobs = [gevent.spawn(pool.apply, lambda: listing(server)) for _ in range(5)]
gevent.joinall(jobs, raise_error=True)
print(json.dumps({"tools": [[entry["name"] for entry in job.value] for job in jobs], "ticks": ticks}))
"""


def test_a_listing_works_in_a_native_thread_of_gevent_s(liar: Liar) -> None:
    url = liar.url.replace("127.0.0.1", "localhost")
    done = warm.run("-c", GEVENT, url)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["tools"] == [["act"]] * 5
    assert report["ticks"] > 3, "the hub stood still"
