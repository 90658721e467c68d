"""Pages of a list repeat no row and leave out none, also when rows come and go. Pages of sessions go forward and back."""

from typing import Any

import pytest
from doors.served import Caller, bad, good


def turn(caller: Caller, page: str | None, **query: Any) -> dict[str, Any]:
    """Return a page of two sessions."""
    return good(caller.get("/v1/sessions", params={"limit": 2, **query} | ({"page": page} if page else {})))


def ids(page: dict[str, Any]) -> list[str]:
    """Return the ids of a page's rows."""
    return [row["id"] for row in page["data"]]


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_sessions_forth_and_back(caller: Caller, order: str) -> None:
    agent = caller.agent()
    created = [caller.session(agent)["id"] for _ in range(5)]
    expected = created if order == "asc" else created[::-1]
    first = turn(caller, None, order=order)
    second = turn(caller, first["next_page"], order=order)
    third = turn(caller, second["next_page"], order=order)
    assert [ids(page) for page in (first, second, third)] == [expected[:2], expected[2:4], expected[4:]]
    assert (first["prev_page"], third["next_page"]) == (None, None)
    back = turn(caller, third["prev_page"], order=order)
    start = turn(caller, back["prev_page"], order=order)
    assert (ids(back), ids(start)) == (expected[2:4], expected[:2])
    assert start["prev_page"] is None
    assert ids(turn(caller, start["next_page"], order=order)) == expected[2:4]
    assert ids(turn(caller, back["next_page"], order=order)) == expected[4:]


def test_a_page_stays_where_it_was_when_rows_come_and_go(caller: Caller) -> None:
    agent = caller.agent()
    newest_first = [caller.session(agent)["id"] for _ in range(4)][::-1]
    first = turn(caller, None)
    new = caller.session(agent)["id"]
    second = turn(caller, first["next_page"])
    assert ids(second) == newest_first[2:]
    good(caller.delete(f"/v1/sessions/{newest_first[0]}"))
    back = turn(caller, second["prev_page"])
    assert ids(back) == [new, newest_first[1]]
    assert back["prev_page"] is None


def test_a_cursor_fits_one_list_and_one_order(caller: Caller) -> None:
    agent = caller.agent()
    for _ in range(3):
        caller.session(agent)
    first = turn(caller, None)
    second = turn(caller, first["next_page"])
    for page in (first["next_page"], second["prev_page"]):
        bad(caller.get("/v1/sessions", params={"page": page, "order": "asc"}), 400, "page")
        bad(caller.get("/v1/agents", params={"page": page}), 400, "page")
