"""The page for grants offers one for each command of a line, says what each covers and what not, and gives them together."""

import html
import re
from collections.abc import Iterator

import httpx2
import people
import pytest
from inbox.waiting import asked, status
from rows.stage import Stage, call

from models.database.transactions import transaction
from models.session.approval.grant import Grant
from models.session.approval.row import Approval

LINE = "git push origin v4.2.0 && gh release create v4.2.0"


@pytest.fixture
def anna(api: str, stage: Stage) -> Iterator[httpx2.Client]:
    """An admin without scripts."""
    with people.member(stage, "admin").client(api) as client:
        yield client


def page_of(anna: httpx2.Client, approval: Approval) -> str:
    return html.unescape(anna.get(f"/inbox/approvals/{approval.id}/always").text)


def covers(stage: Stage) -> list[str]:
    with transaction(stage.workspace_id) as db:
        return [grant.covers for grant in db.find(Grant, "ORDER BY id")]


def test_each_command_has_its_patterns_with_what_they_cover_and_what_not(anna: httpx2.Client, stage: Stage) -> None:
    page = page_of(anna, asked(stage, call(command=LINE))[0])
    assert "A grant for each of the 2 commands, given together" in page
    assert re.findall(r'name="part0" value="([^"]*)"( checked)?', page) == [
        ("bash(git push origin v4.2.0)", ""),
        ("bash(git push origin *)", " checked"),
        ("bash(git push *)", ""),
    ]
    assert re.findall(r'name="part1" value="([^"]*)" checked', page) == ["bash(gh release create *)"]
    assert "starts with <code>git push</code>, but none that takes something away (<code>git push --force</code>)" in page
    assert re.findall(r'name="match" value="([^"]*)" checked', page) == ["exact"]


def test_the_chosen_ones_are_given_together_and_the_card_names_each(anna: httpx2.Client, stage: Stage) -> None:
    [approval] = asked(stage, call(command=LINE))
    form = {"sha256": approval.input_sha256, "scope": "session", "match": "each", "part0": "bash(git push *)"}
    assert anna.post(f"/inbox/approvals/{approval.id}/always", data=form).status_code == 303
    assert status(stage, approval) == "allowed"
    assert [text.partition(",")[0] for text in covers(stage)] == [
        "every bash command that starts with `git push`",
        "every bash command that starts with `gh release create`",
    ]
    card = anna.get(f"/inbox/approvals/{approval.id}").text
    assert card.count('It gave a <a href="/inbox/grants') == 2


def test_a_line_with_a_command_that_takes_something_away_has_no_such_grants(anna: httpx2.Client, stage: Stage) -> None:
    [approval] = asked(stage, call(command="make && rm -rf build"))
    page = page_of(anna, approval)
    assert 'value="each"' not in page
    assert "<code>rm -rf build</code> takes something away, so a person is asked each time." in page
    form = {"sha256": approval.input_sha256, "scope": "session", "match": "each"}
    assert anna.post(f"/inbox/approvals/{approval.id}/always", data=form).status_code == 400
    assert (status(stage, approval), covers(stage)) == ("pending", [])


@pytest.mark.parametrize("command", ["git push", "make $X && ls"])
def test_other_lines_have_none(anna: httpx2.Client, stage: Stage, command: str) -> None:
    assert 'value="each"' not in page_of(anna, asked(stage, call(command=command))[0])
