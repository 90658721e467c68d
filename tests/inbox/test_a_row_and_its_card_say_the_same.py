"""A row says in short what its card says: what the call may do, and how large its change of a file is."""

import html
import re
from collections.abc import Iterator
from typing import Any

import httpx2
import people
import pytest
from inbox.waiting import asked
from rows.stage import Stage, call, entry

from models.database.transactions import transaction
from models.pure.text.line_diff import hunks
from models.session.approval.evidence import Evidence
from models.session.approval.row import Approval
from models.workspace import toolset

ASKED = dict.fromkeys(("bash", "edit", "write", "read"), "always_ask")


@pytest.fixture
def anna(api: str, stage: Stage) -> Iterator[httpx2.Client]:
    """An admin without scripts."""
    with people.member(stage, "admin").client(api) as client:
        yield client


def texts_in(page: str, css: str) -> list[str]:
    """The texts of the elements of this class, in order, without what only screen readers say."""
    shown = re.sub('<span class="unseen">[^<]*</span>', "", page)
    return [html.unescape(text) for text in re.findall(f'class="{css}"[^>]*>([^<]*)<', shown)]


def row_of(anna: httpx2.Client, approval: Approval) -> str:
    page = anna.get("/inbox").text
    return page[page.index(f'<li id="{approval.id}"') :].partition("</li>")[0]


def card_of(anna: httpx2.Client, approval: Approval) -> str:
    return anna.get(f"/inbox/approvals/{approval.id}").text


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (call(command="make"), "may write"),
        (call("read", file_path="a"), "reads only"),
        (call("mcp__shop__look", n=1), "reads only"),
        (call("mcp__shop__refund", n=1), "may write"),
    ],
)
def test_a_row_says_what_the_call_may_do(anna: httpx2.Client, stage: Stage, block: dict[str, Any], words: str) -> None:
    toolset.announce({"orders": [entry("refund"), entry("look", effect="read")]})
    [approval] = asked(stage, block, servers={"shop": "assent:orders"}, **ASKED)
    assert texts_in(row_of(anna, approval), "chip effect") == [words]
    [chips] = re.findall('<ul class="chips".*?</ul>', card_of(anna, approval))
    assert texts_in(chips, "chip(?: due)?")[0] == words


def test_a_decided_row_says_what_came_of_the_call_instead(anna: httpx2.Client, stage: Stage) -> None:
    [approval] = asked(stage)
    stage.decide(approval, result="allow")
    page = anna.get("/inbox?show=decided").text
    assert approval.id in page
    assert "chip effect" not in page


BEFORE = "a\nb\nc\nd\n"
CHANGES: dict[str, tuple[dict[str, Any], str, str]] = {
    "an edit": (call("edit", file_path="a.py", old_string="b\nc\n", new_string="x\n"), "a\nx\nd\n", "+1 -2"),
    "an edit of each place": (
        call("edit", file_path="a.py", old_string="b", new_string="x", replace_all=True),
        "x\na\nx\nc\nd\n",
        "+2 -1",
    ),
    "a file that is written anew": (call("write", file_path="a.py", content="a\nb\n"), "a\nb\n", "+0 -2"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_row_has_the_size_of_the_change_that_its_card_shows(anna: httpx2.Client, stage: Stage, name: str) -> None:
    block, after, size = CHANGES[name]
    [approval] = asked(stage, block, **ASKED)
    change, left_out = hunks(BEFORE, after)
    with transaction(stage.workspace_id) as db:
        Evidence.keep(db, approval.id, approval.session_id, {"hunks": change, "left_out": left_out})
    assert texts_in(row_of(anna, approval), "size") == texts_in(card_of(anna, approval), "size") == [size]


def test_a_new_file_has_its_lines_and_a_cut_change_says_what_it_leaves_out(anna: httpx2.Client, stage: Stage) -> None:
    [new] = asked(stage, call("write", file_path="new.md", content="one\n"), **ASKED)
    [cut] = asked(stage, call("edit", file_path="a.py", old_string="a", new_string="b"), **ASKED)
    with transaction(stage.workspace_id) as db:
        Evidence.keep(db, new.id, new.session_id, {"hunks": [], "left_out": 0, "is_new": True})
        Evidence.keep(db, cut.id, cut.session_id, {"hunks": [{"old": 1, "new": 1, "lines": ["-a", "+b"]}], "left_out": 40})
    for approval, size in ((new, "new, 1 line"), (cut, "+1 -1, 40 more")):
        assert texts_in(row_of(anna, approval), "size") == texts_in(card_of(anna, approval), "size") == [size]


def test_before_a_worker_has_looked_the_size_is_that_of_the_input(anna: httpx2.Client, stage: Stage) -> None:
    [approval] = asked(stage, call("edit", file_path="a.py", old_string="b\nc\n", new_string="x\n", replace_all=True), **ASKED)
    assert texts_in(row_of(anna, approval), "size") == texts_in(card_of(anna, approval), "size") == ["+1 -2, each place"]
