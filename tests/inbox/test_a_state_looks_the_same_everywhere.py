"""A state has one word and one glyph: in the list, on the card, in the session, in mail, in Slack and in the terminal."""

import re
from html import unescape
from pathlib import Path
from unicodedata import east_asian_width
from xml.etree import ElementTree

import click
import people
import pytest
from inbox.waiting import asked
from outbox.notified import channel
from rows.stage import Stage

from api.cli.showing import outcome as outcome_in_terminal
from api.cli.tables import COLOURS, painted
from api.desk.shell import places
from models.database.transactions import transaction
from models.notices import texts as notices
from models.notices.notification import Notification
from models.pure.state_words import (
    APPROVAL,
    CHARACTERS,
    DELIVERY,
    EFFECT,
    SERVICE,
    SESSION,
    SYSTEM,
    TOOL_CALL,
    StateWord,
    session_state,
)
from models.pure.states import STATUSES
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall
from workers.notifiers import slack_blocks, texts

GLYPHS = Path(places.__file__).parent / "glyphs.svg"
ALL = [state for states in (APPROVAL, TOOL_CALL, SESSION, EFFECT, DELIVERY, SERVICE, SYSTEM) for state in states.values()]


def test_each_state_has_a_glyph_that_pages_draw_and_texts_print() -> None:
    drawn = {symbol.attrib["id"] for symbol in ElementTree.parse(GLYPHS).getroot()}
    glyphs = {state.glyph for state in ALL} | {place.glyph for place in (*places.RAIL, *places.SETTINGS, *places.ACTIONS)}
    assert glyphs - drawn == set()
    assert {state.glyph for state in ALL} == set(CHARACTERS)
    assert all(len(character) == 1 and east_asian_width(character) not in "WF" for character in CHARACTERS.values())


def test_each_status_has_a_word() -> None:
    assert set(APPROVAL) == set(STATUSES["approval"])
    assert set(TOOL_CALL) == set(STATUSES["tool_call"])
    assert set(DELIVERY) == set(STATUSES["delivery"]) == set(STATUSES["notification"])
    ends = [None, {"type": "end_turn"}, {"type": "end_turn", "ended_by": "user:x"}, {"type": "retries_exhausted"}]
    words = {session_state(status, reason).word for status in STATUSES["thread"] for reason in [*ends, {"type": "refusal"}]}
    words |= {session_state("idle", {"type": "budget_reached"}).word, session_state("idle", None, archived=True).word}
    assert words == set(SESSION)


def test_a_colour_of_the_terminal_is_that_of_the_pages() -> None:
    for state in ALL:
        plain = click.unstyle(painted(state.text))
        assert plain == state.text
        assert (painted(state.text) != plain) == (state.tone in COLOURS), state


@pytest.mark.parametrize("result", ["allow", "deny"])
def test_a_decision_looks_the_same_everywhere(stage: Stage, api: str, result: str) -> None:
    anna = people.member(stage, "admin", email="anna@example.com")
    [approval] = asked(stage)
    state = APPROVAL["allowed" if result == "allow" else "denied"]
    drawn, words = f'glyphs.svg#{state.glyph}"/>', f"{state.word.capitalize()} by anna"
    with anna.client(api) as client:
        assert client.post(f"/v1/approvals/{approval.id}/decision", json={"result": result}).status_code == 200
        for path in ("/inbox?show=decided", f"/inbox/approvals/{approval.id}"):
            assert re.search(rf"{re.escape(drawn)}</svg></span> {words}", client.get(path).text), path
        session = client.get(f"/inbox/sessions/{approval.session_id}").text
        assert unescape(TOOL_CALL[stage.get(ToolCall, approval.tool_call_id).status].word) in unescape(session)
        shown = client.get(f"/v1/approvals/{approval.id}").json()
    row = channel(stage, anna)
    with transaction(stage.workspace_id) as db:
        notice = notices.notice(db, Notification.test(db, row), row, db.get_one(Approval, approval.id), "decided")
    assert f"{state.character} {words}." in texts.body(notice)
    assert f"{state.character} {words}" in str(slack_blocks.message(notice)[1])
    assert f": {state.text}, by " in next(outcome_in_terminal(shown))


@pytest.mark.parametrize("state", [SESSION["waiting"]])
def test_a_session_looks_the_same_in_the_list_and_on_its_page(stage: Stage, api: str, state: StateWord) -> None:
    [approval] = asked(stage)
    with people.member(stage, "admin").client(api) as client:
        for path in ("/inbox/sessions", f"/inbox/sessions/{approval.session_id}"):
            assert re.search(
                rf'class="chip {state.tone}"><svg[^>]*><use[^>]*#{state.glyph}"/></svg>{state.word}<', client.get(path).text
            )
