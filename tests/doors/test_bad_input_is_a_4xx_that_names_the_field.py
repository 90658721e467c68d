"""Every invalid request gets a 4xx that names the field, and stores nothing."""

import json
from itertools import product
from typing import Any

import httpx2
import pytest
from doors.served import MODEL, Caller, bad, good, message

TOOLSET = {"type": "agent_toolset_20260401"}
GOOD = {"name": "A", "model": MODEL}


def custom(**more: Any) -> dict[str, Any]:
    """Return a client tool."""
    return {"type": "custom", "name": "t", "description": "", "input_schema": {"type": "object"}} | more


def schema(**more: Any) -> dict[str, Any]:
    """Return the tools of an agent: one client tool with this input schema."""
    return {"tools": [custom(input_schema={"type": "object"} | more)]}


RAW = {
    "no JSON": (b"{", "body"),
    "no object": (b"[1]", "body"),
    "a number": (b"5", "body"),
    "no UTF-8": (b'{"name": "\xff"}', "body"),
    "a byte order mark": (b"\xef\xbb\xbf{}", "body"),
    "UTF-16": ('{"name": "A"}'.encode("utf-16"), "body"),
    "NaN": (b'{"name": NaN}', "NaN"),
    "Infinity": (b'{"name": -Infinity}', "Infinity"),
    "a number beyond doubles": (b'{"max_turns": 1e999}', "1e999"),
    "an integer beyond 2**53": (b'{"max_turns": 9007199254740993}', "9007199254740993"),
    "an integer of 10,000 digits": (b'{"max_turns": ' + b"9" * 10_000 + b"}", "9999"),
    "a name twice": (b'{"name": "A", "name": "B"}', "'name'"),
    "NUL": (b'{"name": "A\\u0000", "model": "m"}', "name"),
    "NUL in a name": (b'{"metadata": {"a\\u0000": "b"}}', "metadata"),
    "NUL deep inside": (b'{"metadata": {"a": "\\u0000"}}', "metadata.a"),
    "half a surrogate pair": (b'{"name": "\\ud800", "model": "m"}', "name"),
    "a raw control character": (b'{"name": "a\x01"}', "body"),
    "depth": (b'{"name": ' + b"[" * 100 + b"]" * 100 + b"}", "nested"),
    "a depth bomb": (b'{"name": ' + b"[" * 40_000 + b"]" * 40_000 + b"}", "nested"),
    "a bomb of objects": (b'{"a":' * 40_000 + b"1" + b"}" * 40_000, "nested"),
    "a bomb of values": (b'{"a":[' + b"{}," * 1_200_000 + b"{}]}", "values"),
}

