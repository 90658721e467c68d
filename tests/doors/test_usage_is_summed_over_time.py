"""`GET /v1/usage` sums up the exact usage of turns, by time and by the requested groups, in pages."""

import base64
import csv
import io
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from doors.served import Caller, bad, good, key
from rows.spending import COST, PRICED
from rows.stage import Stage, say

GROUPS = {"agent": 2, "session": 3, "thread": 3, "turn": 4, "model": 2, "provider": 1, "person": 1}
"""What lines can be grouped by, and how many of each there are in `spent`."""


@pytest.fixture
def spent(stage: Stage, clock: Any) -> list[str]:
    """The ids of two sessions of one agent and one of another: three turns with a price and, a day later, one without."""
    first = stage.session()
    agent = stage.read(first).agent_id
    sessions = [first, stage.session(of_agent=agent), stage.session()]
    for session in sessions:
        stage.message(session)
        stage.reply(session, say("."), charge=PRICED)
    clock.advance(86_400)
    stage.message(first)
    stage.reply(first, say("."))
    return sessions


def report(caller: Caller, **query: Any) -> list[dict[str, Any]]:
    """Return all lines of a report, read page by page."""
    query = {"starting_at": (datetime.now(UTC) - timedelta(days=3)).isoformat(), "limit": 2} | query
    lines, page = [], ""
    while page is not None:
        response = good(caller.get("/v1/usage", params=query | ({"page": page} if page else {})))
        lines += response["data"]
        page = response["next_page"]
    return lines


def cursor(key: Any) -> str:
    """Return a cursor as the server makes them."""
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def test_without_groups_it_is_one_line(caller: Caller, spent: list[str]) -> None:
    [line] = report(caller)
    assert (line["requests"], line["unpriced_requests"], line["estimated_requests"]) == (4, 1, 0)
    assert Decimal(line["exact_list_cost"]) == 3 * COST
    assert line["list_cost"] == {"amount": "11", "currency": "USD"}
    assert (line["agent_id"], line["model"]) == (None, None)


def test_the_lines_of_every_group_and_width_have_the_same_sum(caller: Caller, spent: list[str], subtests: pytest.Subtests) -> None:
    for (group, number), width in product(GROUPS.items(), (None, "1d", "1h")):
        with subtests.test(f"{group}, {width}"):
            lines = report(caller, **{"group_by[]": group}, **({"bucket_width": width} if width else {}))
            assert sum(line["requests"] for line in lines) == 4
            assert sum(Decimal(line["exact_list_cost"] or 0) for line in lines) == 3 * COST
            if width:
                assert len({line["starting_at"] for line in lines}) == 2
            field = group if group in {"person", "provider", "model"} else f"{group}_id"
            assert len({line[field] for line in lines}) == number


def test_a_report_can_be_limited_to_a_session_or_a_model(caller: Caller, spent: list[str]) -> None:
    [line] = report(caller, session_id=spent[0])
    assert line["requests"] == 2
    assert report(caller, model="claude-opus-5-5")[0]["requests"] == 3
    assert report(caller, session_id="sesn_none") == []


def test_unknown_costs_are_null(caller: Caller, spent: list[str]) -> None:
    [line] = [line for line in report(caller, **{"group_by[]": "model"}) if line["model"] == "stand-in"]
    assert (line["list_cost"], line["exact_list_cost"], line["cache_savings"], line["input_tokens"]) == (None, None, None, 10)


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ({"starting_at": "2020-01-01T00:00:00Z"}, "starting_at: must be at most 366 days"),
        ({"starting_at": "2026-01-01T00:00:00Z", "ending_at": "2026-01-20T00:00:00Z", "bucket_width": "1h"}, "at most 7 days"),
        ({"starting_at": "2026-01-02T00:00:00Z", "ending_at": "2026-01-01T00:00:00Z"}, "starting_at: must be before ending_at"),
        ({"bucket_width": "1m"}, "bucket_width"),
        ({"group_by[]": "planet"}, "group_by"),
        ({"page": "x"}, "page: is not a cursor"),
        ({"page": "WyIyMDI2LTAxLTAxIl0"}, "page: is not a cursor"),
    ],
)
def test_invalid_queries_name_the_field(caller: Caller, query: dict[str, str], fault: str) -> None:
    bad(caller.get("/v1/usage", params=query), 400, fault)


@pytest.mark.parametrize(
    "key",
    [
        ["2026-01-01T00:00:00+00:00", "\ud800"],
        ["2026-01-01T00:00:00+00:00", "\0"],
        ["2026-01-01T00:00:00+00:00", 1],
        ["2026-01-01T00:00:00+00:00"],
        ["0001-01-01T00:00:00+23:59", "m"],
        ["9999-12-31T23:59:59-23:59", "m"],
        ["2026-01-01T00:00:00", "m"],
        [1, "m"],
        [],
        {},
    ],
)
def test_a_forged_cursor_is_refused(caller: Caller, key: Any) -> None:
    bad(caller.get("/v1/usage", params={"group_by[]": "model", "page": cursor(key)}), 400, "page: is not a cursor")


@pytest.mark.parametrize("time", ["2026-W01-1T00:00:00+00:00", "2026-01-01T00:00:00,5+00:00", "2026-01-01T00:00:00+00:00:30.5"])
def test_a_cursor_s_time_means_the_same_in_each_spelling(caller: Caller, spent: list[str], time: str) -> None:
    lines = good(caller.get("/v1/usage", params={"group_by[]": "model", "page": cursor([time, "m"])}))["data"]
    assert [line["model"] for line in lines] == ["claude-opus-5-5", "stand-in"]


def test_a_model_s_name_may_be_in_any_script(caller: Caller) -> None:
    page = cursor(["2026-01-01T00:00:00+00:00", "模型"])
    good(caller.get("/v1/usage", params={"group_by[]": "model", "page": page}))


def test_a_spreadsheet_gets_the_same_lines(caller: Caller, spent: list[str]) -> None:
    response = caller.get("/v1/usage/csv", params={"group_by[]": "model"})
    assert response.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert [(row["model"], int(row["requests"]), row["exact_list_cost"]) for row in rows] == [
        (line["model"], line["requests"], line["exact_list_cost"] or "") for line in report(caller, **{"group_by[]": "model"})
    ]


def test_it_needs_the_scope_read(stage: Stage, caller: Caller) -> None:
    for scope, status in (("read", 200), ("sessions", 403), ("approvals", 403)):
        assert caller.get("/v1/usage", headers={"x-api-key": key(stage, scope)}).status_code == status
