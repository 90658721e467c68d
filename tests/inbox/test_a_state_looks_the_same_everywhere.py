"""A state has one word and one glyph: in the list, on the card, in the session, in mail, in Slack and in the terminal."""

import re
from html import unescape
from itertools import chain
from pathlib import Path
from typing import get_args
from unicodedata import east_asian_width
from xml.etree import ElementTree

import click
import people
import pytest
from click.testing import CliRunner
from doors.served import key
from inbox.waiting import asked, unknown_outcome
from outbox.notified import channel
from own_database import Clock
from people import Somebody
from rows.spending import COSTS_10, MODEL, QUOTE
from rows.stage import Stage, call, say

from api.cli.main import main
from api.cli.tables import COLOURS, painted
from api.desk.shell import places
from models.database.transactions import transaction
from models.flow.begin.sessions import archive
from models.notices import texts as notices
from models.notices.notice import Stage as NoticeStage
from models.notices.notification import Notification
from models.pure.state_words import (
    APPROVAL,
    CHARACTERS,
    DELIVERY,
    EFFECT,
    ENDED_EARLY,
    GIVEN_UP,
    SERVICE,
    SESSION,
    SYSTEM,
    TOOL_CALL,
    session_state,
)
from models.pure.states import STATUSES, RunLimit
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall
from models.workspace.halt import Halt
from workers.notifiers import Address, slack_blocks, texts
from workers.notifiers.mail import compose

GLYPHS = Path(places.__file__).parent / "glyphs.svg"
RECEIPT = {"thread": "t", "domain": "example.com", "subject": "Approval", "count": "1"}
ALL = [GIVEN_UP] + [
    state for states in (APPROVAL, TOOL_CALL, SESSION, EFFECT, DELIVERY, SERVICE, SYSTEM) for state in states.values()
]


def test_each_state_has_a_glyph_that_pages_draw_and_texts_print() -> None:
    drawn = {symbol.attrib["id"] for symbol in ElementTree.parse(GLYPHS).getroot()}
    all_places = chain(places.RAIL, *places.SETTINGS.values(), places.ACTIONS)
    glyphs = {state.glyph for state in ALL} | {place.glyph for place in all_places}
    assert glyphs - drawn == set()
    assert {state.glyph for state in ALL} == set(CHARACTERS)
    assert all(len(character) == 1 and east_asian_width(character) not in "WF" for character in CHARACTERS.values())


def test_each_status_has_a_word() -> None:
    assert set(APPROVAL) == set(STATUSES["approval"])
    assert set(TOOL_CALL) == set(STATUSES["tool_call"])
    assert set(DELIVERY) == set(STATUSES["delivery"]) == set(STATUSES["notification"])
    ends = [None, {"type": "end_turn"}, {"type": "end_turn", "ended_by": "user:x"}, {"type": "retries_exhausted"}]
    words = {session_state(status, reason).word for status in STATUSES["thread"] for reason in [*ends, {"type": "refusal"}]}
    words |= {session_state("idle", {"type": "end_turn", "limit_reached": limit}).word for limit in get_args(RunLimit)}
    words |= {session_state("idle", {"type": "budget_reached"}).word, session_state("idle", None, archived=True).word}
    words |= {session_state("running", None, is_held=True).word}
    assert words == set(SESSION)


def test_the_page_of_the_visual_system_has_these_states() -> None:
    page = (Path(places.__file__).parents[3] / "docs" / "visual-system.md").read_text("utf-8")
    for noun, states in (("approval", APPROVAL | {"given up": GIVEN_UP}), ("session", SESSION), ("rule", EFFECT)):
        assert f"| {noun} | {' · '.join(state.text for state in states.values())} |" in page


def test_a_colour_of_the_terminal_is_that_of_the_pages() -> None:
    for state in ALL:
        plain = click.unstyle(painted(state.text))
        assert plain == state.text
        assert (painted(state.text) != plain) == (state.tone in COLOURS), state


def _decided(stage: Stage, anna: Somebody, clock: Clock) -> dict[str, Approval]:
    """An approval for each status that one ends with, the first of which nobody decided."""
    rows = {status: asked(stage)[0] for status in ("expired", "allowed", "denied", "answered", "cancelled")}
    stage.decide(rows["allowed"], result="allow")
    stage.decide(rows["denied"], result="deny")
    stage.decide(rows["answered"], result="allow", respond=[{"type": "text", "text": "3 files"}])
    stage.send(rows["cancelled"].session_id, {"type": "user.interrupt"})
    clock.advance(2 * 86_400)
    stage.expire(rows["expired"].session_id)
    return {status: stage.get(Approval, row.id) for status, row in rows.items()}


