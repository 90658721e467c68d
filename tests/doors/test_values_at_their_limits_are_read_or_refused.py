"""No date, number, cursor, id, header or text at its limit is a 5xx: each route reads it or refuses it."""

import base64
import json
import os
from collections.abc import Iterator
from typing import Any

import httpx
import hypothesis
import pytest
from doors import described
from doors.served import Caller, good
from hypothesis import HealthCheck, Phase, strategies
from rows.stage import Stage, call, say

EXAMPLES = int(os.environ.get("EXAMPLES", "8"))
"""Bodies per route; always the same. For a long run: EXAMPLES=300 and pytest's --timeout 0."""
EVERY = int(os.environ.get("EVERY", "4"))
"""Each query parameter of a route is sent every fourth value. For a long run: EVERY=1."""
DATES = [
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59",
    "0001-01-01T00:00:00-23:59",
    "1969-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59.999999-23:59",
    "9999-12-31T23:59:59.999999+23:59",
    "2026-02-30T00:00:00Z",
    "2026-01-01T24:00:00Z",
    "2026-06-30T23:59:60Z",
    "2026-01-01T00:00:00+24:00",
    "2026-01-01T00:00:00.0000000000001Z",
    "-0001-01-01T00:00:00Z",
    "10000-01-01T00:00:00Z",
]
INTEGERS = [0, -1, 1, 2**31 - 1, 2**31, -(2**31) - 1, 2**32, 2**53 - 1, 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**400]
NUMBERS: list[float] = [5e-324, 1e-7, 1e308, -1e308, 366 * 86_400.0]
TEXTS = ["", " ", "\0", "\ufffd", "\u2028", "\u202e", "\U0010ffff", "'", "\\", "%", "NaN", "Infinity", "x" * 100, "x" * 1001]
QUERY = ["-1", str(2**31), str(2**63), "9" * 400, "1e400", "٣", "²", "1_0", "", "\0", "\ufffd", "\u2028", "x" * 1001]


@pytest.fixture
def ids(caller: Caller, stage: Stage) -> dict[str, str]:
    """Rows for the routes to find, so that a request gets as far as to the database."""
    agent = caller.agent(tools=[{"type": "agent_toolset_20260401"}])
    for _ in range(2):
        session = caller.session(agent)
        caller.say(session["id"])
        stage.reply(session["id"], say("Hm."), call())
    approval_id = good(caller.get("/v1/approvals"))["data"][0]["id"]
    environment = good(caller.post("/v1/environments", json={"name": "E", "config": {"type": "self_hosted"}}))
    caller.say(caller.session(environment_id=environment["id"])["id"])
    work = good(caller.get(f"/v1/environments/{environment['id']}/work/poll"))
    group = good(caller.post("/v1/organizations/rbac_groups", json={"name": "G"}))
    webhook = good(caller.post("/v1/webhooks", json={"url": "https://example.com"}))
    found = {"rbac_group_id": group["id"], "webhook_id": webhook["id"]}
    found |= {"agent_id": agent["id"], "session_id": session["id"], "approval_id": approval_id, "work_id": work["id"]}
    return found | {"environment_id": environment["id"], "thread_id": "sthr_" + session["id"][5:]}


