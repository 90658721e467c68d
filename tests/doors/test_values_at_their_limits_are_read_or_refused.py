"""No date, number, cursor, id, header or text at its limit causes a 5xx: each route accepts or refuses the value."""

import base64
import json
import os
from collections.abc import Iterator
from typing import Any

import httpx2
import hypothesis
import pytest
from doors import described
from doors.served import Caller, good
from hypothesis import HealthCheck, Phase, strategies
from rows.stage import Stage, call, say

EXAMPLES = int(os.environ.get("EXAMPLES", "8"))
"""Bodies per route, the same each time. For a long run: EXAMPLES=300 and pytest's --timeout 0."""
EVERY = int(os.environ.get("EVERY", "4"))
"""Each query parameter and each cursor of a route is sent every fourth value. For a long run: EVERY=1."""
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
    """Ids of rows for the routes to find, so that a request reaches the database, by path parameter."""
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
    return {
        "rbac_group_id": group["id"],
        "webhook_id": webhook["id"],
        "agent_id": agent["id"],
        "session_id": session["id"],
        "approval_id": approval_id,
        "work_id": work["id"],
        "environment_id": environment["id"],
        "thread_id": "sthr_" + session["id"][5:],
    }


def routes(api: str, method: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the paths with this method, except streams, and their descriptions in the document."""
    for path, methods in described.document(api).content["paths"].items():
        if method in methods and not path.endswith("/stream"):
            yield path, methods[method]


def filled(path: str, ids: dict[str, str]) -> str:
    """Return the path with the ids of existing rows."""
    for name, value in ids.items():
        path = path.replace("{" + name + "}", value)
    return path.replace("{", "").replace("}", "")


def fault(response: httpx2.Response) -> str | None:
    """Return a description of the request if the response is a 5xx."""
    if response.status_code < 500:
        return None
    request = response.request
    return f"{response.status_code} to {request.method} {request.url} {dict(request.headers)} {request.content[:500]!r}"


def assert_no(faults: list[str | None]) -> None:
    """Fail with the descriptions of the requests that got a 5xx."""
    descriptions = [text for text in faults if text]
    assert not descriptions, "\n".join(descriptions)[:6000]


def query_names(route: dict[str, Any]) -> list[str]:
    """Return the names of a route's query parameters."""
    return [each["name"] for each in route.get("parameters", []) if each.get("in") == "query"]


def test_no_query_is_a_5xx(api: str, caller: Caller, ids: dict[str, str]) -> None:
    count = 0
    faults = []
    for path, route in routes(api, "get"):
        for name in query_names(route):
            values = DATES if name.endswith("]") else QUERY
            # Many routes share a parameter, so each route gets a part of the values, and the next route another part.
            chosen = values[count % EVERY :: EVERY]
            faults += [fault(caller.get(filled(path, ids), params={name: value})) for value in chosen]
            count += 1
    assert count > 100
    assert_no(faults)


def test_no_pair_of_dates_is_a_5xx(api: str, caller: Caller, ids: dict[str, str]) -> None:
    faults = []
    for path, route in routes(api, "get"):
        if {"created_at[gt]", "created_at[lt]"} <= set(query_names(route)):
            for first in DATES[1:6:2]:
                for last in DATES[1:6:2]:
                    query = {"created_at[gte]": first, "created_at[lt]": last}
                    faults.append(fault(caller.get(filled(path, ids), params=query)))
    assert faults
    assert_no(faults)


def ageless(page: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a page without the durations of sessions, which grow between two requests."""
    return [row | {"stats": None, "usage": None} for row in page["data"]]


def test_a_date_far_before_or_after_all_rows_filters_as_such(caller: Caller, ids: dict[str, str]) -> None:
    """In some languages the zero time is the year 1."""
    for path in ("/v1/sessions", "/v1/agents", "/v1/audit"):
        everything = ageless(good(caller.get(path)))
        assert everything
        for first, last in ((DATES[0], DATES[4]), (DATES[1], DATES[5])):
            page = good(caller.get(path, params={"created_at[gte]": first, "created_at[lt]": last}))
            assert ageless(page) == everything
            assert good(caller.get(path, params={"created_at[gte]": last}))["data"] == []
            assert good(caller.get(path, params={"created_at[lt]": first}))["data"] == []


def parts(cursor: str) -> list[Any]:
    """Return what a cursor holds."""
    content: list[Any] = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    return content


def shape(cursor: str) -> tuple[str, ...]:
    """Return the types of a cursor's parts. The same code reads all cursors of a shape."""
    return tuple("time" if ":" in str(part) else type(part).__name__ for part in parts(cursor))


def forged(cursor: str) -> Iterator[str]:
    """Yield copies of a cursor with values at their limits."""
    content = parts(cursor)
    for place in range(len(content)):
        for value in (*DATES[:7], 2**63, -(2**63) - 1, 1e308, "", "\0", "\U0010ffff", "\ud800", None, True, [], {}):
            forgery = [*content[:place], value, *content[place + 1 :]]
            yield base64.urlsafe_b64encode(json.dumps(forgery).encode()).decode().rstrip("=")


def test_no_cursor_is_a_5xx(api: str, caller: Caller, stage: Stage, ids: dict[str, str]) -> None:
    caller.agent()
    good(caller.post(f"/v1/agents/{ids['agent_id']}", json={"version": 1, "name": "Again"}))
    paged: dict[str, str] = {}
    for path, route in routes(api, "get"):
        if "page" in query_names(route) and not path.endswith("/csv"):
            cursor = good(caller.get(filled(path, ids), params={"limit": 1}))["next_page"]
            if cursor is not None:
                paged[path] = cursor
    assert {"/v1/sessions", "/v1/agents", "/v1/approvals", "/v1/audit", "/v1/sessions/{session_id}/events"} <= set(paged)
    faults = []
    for path, cursor in paged.items():
        # Routes with cursors of one shape share the forgeries, of which each route gets at least every fourth.
        alike = [other for other in paged if shape(paged[other]) == shape(cursor)]
        chosen = list(forged(cursor))[alike.index(path) % EVERY :: min(EVERY, len(alike))]
        faults += [fault(caller.get(filled(path, ids), params={"page": page})) for page in chosen]
    assert_no(faults)


def test_no_id_is_a_5xx(api: str, caller: Caller, ids: dict[str, str]) -> None:
    odd = ["%00", "%ff", "%ed%a0%80", "agent_" + "z" * 64, "%2e%2e%2f"]
    faults = []
    for method in ("get", "post", "delete"):
        for path, _ in routes(api, method):
            for name in ids:
                if "{" + name + "}" in path:
                    for value in odd:
                        url = filled(path.replace("{" + name + "}", value), ids)
                        faults.append(fault(caller.request(method, url)))
    assert faults
    assert_no(faults)


HEADERS = ["last-event-id", "idempotency-key", "x-stainless-retry-count", "anthropic-workspace-id", "anthropic-version"]
HEADERS += ["x-forwarded-for", "x-forwarded-proto", "content-encoding"]


def test_no_header_is_a_5xx(caller: Caller, ids: dict[str, str]) -> None:
    values = [value.strip().encode() for value in (*QUERY, DATES[1]) if "\0" not in value] + [b"\xff", b"\xed\xa0\x80"]
    faults = []
    for name in HEADERS:
        for value in values:
            headers = httpx2.Headers([(name.encode(), value)])
            faults.append(fault(caller.get(f"/v1/sessions/{ids['session_id']}", headers=headers)))
            faults.append(fault(caller.post(f"/v1/sessions/{ids['session_id']}", json={"title": "T"}, headers=headers)))
    assert_no(faults)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each part of a JSON value."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in children:
        yield from leaves(child, (*path, name))


def changed(value: Any, path: tuple[Any, ...], to: Any) -> Any:
    """Return a copy of a JSON value with another value at this path."""
    if not path:
        return to
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], to)
    return copy


