"""`assent sessions`: begin sessions, find them, watch them, write to them and stop them."""

import json
import re
import uuid
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from typing import Any

import click

from api.cli.briefing import decision_line
from api.cli.client import ENDS, Inbox, with_inbox
from api.cli.main import as_json, reason, sure
from api.cli.names import NameOf, names_of
from api.cli.nouns import IdOf
from api.cli.showing import dollars, narrate, since, until
from api.cli.states import state_of
from api.cli.tables import Column, id_column, painted, show_table
from models.pure.state_words import SESSION
from models.pure.text.relative_time import number_with_noun
from models.pure.text.visible import visible, visible_lines

RECENT = 20
"""Events of the past that are shown."""


def _budget(_context: click.Context, parameter: click.Parameter, text: str | None) -> dict[str, Any] | None:
    """Return a budget as the API takes it. Raises click.BadParameter."""
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,10}(\.\d\d?)?", text) or not (cents := int(Decimal(text) * 100)):
        raise click.BadParameter("must be dollars, with at most two decimals, and more than 0", param=parameter)
    return {"type": "limit", "max_list_cost": {"amount": str(cents), "currency": "USD"}}


@click.group()
def sessions() -> None:
    """Begin, find, watch and stop sessions."""


@sessions.command("start")
@click.argument("agent", type=IdOf("agent"))
@click.argument("message")
@click.option("--title", help="A title for people.")
@click.option(
    "--environment",
    "environment_id",
    type=IdOf("environment"),
    help="The environment, by name or id.  [default: Assent's own workers]",
)
@click.option("--budget", metavar="DOLLARS", callback=_budget, help="The most that the session may cost, such as 2.50.")
@click.option("--watch", is_flag=True, help="Then show what happens, until the session rests.")
@as_json
@with_inbox
def sessions_start(inbox: Inbox, agent: str, message: str, as_json: bool, **fields: Any) -> None:
    """Begin a session of AGENT (name or id) with MESSAGE."""
    watch = fields.pop("watch")
    body = {name: value for name, value in fields.items() if value is not None}
    body |= {"agent": agent, "initial_events": [_message(message)]}
    session = inbox.call("POST", "/v1/sessions", json=body, headers=_once())
    click.echo(json.dumps(session, indent=1) if as_json else f"{session['id']} begins.")
    if watch:
        _watch(inbox, session["id"], as_json)


@sessions.command("list")
@click.option("--agent", "agent_id", type=IdOf("agent"), help="Only of this agent, by name or id.")
@click.option("--waiting", flag_value="approval", help="Only sessions that wait for people.")
@click.option("--all", "include_archived", flag_value="true", help="Also archived sessions.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many, newest first.")
@as_json
@with_inbox
def sessions_list(inbox: Inbox, as_json: bool, limit: int, **only: str | None) -> None:
    """List sessions, newest first."""
    columns = [
        id_column(),
        Column("STATE", state_of, coloured=True),
        Column("TITLE", lambda session: session["title"], gives_way=True),
        Column("AGENT", lambda session: session["agent"]["name"], gives_way=True, is_spare=True),
        Column("WAITS FOR", _waits_for, gives_way=True, is_spare=True),
        Column("COST", lambda session: dollars(session["usage"]["exact_list_cost"]), to_the_right=True, is_spare=True),
        Column("ACTIVE", lambda session: since(session["updated_at"]), is_spare=True),
    ]
    show_table(inbox.listed("/v1/sessions", most=limit, **only), as_json, columns)


@sessions.command("show")
@click.argument("session", type=IdOf("session"))
@as_json
@with_inbox
def sessions_show(inbox: Inbox, session: str, as_json: bool) -> None:
    """Show a session, by its id or title: its state, its cost, what it waits for, and its last events."""
    row = inbox.call("GET", f"/v1/sessions/{session}")
    for line in [json.dumps(row, indent=1)] if as_json else _lines(row, names_of(inbox, [row["on_behalf_of"]])):
        click.echo(line)
    if not as_json:
        for event in _newest(inbox, row["id"]):
            _print(inbox, event, as_json)


@sessions.command("watch")
@click.argument("session", type=IdOf("session"))
@as_json
@with_inbox
def sessions_watch(inbox: Inbox, session: str, as_json: bool) -> None:
    """Show the last events of a session, and what happens next, until the session rests. With --json, an event a line."""
    _watch(inbox, session, as_json)


@sessions.command("say")
@click.argument("session", type=IdOf("session"))
@click.argument("message")
@click.option("--watch", is_flag=True, help="Then show what happens, until the session rests.")
@as_json
@with_inbox
def sessions_say(inbox: Inbox, session: str, message: str, watch: bool, as_json: bool) -> None:
    """Send a message to a session."""
    events = _send(inbox, session, _message(message))
    click.echo(json.dumps(events, indent=1) if as_json else f"Sent to {session}.")
    if watch:
        _watch(inbox, session, as_json)