AGENTS: dict[str, tuple[dict[str, Any], str]] = {
    "no name": ({"name": None}, "name"),
    "an empty name": ({"name": ""}, "name"),
    "a name too long": ({"name": "x" * 257}, "name"),
    "a name that is a number": ({"name": 5}, "name"),
    "no model": ({"model": None}, "model"),
    "a model without id": ({"model": {}}, "model.id"),
    "a model that is a number": ({"model": 5}, "model"),
    "effort": ({"model": {"id": MODEL, "effort": "utmost"}}, "model.effort"),
    "an unknown field": ({"nmae": "x"}, "nmae"),
    "a system too long": ({"system": "x" * 100_001}, "system"),
    "17 pairs of metadata": ({"metadata": {str(n): "" for n in range(17)}}, "metadata"),
    "a metadata key too long": ({"metadata": {"k" * 65: ""}}, "metadata"),
    "a metadata value too long": ({"metadata": {"k": "v" * 513}}, "metadata.k"),
    "a metadata value that is a number": ({"metadata": {"k": 1}}, "metadata.k"),
    "metadata null": ({"metadata": {"k": None}}, "metadata.k"),
    "an execution identity": ({"execution_identity": {"type": "aws_role", "role_arn": "a"}}, "execution_identity.type"),
    "no turns": ({"max_turns": 0}, "max_turns"),
    "turns that are true": ({"max_turns": True}, "max_turns"),
    "turns that are a fraction": ({"max_turns": 1.5}, "max_turns"),
    "tools that are not a list": ({"tools": {}}, "tools"),
    "a tool that is text": ({"tools": ["bash"]}, "tools.0"),
    "an unknown tool type": ({"tools": [{"type": "bash_20250124"}]}, "tools.0"),
    "a tool without type": ({"tools": [{"name": "x"}]}, "tools.0"),
    "an unknown built-in tool": ({"tools": [{**TOOLSET, "configs": [{"name": "rm"}]}]}, "tools.0.configs.0.name"),
    "web fetch by default": ({"tools": [{**TOOLSET, "configs": [{"name": "web_fetch"}]}]}, "web_fetch"),
    "a tool configured twice": ({"tools": [{**TOOLSET, "configs": [{"name": "bash"}, {"name": "bash"}]}]}, "twice"),
    "a config of another type": ({"tools": [{**TOOLSET, "configs": [{"name": "bash", "type": "edit"}]}]}, "configs"),
    "two toolsets": ({"tools": [TOOLSET, TOOLSET]}, "twice"),
    "a deadline of 0 s": ({"tools": [custom(approval={"timeout_seconds": 0})]}, "tools.0.approval.timeout_seconds"),
    "a deadline of 30,000 years": ({"tools": [custom(approval={"timeout_seconds": 1e12})]}, "tools.0.approval.timeout_seconds"),
    "a quorum": ({"tools": [custom(approval={"required_approvals": 2})]}, "tools.0.approval"),
    "a tool name with a space": ({"tools": [custom(name="a b")]}, "tools.0.name"),
    "a tool name that ends a line": ({"tools": [custom(name="a\n")]}, "tools.0.name"),
    "a tool name too long": ({"tools": [custom(name="a" * 129)]}, "tools.0.name"),
    "two tools of one name": ({"tools": [custom(), custom()]}, "'t'"),
    "a client tool named as ours": ({"tools": [TOOLSET, custom(name="bash")]}, "'bash'"),
    "257 tools": ({"tools": [custom(name=f"t{n}") for n in range(257)]}, "256"),
    "a schema of a string": ({"tools": [custom(input_schema={"type": "string"})]}, "tools.0.input_schema"),
    "an invalid schema": (schema(properties={"a": {"type": "strin"}}), "tools.0.input_schema"),
    "a schema with a bad pattern": (schema(properties={"a": {"type": "string", "pattern": "("}}), "tools.0.input_schema"),
    "a schema with a remote reference": (schema(properties={"a": {"$ref": "http://169.254.169.254/"}}), "tools.0.input_schema"),
    "a schema with a dangling reference": (schema(properties={"a": {"$ref": "#/$defs/no"}}), "tools.0.input_schema"),
    "a schema that refers to itself": (schema(**{"$ref": "#"}), "tools.0.input_schema"),
    "a schema of an old draft": (schema(**{"$schema": "http://json-schema.org/draft-07/schema#"}), "leave $schema out"),
    "a schema that is too long": (schema(description="d" * 65_536), "65536 bytes"),
    "a schema of an unknown dialect": (schema(**{"$schema": "https://example.org/mine"}), "tools.0.input_schema"),
    "a schema of a dialect that is a number": (schema(**{"$schema": 5}), "tools.0.input_schema"),
}


def test_a_malformed_body_is_refused(caller: Caller, subtests: pytest.Subtests) -> None:
    for case, (body, field) in RAW.items():
        with subtests.test(case):
            bad(caller.post("/v1/agents", content=body, headers={"content-type": "application/json"}), 400, field)


def test_an_invalid_agent_is_refused_and_not_stored(caller: Caller, subtests: pytest.Subtests) -> None:
    for case, (more, field) in AGENTS.items():
        with subtests.test(case):
            bad(caller.post("/v1/agents", json=GOOD | more), 400, field)
    assert good(caller.get("/v1/agents"))["data"] == []


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"config": {"type": "self_hosted", "networking": {"type": "limited"}}}, "config"),
        ({"config": {"type": "elsewhere"}}, "config"),
        ({"config": {"type": "cloud", "networking": {"type": "limited", "allowed_hosts": ["a.b"]}}}, "allowed_hosts"),
        ({"name": None}, "name"),
    ],
)
def test_an_invalid_environment_is_refused(caller: Caller, more: dict[str, Any], field: str) -> None:
    bad(caller.post("/v1/environments", json={"name": "E"} | more), 400, field)


SESSIONS: dict[str, tuple[dict[str, Any], str]] = {
    "no agent": ({"agent": None}, "agent"),
    "an unknown agent": ({"agent": "agent_none"}, "agent"),
    "an unknown version": ({"agent": {"type": "agent", "id": "ID", "version": 9}}, "agent"),
    "version 0": ({"agent": {"type": "agent", "id": "ID", "version": 0}}, "agent.version"),
    "a version beyond integers": ({"agent": {"type": "agent", "id": "ID", "version": 2**40}}, "agent.version"),
    "an agent of unknown type": ({"agent": {"type": "assistant", "id": "ID"}}, "agent"),
    "a field without override": ({"agent": {"type": "agent_with_overrides", "id": "ID", "name": "N"}}, "agent.name"),
    "an unknown environment": ({"environment_id": "env_none"}, "environment_id"),
    "a budget": ({"budget": {"type": "limit", "max_list_cost": {"amount": "1", "currency": "EUR"}}}, "budget"),
    "chat approvals": ({"chat_approvals": "perhaps"}, "chat_approvals"),
    "a title too long": ({"title": "t" * 513}, "title"),
    "51 first events": ({"initial_events": [message()] * 51}, "initial_events"),
    "a first event of another type": ({"initial_events": [{"type": "user.interrupt"}]}, "initial_events.0.type"),
}