def _messages(stage: Stage, who: Somebody, approval: Approval, stage_of: NoticeStage) -> tuple[str, str, str]:
    """A mail's text, a mail's HTML and Slack's text about an approval."""
    row = channel(stage, who)
    with transaction(stage.workspace_id) as db:
        notice = notices.notice(db, Notification.test(db, row), row, db.get_one(Approval, approval.id), stage_of)
    address = Address(row.id, stage.workspace_id, None, "ops@example.com", "token")
    html = compose(address, notice, RECEIPT, "Assent <assent@example.com>").get_body(("html",))
    assert html
    return texts.body(notice), html.get_content(), str(slack_blocks.message(notice)[1])


def test_a_decision_looks_the_same_everywhere(stage: Stage, api: str, clock: Clock) -> None:
    """In the list, on the card, in the session, in mail, in Slack and in the terminal: the glyph, and then the same sentence."""
    secret = key(stage)
    rows = _decided(stage, people.member(stage, "admin"), clock)
    anna = people.member(stage, "admin", email="anna@example.com")
    assert set(rows) == set(APPROVAL) - {"pending"}
    terminal = CliRunner(env={"ASSENT_URL": api, "ASSENT_API_KEY": secret})
    with anna.client(api) as client:
        listed = unescape(client.get("/inbox?show=decided").text)
        for status, approval in rows.items():
            state = APPROVAL[status]
            assert approval.status == status
            sentence = client.get(f"/v1/approvals/{approval.id}/briefing").json()["ending"]
            assert sentence.startswith(state.word.capitalize())
            drawn = f'#{state.glyph}"/></svg></span> {sentence}'
            assert drawn in listed, status
            assert drawn in unescape(client.get(f"/inbox/approvals/{approval.id}").text), status
            call = TOOL_CALL[stage.get(ToolCall, approval.tool_call_id).status]
            assert (call.glyph, call.tone) == (state.glyph, state.tone)
            session = unescape(client.get(f"/inbox/sessions/{approval.session_id}").text)
            assert re.search(rf'#{call.glyph}"/></svg>{state.word}\b', session), status
            printed = f"{state.character} {sentence}"
            assert [printed in text for text in map(unescape, _messages(stage, anna, approval, "decided"))] == [True] * 3, status
            assert f"{approval.id}: {printed}.\n" in terminal.invoke(main, ["approvals", "show", approval.id]).output
            row = terminal.invoke(main, ["approvals", "list", "--status", status]).output.splitlines()[1]
            assert row.startswith(f"{approval.id}  {state.word} ")


def test_a_call_that_was_given_up_is_told_alike_and_without_a_check(stage: Stage, api: str, subtests: pytest.Subtests) -> None:
    anna = people.member(stage, "admin", email="anna@example.com")
    terminal = CliRunner(env={"ASSENT_URL": api, "ASSENT_API_KEY": key(stage)})
    for decision in ({"outcome": "give_up"}, {"result": "deny"}):
        with subtests.test(str(decision)):
            row = unknown_outcome(stage)
            stage.decide(row, **decision)
            approval = stage.get(Approval, row.id)
            with anna.client(api) as client:
                sentence = client.get(f"/v1/approvals/{approval.id}/briefing").json()["ending"]
                assert sentence.startswith("Given up by ")
                for path in ("/inbox?show=decided", f"/inbox/approvals/{approval.id}"):
                    assert f'#{GIVEN_UP.glyph}"/></svg></span> {sentence}' in unescape(client.get(path).text)
                session = unescape(client.get(f"/inbox/sessions/{approval.session_id}").text)
                assert f'#{GIVEN_UP.glyph}"/></svg>{sentence[0].lower()}{sentence[1:]}<' in session
            printed = f"{GIVEN_UP.character} {sentence}"
            shown = terminal.invoke(main, ["approvals", "show", approval.id]).output
            assert all(printed in unescape(text) for text in (*_messages(stage, anna, approval, "decided"), shown))