LIMITS: list[Any] = [*DATES[:7], *INTEGERS, *NUMBERS, -0.0, *TEXTS, "\ud800", "x" * 100_001, None, True, [], {}, [[]] * 300]


def bodies(api: str, ids: dict[str, str]) -> dict[str, Any]:
    """Return a valid body for each route."""
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
    """In each valid body, one place has a value at its limit."""
    valid = bodies(api, ids)
    assert set(valid) <= {path for path, route in routes(api, "post") if "requestBody" in route}
    faults: list[str | None] = []
    for path, body in valid.items():
        faults += post_limits(caller, filled(path, ids), body)
    assert_no(faults)


def post_limits(caller: Caller, path: str, body: Any) -> list[str | None]:
    """Post EXAMPLES variants of a body. Returns the fault of each."""
    places = strategies.sampled_from(list(leaves(body)))
    faults: list[str | None] = []

    @hypothesis.seed(1)
    @hypothesis.settings(
        max_examples=EXAMPLES, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @hypothesis.given(places, strategies.sampled_from(LIMITS))
    def post(place: tuple[Any, ...], value: Any) -> None:
        content = json.dumps(changed(body, place, value)).encode()
        faults.append(fault(caller.post(path, content=content, headers={"content-type": "application/json"})))

    post()
    return faults