@sessions.command("erase")
@click.argument("session", type=IdOf("session"))
@reason
@sure
@with_inbox
def sessions_erase(inbox: Inbox, session: str, reason: str, yes: bool) -> None:
    """Erase a session, by its id or title: its history, its files, and the texts of its audit. Stop it first if it runs."""
    if not yes:
        click.confirm(f"Nothing brings {session} back. Erase it?", abort=True)
    inbox.call("POST", f"/v1/sessions/{session}/erase", json={"reason": reason})
    click.echo(f"{session} is erased.")


@sessions.command("stop")
@click.argument("session", type=IdOf("session"))
@as_json
@with_inbox
def sessions_stop(inbox: Inbox, session: str, as_json: bool) -> None:
    """Stop the run of a session. The session takes further messages."""
    events = _send(inbox, session, {"type": "user.interrupt"})
    click.echo(json.dumps(events, indent=1) if as_json else f"{session} stops.")


def _watch(inbox: Inbox, session_id: str, as_json: bool) -> None:
    """Print the last events and then each new one, until the session rests."""
    stream = inbox.follow(session_id)
    with closing(stream):
        # The stream begins before the list is read, so that no event falls between them. The session is read before the list too:
        # if it rests by then, the list has its last events.
        row = inbox.call("GET", f"/v1/sessions/{session_id}")
        past = _newest(inbox, session_id)
        for event in past:
            _print(inbox, event, as_json)
        if row["status"] in {"idle", "terminated"} or (past and past[-1]["type"] in ENDS):
            return
        past_ids = {event["id"] for event in past}
        for event in stream.events():
            if event["id"] in past_ids:
                continue
            _print(inbox, event, as_json)
            if event["type"] in ENDS:
                return


def _newest(inbox: Inbox, session_id: str) -> list[dict[str, Any]]:
    """Return the newest events, oldest first."""
    return inbox.listed(f"/v1/sessions/{session_id}/events", most=RECENT, order="desc")[::-1]


def _send(inbox: Inbox, session_id: str, event: dict[str, Any]) -> list[dict[str, Any]]:
    response = inbox.call("POST", f"/v1/sessions/{session_id}/events", json={"events": [event]}, headers=_once())
    events: list[dict[str, Any]] = response["data"]
    return events


def _once() -> dict[str, str]:
    return {"idempotency-key": str(uuid.uuid4())}


def _message(text: str) -> dict[str, Any]:
    return {"type": "user.message", "content": [{"type": "text", "text": text}]}


def _waits_for(session: dict[str, Any]) -> str:
    """Return what a session waits for: the first question, and the number of the others."""
    waiting = session["waiting_on"]
    if not waiting:
        return ""
    first = waiting[0]["prompt"] if waiting[0]["waits_for"] == "person" else f"{waiting[0]['waits_for']}: {waiting[0]['tool']}"
    return f"{first}{f' (+{len(waiting) - 1})' if len(waiting) > 1 else ''}"


def _lines(session: dict[str, Any], name: NameOf) -> Iterator[str]:
    """Yield the facts about a session."""
    state, reason = state_of(session), (session["stop_reason"] or {}).get("type")
    text = SESSION[state].text
    agent, usage, budget = session["agent"], session["usage"], session["budget"]
    yield click.style(visible(session["title"] or "Untitled session"), bold=True)
    yield f"  id        {session['id']}"
    yield f"  state     {painted(text)}{f' ({reason})' if state == 'failed' else ''}"
    yield f"  agent     {visible(agent['name'])}, version {agent['version']}"
    limit = f" of ${Decimal(budget['max_list_cost']['amount']) / 100:.2f}" if budget else ""
    yield f"  cost      {dollars(usage['exact_list_cost'])}{limit}, {number_with_noun(usage['requests'], 'request')}"
    yield f"  began     {since(session['created_at'])}, active {since(session['updated_at'])}"
    if session["on_behalf_of"]:
        yield f"  for       {visible(name(session['on_behalf_of']) or '')}"
    for one in session["waiting_on"]:
        if one["waits_for"] == "person":
            yield f"  waits     {visible(one['prompt'])} ({one['approval_id']}, {until(one['expires_at'])})"
        else:
            yield f"  waits     for the {one['waits_for']} to run {visible(one['tool'])}"
    yield ""


def _print(inbox: Inbox, event: dict[str, Any], as_json: bool) -> None:
    """Print an event: its time, and what happened. Events without words are not printed, but with `as_json`."""
    if as_json:
        click.echo(json.dumps(event))
        return
    for line in _in_words(inbox, event):
        first, *others = line.split("\n")
        click.echo(f"{click.style((event.get('processed_at') or '')[11:19] or '        ', dim=True)}  {first}")
        for text in others:
            click.echo(f"          {text}")


def _in_words(inbox: Inbox, event: dict[str, Any]) -> Iterator[str]:
    match event:
        case {"type": "user.message", "content": content}:
            yield from (f"person: {visible_lines(block['text'])}" for block in content if block["type"] == "text")
        case {"type": "user.tool_confirmation"}:
            yield decision_line(inbox, event)
        case {"type": "user.interrupt"}:
            yield SESSION["stopped"].text
        case _:
            yield from narrate(event)