def test_what_waits_is_said_to_be_in_no_other_state(stage: Stage, api: str) -> None:
    [approval] = asked(stage)
    anna = people.member(stage, "admin", email="anna@example.com")
    endings = [state for status, state in APPROVAL.items() if status != "pending"]
    terminal = CliRunner(env={"ASSENT_URL": api, "ASSENT_API_KEY": key(stage)})
    with anna.client(api) as client:
        pages = [client.get(path).text for path in ("/inbox", f"/inbox/approvals/{approval.id}")]
        session = client.get(f"/inbox/sessions/{approval.session_id}").text
    waits = APPROVAL["pending"]
    assert f'#{waits.glyph}"/></svg>{waits.word}<' in session
    assert f'#{waits.glyph}"/></svg>{TOOL_CALL["asked"].word}<' in session
    assert TOOL_CALL["asked"].word.startswith(waits.word)
    shown = [*_messages(stage, anna, approval, "requested"), terminal.invoke(main, ["approvals", "show", approval.id]).output]
    for state in endings:
        assert not [page for page in pages if f'#{state.glyph}"/></svg></span> {state.word.capitalize()}' in page]
        assert not [text for text in shown if f"{state.character} {state.word.capitalize()}" in text]
    assert f"{approval.id}  {waits.word} " in terminal.invoke(main, ["approvals", "list"]).output


def _sessions(stage: Stage, clock: Clock) -> dict[str, str]:
    """The ids of sessions, one in each state."""
    stage.quote = QUOTE
    ids = {"out of budget": stage.session(model=MODEL, budget="5", on_ask="deny")}
    stage.message(ids["out of budget"])
    stage.reply(ids["out of budget"], say("So far."), charge=COSTS_10)
    stage.message(ids["out of budget"], "More.")
    stage.claim(ids["out of budget"])
    stage.quote = Stage().quote
    ids["failed"] = stage.session()
    stage.message(ids["failed"])
    stage.fail(stage.begin(ids["failed"]), retryable=False)
    ids["waiting"], ids["stopped"] = (asked(stage)[0].session_id for _ in range(2))
    stage.send(ids["stopped"], {"type": "user.interrupt"})
    ids["stopping"] = stage.session(bash="always_allow")
    stage.begin_call(stage.propose(ids["stopping"]))
    stage.send(ids["stopping"], {"type": "user.interrupt"})
    for state in ("new", "working", "retrying", "done", "refused", "out of turns", "cut off", "archived"):
        ids[state] = stage.session(max_turns=1 if state == "out of turns" else 5)
        if state != "new":
            stage.message(ids[state])
    stage.fail(stage.begin(ids["retrying"]))
    stage.reply(ids["done"], say("Done."))
    stage.reply(ids["refused"], say("No."), stop_reason="refusal")
    stage.reply(ids["cut off"], say("It is"), stop_reason="max_tokens")
    stage.reply(ids["out of turns"], call(command="ls"), stop_reason="tool_use")
    stage.reply(ids["archived"], say("Done."))
    stage.locked(ids["archived"], archive)
    return ids


def _check_looks(stage: Stage, api: str, ids: dict[str, str]) -> None:
    """Check that each of these sessions, by their states, looks the same in each place."""
    terminal = CliRunner(env={"ASSENT_URL": api, "ASSENT_API_KEY": key(stage)})
    rows = terminal.invoke(main, ["sessions", "list", "--all"]).output
    with people.member(stage, "admin").client(api) as client:
        table = client.get("/inbox/sessions").text
        for word, session_id in ids.items():
            state = SESSION[word]
            chip = rf'class="chip {state.tone}"><svg[^>]*><use[^>]*#{state.glyph}"/></svg>{word}<'
            for place in (table[table.index(session_id) - 1500 :], client.get(f"/inbox/sessions/{session_id}").text):
                assert re.search(chip, place), word
            assert f"{session_id}  {word} " in rows
            shown = terminal.invoke(main, ["sessions", "show", session_id]).output
            assert f"  state     {state.text}" in shown
            if word in {"done", *ENDED_EARLY}:
                assert shown.splitlines()[-1].endswith(f"  {state.text}")


def test_a_session_looks_the_same_everywhere(stage: Stage, api: str, clock: Clock) -> None:
    """In the table, on its page, and in the terminal's table, facts and timeline."""
    ids = _sessions(stage, clock)
    assert set(ids) == set(SESSION) - {"held by the halt"}
    _check_looks(stage, api, ids)


def test_a_session_that_a_halt_holds_looks_the_same_everywhere(stage: Stage, api: str) -> None:
    """A session of which a call still runs is working, until the call ends."""
    queued, retrying, busy = stage.session(), stage.session(), stage.session(bash="always_allow")
    stage.message(queued)
    stage.message(retrying)
    stage.fail(stage.begin(retrying))
    call_at_work = stage.begin_call(stage.propose(busy))
    with transaction(stage.workspace_id) as db:
        Halt.start(db, stage.principal, None)
    _check_looks(stage, api, {"held by the halt": queued, "working": busy})
    stage.finish_call(call_at_work)
    for session_id in (retrying, busy):
        _check_looks(stage, api, {"held by the halt": session_id})