def routes(api: str, method: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Paths of the API's document that take this method and end, and what the document says of them."""
    for path, said in described.document(api).content["paths"].items():
        if method in said and not path.endswith("/stream"):
            yield path, said[method]


def filled(path: str, ids: dict[str, str]) -> str:
    """A path with ids of rows that are there, where there are some."""
    for name, value in ids.items():
        path = path.replace("{" + name + "}", value)
    return path.replace("{", "").replace("}", "")


def fault(response: httpx.Response) -> str | None:
    """What was asked, if the answer is a 5xx."""
    if response.status_code < 500:
        return None
    request = response.request
    return f"{response.status_code} to {request.method} {request.url} {dict(request.headers)} {request.content[:500]!r}"


def parameters(said: dict[str, Any], where: str) -> list[str]:
    """Names of a route's parameters of this kind."""
    return [each["name"] for each in said.get("parameters", []) if each.get("in") == where]


def test_no_query_is_a_5xx(api: str, caller: Caller, ids: dict[str, str]) -> None:
    asked = 0
    faults = []
    for path, said in routes(api, "get"):
        for name in parameters(said, "query"):
            values = DATES if name.endswith("]") else QUERY
            # Many routes share a parameter, so each of them sends some of the values, and the next one sends others.
            chosen = values[asked % EVERY :: EVERY]
            faults += [fault(caller.get(filled(path, ids), params={name: value})) for value in chosen]
            asked += 1
    assert asked > 100
    assert not [each for each in faults if each], "\n".join(each for each in faults if each)[:6000]


def test_no_pair_of_dates_is_a_5xx(api: str, caller: Caller, ids: dict[str, str]) -> None:
    faults = []
    for path, said in routes(api, "get"):
        if {"created_at[gt]", "created_at[lt]"} <= set(parameters(said, "query")):
            for first in DATES[1:6:2]:
                for last in DATES[1:6:2]:
                    query = {"created_at[gte]": first, "created_at[lt]": last}
                    faults.append(fault(caller.get(filled(path, ids), params=query)))
    assert faults
    assert not [each for each in faults if each], "\n".join(each for each in faults if each)[:6000]


def ageless(page: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a page, without the durations of sessions, which grow from one request to the next."""
    return [row | {"stats": None, "usage": None} for row in page["data"]]


def test_a_bound_beyond_all_rows_leaves_out_none_of_them(caller: Caller, ids: dict[str, str]) -> None:
    """The zero time of some languages is the year 1."""
    for path in ("/v1/sessions", "/v1/agents", "/v1/audit"):
        everything = ageless(good(caller.get(path)))
        assert everything
        for first, last in ((DATES[0], DATES[4]), (DATES[1], DATES[5])):
            found = good(caller.get(path, params={"created_at[gte]": first, "created_at[lt]": last}))
            assert ageless(found) == everything
            assert good(caller.get(path, params={"created_at[gte]": last}))["data"] == []
            assert good(caller.get(path, params={"created_at[lt]": first}))["data"] == []


def forged(cursor: str) -> Iterator[str]:
    """Cursors like this one whose values lie at their limits."""
    said = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    for place in range(len(said)):
        for value in (*DATES[:7], 2**63, -(2**63) - 1, 1e308, "", "\0", "\U0010ffff", "\ud800", None, True, [], {}):
            changed = [*said[:place], value, *said[place + 1 :]]
            yield base64.urlsafe_b64encode(json.dumps(changed).encode()).decode().rstrip("=")


def test_no_cursor_is_a_5xx(api: str, caller: Caller, stage: Stage, ids: dict[str, str]) -> None:
    caller.agent()
    good(caller.post(f"/v1/agents/{ids['agent_id']}", json={"version": 1, "name": "Again"}))
    paged, faults = [], []
    for path, said in routes(api, "get"):
        if "page" not in parameters(said, "query"):
            continue
        cursor = good(caller.get(filled(path, ids), params={"limit": 1}))["next_page"]
        if cursor is None:
            continue
        paged.append(path)
        faults += [fault(caller.get(filled(path, ids), params={"page": page})) for page in forged(cursor)]
    assert {"/v1/sessions", "/v1/agents", "/v1/approvals", "/v1/audit", "/v1/sessions/{session_id}/events"} <= set(paged)
    assert not [each for each in faults if each], "\n".join(each for each in faults if each)[:6000]


def test_no_id_is_a_5xx(api: str, caller: Caller, ids: dict[str, str]) -> None:
    odd = ["%00", "%ff", "%ed%a0%80", "agent_" + "z" * 64, "%2e%2e%2f"]
    faults = []
    for method in ("get", "post", "delete"):
        for path, _ in routes(api, method):
            for name in ids:
                if "{" + name + "}" in path:
                    for value in odd:
                        asked = filled(path.replace("{" + name + "}", value), ids)
                        faults.append(fault(caller.request(method, asked)))
    assert faults
    assert not [each for each in faults if each], "\n".join(each for each in faults if each)[:6000]


HEADERS = ["last-event-id", "idempotency-key", "x-stainless-retry-count", "anthropic-workspace-id", "anthropic-version"]
HEADERS += ["x-forwarded-for", "x-forwarded-proto", "content-encoding"]


def test_no_header_is_a_5xx(caller: Caller, ids: dict[str, str]) -> None:
    values = [value.strip().encode() for value in (*QUERY, DATES[1]) if "\0" not in value] + [b"\xff", b"\xed\xa0\x80"]
    faults = []
    for name in HEADERS:
        for value in values:
            headers = httpx.Headers([(name.encode(), value)])
            faults.append(fault(caller.get(f"/v1/sessions/{ids['session_id']}", headers=headers)))
            faults.append(fault(caller.post(f"/v1/sessions/{ids['session_id']}", json={"title": "T"}, headers=headers)))
    assert not [each for each in faults if each], "\n".join(each for each in faults if each)[:6000]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all that a JSON value is made of."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in children:
        yield from leaves(child, (*path, name))


def changed(value: Any, path: tuple[Any, ...], to: Any) -> Any:
    """A copy of a JSON value with another value at this path."""
    if not path:
        return to
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], to)
    return copy


LIMITS: list[Any] = [*DATES[:7], *INTEGERS, *NUMBERS, -0.0, *TEXTS, "\ud800", "x" * 100_001, None, True, [], {}, [[]] * 300]


def bodies(api: str, ids: dict[str, str]) -> dict[str, Any]:
    """A valid body of each route that takes one."""
    approval: Any = {"timeout_seconds": 60, "remind_after_seconds": 5, "on_timeout": "deny"}
    match: Any = {"tool": "bash", "input": [{"path": "/n", "gt": 1, "min_length": 1}]}
    rule: Any = {"effect": "ask", "match": match, "priority": 1, "reason": "r"}
    rules: Any = {"type": "rules", "rules": [rule], "default": "ask"}
    schema: Any = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 5}}}
    custom: Any = {"type": "custom", "name": "t", "description": "d", "input_schema": schema, "approval": approval}
    toolset: Any = {
        "type": "agent_toolset_20260401",
        "configs": [{"name": "bash", "permission_policy": rules, "approval": approval}],
    }
    agent = {"name": "A", "model": "claude-opus-5-5", "system": "s", "description": "d", "metadata": {"a": "b"}, "max_turns": 5}
    agent |= {"tools": [toolset, custom]}
    message: Any = {"type": "user.message", "content": [{"type": "text", "text": "Hello."}]}
    denied: Any = {"result": "deny", "deny_message": "no"}
    allowed: Any = {"result": "allow", "scope": "always", "match": "tool", "expires_in_seconds": 60, "max_uses": 3}
    return {
        "/v1/agents": agent,
        "/v1/agents/{agent_id}": agent | {"version": 1},
        "/v1/environments": {"name": "E", "description": "d", "metadata": {"a": "b"}, "config": {"type": "cloud"}},
        "/v1/environments/{environment_id}": {"name": "E", "metadata": {"a": None}},
        "/v1/environments/{environment_id}/work/{work_id}": {"metadata": {"a": "b"}},
        "/v1/sessions": {"agent": {"type": "agent", "id": ids["agent_id"], "version": 1}, "environment_id": ids["environment_id"]}
        | {"title": "t", "metadata": {"a": "b"}, "initial_events": [message], "max_turns": 5},
        "/v1/sessions/{session_id}": {"title": "t", "metadata": {"a": "b"}},
        "/v1/sessions/{session_id}/events": {
            "events": [message, {"type": "user.tool_confirmation", "tool_use_id": "sevt_1"} | denied]
        },
        "/v1/approvals/{approval_id}/decision": allowed,
        "/v1/approvals/{approval_id}/extend": {"seconds": 60},
        "/v1/approvals/{approval_id}/preview": {"scope": "session", "match": "exact"},
        "/v1/approvals/decisions": {"decisions": [{"approval_id": "appr_1"} | denied]},
        "/v1/policy": {"permission_policy": {"type": "always_ask"}, "approval": {"timeout_seconds": 60}},
        "/v1/policy/explain": {"agent": {"id": ids["agent_id"], "version": 1}, "tool": "bash", "input": {"n": 1}},
        "/v1/policy/simulate": {"rule": rule, "agent_id": ids["agent_id"], "tool": "bash", "days": 7},
    }


def test_no_body_is_a_5xx(api: str, caller: Caller, ids: dict[str, str]) -> None:
    """Each valid body with a value at its limits in one place."""
    given = bodies(api, ids)
    taking = {path for path, said in routes(api, "post") if "requestBody" in said}
    assert set(given) <= taking
    faults: list[str] = []

    def ask(path: str, body: Any) -> None:
        if found := fault(
            caller.post(filled(path, ids), content=json.dumps(body).encode(), headers={"content-type": "application/json"})
        ):
            faults.append(found)

    for path, body in given.items():
        _ask(path, body, ask)
    assert not faults


def _ask(path: str, body: Any, ask: Any) -> None:
    places = strategies.sampled_from(list(leaves(body)))

    @hypothesis.seed(1)
    @hypothesis.settings(
        max_examples=EXAMPLES, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @hypothesis.given(places, strategies.sampled_from(LIMITS))
    def one(place: tuple[Any, ...], value: Any) -> None:
        ask(path, changed(body, place, value))

    one()
