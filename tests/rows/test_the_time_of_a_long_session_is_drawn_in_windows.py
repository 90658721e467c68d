"""The lanes of a long session are of some of its turns. The page says which, and leads to the others. Each bar is in one window."""

import re
from collections.abc import Iterator
from html import unescape

import httpx2
import psycopg
import pytest
from own_database import Clock, DatabaseUrls
from people import member
from rows import crowd
from rows.spending import COSTS_10, MODEL, QUOTE
from rows.stage import Stage, call, say

from api.desk.sessions import times
from api.desk.sessions.lines import Bar
from models.database import clock as database_clock
from models.database.transactions import transaction
from models.session.thread.row import Thread, own_id

TURNS = 150


@pytest.fixture
def long_session(stage: Stage, database_urls: DatabaseUrls) -> str:
    """A session of 150 turns. All but the second one had a call that waited for a person."""
    session_id = stage.session(write="always_ask")
    stage.message(session_id)
    [tool_call] = stage.reply(session_id, call("write", file_path="a.py", content="x"))
    stage.confirm(session_id, tool_call.id)
    stage.run_call(tool_call)
    stage.reply(session_id, say("Done."))
    with psycopg.connect(database_urls.admin, autocommit=True) as db:
        crowd.turns_of_a_session(db, session_id, TURNS - 2)
    return session_id


@pytest.fixture
def client(stage: Stage, api: str) -> Iterator[httpx2.Client]:
    """A browser of an admin."""
    with member(stage, "admin").client(api) as client:
        yield client


def links(page: str) -> dict[str, str]:
    """The links from the lanes to other turns, by their words."""
    [line] = re.findall(r'<p class="window small">(.*?)</p>', page, re.DOTALL)
    return {words: unescape(path) for path, words in re.findall(r'<a href="([^"]*)">([^<]*)</a>', line)}


def bars(stage: Stage, session_id: str, last: int | None = None) -> tuple[list[Bar], times.Window]:
    """What is drawn of the window that ends with a turn, and that window."""
    with transaction(stage.workspace_id) as db:
        thread = db.get_one(Thread, session_id, own_id(session_id))
        window = times.Window.of(thread, last)
        return times.Times.of(db, thread, times.Place([], "/s", window), database_clock.now(db)).bars, window


def test_the_page_says_which_turns_are_drawn_and_leads_to_the_others(client: httpx2.Client, long_session: str) -> None:
    newest = client.get(f"/inbox/sessions/{long_session}").text
    assert "<span>The newest 60 of 150 turns</span>" in newest
    assert "Files changed in these turns" in newest
    assert [*links(newest)] == ["Earlier turns"]
    middle = client.get(links(newest)["Earlier turns"]).text
    assert "<span>Turns 31 to 90 of 150</span>" in middle
    oldest = client.get(links(middle)["Earlier turns"]).text
    assert "<span>Turns 1 to 30 of 150</span>" in oldest
    assert [*links(oldest)] == ["Later turns"]
    assert "<span>Turns 31 to 90 of 150</span>" in client.get(links(oldest)["Later turns"]).text
    assert "The newest 60 of 150 turns" in client.get(links(middle)["Later turns"]).text


def test_a_short_session_is_drawn_whole_without_such_words(stage: Stage, client: httpx2.Client) -> None:
    session_id = stage.session()
    stage.message(session_id)
    stage.reply(session_id, say("Done."))
    page = client.get(f"/inbox/sessions/{session_id}").text
    assert "Where the time went" in page
    assert '<p class="window' not in page


def test_a_click_on_a_bar_keeps_the_turns_that_are_drawn(client: httpx2.Client, long_session: str) -> None:
    page = client.get(f"/inbox/sessions/{long_session}?turns=90").text
    targets = re.findall(r'<a href="([^"]*)" tabindex="-1"><rect class="person"', page)
    elsewhere = [unescape(target) for target in targets if not target.startswith("#")]
    response = client.get(elsewhere[0], follow_redirects=True)
    assert "before=" in str(response.url)
    assert "<span>Turns 31 to 90 of 150</span>" in response.text


@pytest.mark.parametrize("turns", ["0", "x", "151", "99999999999999999"])
def test_a_number_that_is_no_turn_shows_the_newest(client: httpx2.Client, long_session: str, turns: str) -> None:
    assert "The newest 60 of 150 turns" in client.get(f"/inbox/sessions/{long_session}?turns={turns}").text


def test_each_bar_is_in_one_window(stage: Stage, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.quote = QUOTE
    session_id = stage.session(model=MODEL, budget="10", write="always_ask", max_turns=9)
    stage.message(session_id)
    [tool_call] = stage.reply(session_id, call("write", file_path="a.py", content="x"), charge=COSTS_10)
    clock.advance(5)
    stage.confirm(session_id, tool_call.id)
    stage.run_call(tool_call)
    clock.advance(5)
    assert stage.claim(session_id) is None
    [_, question] = stage.approvals(session_id)
    clock.advance(5)
    stage.decide(question, result="allow")
    clock.advance(5)
    stage.reply(session_id, say("Done."))
    whole, window = bars(stage, session_id)
    assert [sum(bar.lane == lane for bar in whole) for lane in ("model", "tool", "person")] == [2, 1, 2]
    monkeypatch.setattr(times, "WINDOW", 1)
    parts = [bar for last in range(1, window.total + 1) for bar in bars(stage, session_id, last)[0]]
    assert sorted((bar.start, bar.lane, bar.end) for bar in parts) == sorted((bar.start, bar.lane, bar.end) for bar in whole)


def test_of_very_many_calls_in_a_window_the_newest_are_drawn(
    stage: Stage, long_session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(times, "MOST_BARS", 7)
    drawn, _ = bars(stage, long_session)
    assert [sum(bar.lane == lane for bar in drawn) for lane in ("model", "tool", "person")] == [60, 7, 7]