def test_an_invalid_session_is_refused_and_not_stored(caller: Caller, subtests: pytest.Subtests) -> None:
    agent_id = caller.agent()["id"]
    body = {"agent": agent_id, "environment_id": caller.environment_id()}
    for case, (more, field) in SESSIONS.items():
        agent = more.get("agent")
        of_agent = {"agent": agent | {"id": agent_id}} if isinstance(agent, dict) and agent["id"] == "ID" else {}
        with subtests.test(case):
            bad(caller.post("/v1/sessions", json=body | more | of_agent), 400, field)
    assert good(caller.get("/v1/sessions"))["data"] == []


EVENTS: dict[str, tuple[Any, str]] = {
    "none": ([], "events"),
    "no list": ({}, "events"),
    "51": ([message()] * 51, "events"),
    "text": (["hello"], "events.0"),
    "no type": ([{}], "events.0"),
    "an unknown type": ([{"type": "user.shout"}], "events.0"),
    "an agent's": ([{"type": "agent.message", "content": []}], "events.0"),
    "a result that only self-hosted clients give": ([{"type": "user.tool_result", "tool_use_id": "t"}], "events.0"),
    "a message without content": ([message(), {"type": "user.message"}], "events.1.content"),
    "a message with no block": ([{"type": "user.message", "content": []}], "events.0.content"),
    "a message of text": ([{"type": "user.message", "content": "hello"}], "events.0.content"),
    "a message of white space": ([message(" \n")], "events.0.content"),
    "an empty text": ([message("")], "events.0.content.0.text"),
    "an unknown block": ([{"type": "user.message", "content": [{"type": "video"}]}], "events.0.content.0"),
    "a link to a file": (
        [{"type": "user.message", "content": [{"type": "image", "source": {"type": "url", "url": "file:///etc/passwd"}}]}],
        "events.0.content.0.source.url",
    ),
    "an unknown field": ([message() | {"prority": 1}], "events.0.prority"),
    "another thread": ([{"type": "user.interrupt", "session_thread_id": "sthr_1"}], "events.0.session_thread_id"),
    "a result for no call": (
        [{"type": "user.custom_tool_result", "custom_tool_use_id": "sevt_1", "content": []}],
        "events.0.custom_tool_use_id",
    ),
    "a confirmation of no call": (
        [{"type": "user.tool_confirmation", "tool_use_id": "sevt_1", "result": "allow"}],
        "events.0.tool_use_id",
    ),
    "a confirmation that is perhaps": (
        [{"type": "user.tool_confirmation", "tool_use_id": "sevt_1", "result": "perhaps"}],
        "events.0.result",
    ),
    "a malformed hash": (
        [{"type": "user.tool_confirmation", "tool_use_id": "sevt_1", "result": "allow", "expected_input_sha256": "x"}],
        "events.0.expected_input_sha256",
    ),
}


def test_invalid_events_are_refused_and_not_stored(caller: Caller, subtests: pytest.Subtests) -> None:
    session = caller.session()
    for case, (events, field) in EVENTS.items():
        with subtests.test(case):
            bad(caller.post(f"/v1/sessions/{session['id']}/events", json={"events": events}), 400, field)
    assert caller.events(session["id"]) == []


QUERIES = [
    ("/v1/agents?limit=0", "limit"),
    ("/v1/agents?limit=101", "limit"),
    ("/v1/agents?limit=ten", "limit"),
    ("/v1/agents?limit=" + "9" * 3000, "limit"),
    ("/v1/agents?limit=1&limit=2", "limit"),
    ("/v1/agents?limit=1&limit[]=2", "limit"),
    ("/v1/agents?page=", "page"),
    ("/v1/agents?page=%00", "page"),
    ("/v1/agents?page=bm8", "page"),
    ("/v1/agents?page=" + "W" * 900, "page"),
    ("/v1/agents?page=" + "x" * 2000, "page"),
    ("/v1/agents?lmit=1", "lmit"),
    ("/v1/agents?include_archived=maybe", "include_archived"),
    ("/v1/agents?created_at[gte]=yesterday", "created_at[gte]"),
    ("/v1/agents?created_at[gte]=1", "created_at[gte]"),
    ("/v1/agents?created_at[gte]=2026-01-01T00:00:00", "created_at[gte]"),
    ("/v1/sessions?statuses[]=waiting", "statuses.0"),
    ("/v1/sessions?order=up", "order"),
    ("/v1/sessions?agent_id=%00", "agent_id"),
    ("/v1/sessions?agent_version=0", "agent_version"),
    ("/v1/sessions?deployment_id=d", "deployment_id"),
    ("/v1/approvals?status=open", "status"),
    ("/v1/approvals?session_id=%00", "session_id"),
    ("/v1/sessions/SESSION/events?limit=1001", "limit"),
    ("/v1/sessions/SESSION/events?types[]=agent.mesage", "types"),
    ("/v1/sessions/SESSION/events?include=everything", "include.0"),
    ("/v1/sessions/SESSION/events?order=random", "order"),
    ("/v1/sessions/SESSION/events/stream?event_deltas[]=user.message", "event_deltas.0"),
]
"""Paths with a query, and the parameter that is refused."""


def test_an_invalid_query_is_refused(caller: Caller, subtests: pytest.Subtests) -> None:
    session_id = caller.session()["id"]
    for path, field in QUERIES:
        with subtests.test(path[:60]):
            bad(caller.get(path.replace("SESSION", session_id)), 400, field)


IDS = ["x", "agent_", "agent_%00", "agent_%ff", "AGENT_1", "agent_" + "1" * 500, "agent_1'--", "%F0%9F%98%80", "agent_1"]


@pytest.mark.parametrize("time", [4102444800, 0.5, True, "4102444800", []])
def test_no_number_is_read_as_a_time(caller: Caller, time: Any) -> None:
    bad(caller.post("/v1/organizations/api_keys", json={"name": "n", "expires_at": time}), 400, "expires_at: must be an RFC 3339")


@pytest.mark.parametrize("name", ["rules.7", "rules.-1", "rules.x", "7"])
def test_a_field_that_is_named_like_a_path_is_refused(caller: Caller, name: str) -> None:
    policy = {"type": "rules", "rules": [], "default": "ask", name: 1}
    body = {"agent": {"id": caller.agent()["id"]}, "tool": "bash", "input": {}, "permission_policy": policy}
    bad(caller.post("/v1/policy/explain", json=body), 400, "permission_policy", name)


def test_a_malformed_or_unknown_id_is_not_found(caller: Caller, subtests: pytest.Subtests) -> None:
    for where, row_id in product(("agents", "environments", "sessions", "approvals"), IDS):
        with subtests.test(f"{where}/{row_id}"):
            bad(caller.get(f"/v1/{where}/{row_id}"), 404)


def test_an_unknown_path_is_404_and_a_wrong_method_is_405_with_the_allowed_ones(caller: Caller) -> None:
    bad(caller.get("/v1/nothing"), 404)
    bad(caller.get("/v1"), 404)
    refused = caller.put("/v1/agents", json={})
    bad(refused, 405)
    assert refused.headers["allow"] == "GET, HEAD, OPTIONS, POST"


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json", "content-encoding": "gzip"},
    ],
)
def test_a_body_with_another_content_type_or_an_encoding_is_415(caller: Caller, headers: dict[str, str]) -> None:
    bad(caller.post("/v1/agents", content=json.dumps(GOOD), headers=headers), 415, next(reversed(headers)))


def test_a_body_that_is_too_large_is_413(caller: Caller) -> None:
    bad(caller.post("/v1/agents", json=GOOD | {"description": "x" * 5_000_000}), 413)
    pieces = (b"x" * 100_000 for _ in range(60))
    bad(caller.post("/v1/agents", content=pieces, headers={"content-type": "application/json"}), 413)


def test_a_request_with_one_bad_event_stores_none_of_its_events(caller: Caller) -> None:
    session = caller.session()
    answer = caller.tell(session["id"], message(), {"type": "user.custom_tool_result", "custom_tool_use_id": "sevt_none"})
    bad(answer, 400, "events.1.custom_tool_use_id")
    assert caller.events(session["id"]) == []


@pytest.mark.parametrize("key", ["", "a b", "ü".encode(), "x" * 256])
def test_an_invalid_idempotency_key_is_refused(caller: Caller, key: str | bytes) -> None:
    headers = httpx2.Headers([(b"idempotency-key", key.encode() if isinstance(key, str) else key)])
    bad(caller.post("/v1/agents", json=GOOD, headers=headers), 400, "Idempotency-Key")
