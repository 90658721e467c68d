"""`assent chat`: talk with an agent in a terminal, and decide there what waits."""

import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import click

from api.cli.asking import Later, choose, pick, settle
from api.cli.briefing import decision_line, people_line
from api.cli.client import ENDS, Absent, Inbox, RefusedByApi, with_inbox
from api.cli.main import next_command
from api.cli.nouns import IdOf
from api.cli.showing import approvers, narrate, question
from models.pure.text.visible import visible, visible_lines

T = TypeVar("T")
Event = dict[str, Any]

PAUSES = (1, 2, 4, 8)
"""Seconds between two tries to reach the API. The last one repeats."""
REMEMBERED = 1000
"""Events of the past that are known not to be news. Every server allows this many in a page."""
SHOWN = 50
"""Events of the past that are shown when a session goes on."""
MOST_LINES = 12
"""Lines of a result that are shown."""
_WATCH, _SAY, _STOP, _LEAVE = "1", "2", "3", "q"
_PAUSED = {
    _WATCH: "go on watching",
    _SAY: "send a message, which the agent gets when it goes on",
    _STOP: "stop the run",
    _LEAVE: "leave: the session goes on",
}


@click.command()
@click.argument("agent", required=False, type=IdOf("agent"))
@click.option("--session", "session_id", type=IdOf("session"), help="Go on with this session, wherever it stands.")
@click.option("--environment", type=IdOf("environment"), help="Of a new session, by name or id.  [default: Assent's own workers]")
@with_inbox
def chat(inbox: Inbox, agent: str | None, session_id: str | None, environment: str | None) -> None:
    """Talk with an agent, and decide what it asks.

    AGENT is the name or id of an agent. Without it, you pick one. Ctrl-C pauses. Ctrl-D leaves, and the session goes on.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.ClickException(
            "assent chat needs a terminal. From a program, send messages with POST /v1/sessions/{id}/events, and decide with "
            "`assent approvals decide`"
        )
    if session_id and agent:
        raise click.UsageError("a session has its agent already: leave out AGENT or --session.")
    with suppress(ImportError):
        import readline  # noqa: F401 - makes the arrow keys work in `input`
    new = {} if session_id else {"agent": agent or _agent(inbox)} | ({"environment_id": environment} if environment else {})
    talk = Talk(inbox, session_id, new)
    try:
        talk.go_on()
    except (click.Abort, EOFError):
        click.echo()
    finally:
        if talk.session_id:
            click.echo(f"Go on with: {next_command(f'chat --session {visible(talk.session_id)}')}")


class Talk:
    """One session in a terminal. All that is shown comes from the API, so that any terminal can go on with it."""

    def __init__(self, inbox: Inbox, session_id: str | None, new: dict[str, str]) -> None:
        self.inbox = inbox
        self.session_id = session_id
        self.new = new
        """The fields of the session that the first message creates, if there is none yet."""
        self.known: set[str] = set()
        """Ids of the events that were shown, or that this terminal sent."""
        self.later: set[tuple[str, str]] = set()
        """The approvals that the person was asked about here, each with the hash of the input that was shown."""
        self.decided: set[str] = set()
        """The ids of those that the person decided."""
        self.line = Line()

    def go_on(self) -> None:
        """Talk until the person leaves or the session ends. Ctrl-C asks what to do next."""
        if self.session_id:
            session = self._read()
            click.echo(f"{visible(session['agent']['name'])}, session {visible(self.session_id)}")
            self._recall()
        while True:
            try:
                if not self._step():
                    return
            except KeyboardInterrupt:
                self.line.end()
                if not self._pause():
                    return

    def _step(self) -> bool:
        """Do what the session needs next: a message, a decision, or time. Returns False if there is nothing more to do."""
        if self.session_id is None:
            self._ask_for_message()
            return True
        session = self._read()
        if self._catch_up():
            return True
        if session["status"] == "terminated":
            click.echo("The session is archived: it takes no more messages.")
            return False
        if session["status"] == "idle" and not session["waiting_on"]:
            self._ask_for_message()
            return True
        if new := [one for one in session["waiting_on"] if _is_ours(one) and _key(one) not in self.later]:
            return self._decide(new[0])
        if session["waiting_on"]:
            self._tell_what_waits(session["waiting_on"])
        return self._watch()

    def _read(self) -> dict[str, Any]:
        return patient(lambda: self.inbox.call("GET", f"/v1/sessions/{self.session_id}"))

    def _events(self, limit: int, page: str | None = None) -> dict[str, Any]:
        """Return a page of the session's events, the newest first."""
        query = {"order": "desc", "limit": limit} | ({"page": page} if page else {})
        return patient(lambda: self.inbox.call("GET", f"/v1/sessions/{self.session_id}/events", params=query))

    def _recall(self) -> None:
        """Show the end of the past."""
        page = self._events(REMEMBERED)
        past = page["data"][::-1]
        if page["next_page"] or len(past) > SHOWN:
            click.echo("...")
        self.known |= {event["id"] for event in past[:-SHOWN]}
        for event in past:
            self._show(event)

    def _catch_up(self) -> bool:
        """Show the stored events that were not shown yet. Returns True if the session has come to rest meanwhile."""
        news: list[Event] = []
        page = None
        while True:
            events = self._events(100, page)
            unknown = [event for event in events["data"] if event["id"] not in self.known]
            news, page = news + unknown, events["next_page"]
            if len(unknown) < len(events["data"]) or not page:
                break
        news.reverse()
        for event in news:
            self._show(event)
        return any(event["type"] in ENDS for event in news)

    def _ask_for_message(self) -> None:
        """Send what the person types. The first message creates the session. If the API refuses, nothing is sent."""
        text = click.prompt(click.style("you", bold=True), prompt_suffix="> ")
        event = {"type": "user.message", "content": [{"type": "text", "text": text}]}
        try:
            if self.session_id is None:
                self.session_id = self._post("/v1/sessions", {**self.new, "initial_events": [event]})["id"]
                self.known |= {stored["id"] for stored in self._events(1000)["data"] if stored["type"] == "user.message"}
            else:
                self._send(event)
        except RefusedByApi as refused:
            click.echo(f"Not sent: {visible(refused.message)}")

    def _send(self, event: Event) -> None:
        sent = self._post(f"/v1/sessions/{self.session_id}/events", {"events": [event]})
        self.known |= {stored["id"] for stored in sent["data"]}

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Post once, however often the connection is lost meanwhile."""
        key = {"idempotency-key": str(uuid.uuid4())}
        return patient(lambda: self.inbox.call("POST", path, json=body, headers=key))

    def _watch(self) -> bool:
        """Show what happens until the session rests. Returns False if it is deleted."""

        def watch() -> bool:
            stream = self.inbox.follow(str(self.session_id), previews=True)
            # Of what happened before the stream began, the list knows. So nothing is missed, and nothing is shown twice.
            if self._catch_up():
                stream.close()
                return True
            for event in stream.events():
                is_news = event.get("id") not in self.known
                self._show(event)
                if event["type"] in ENDS and is_news:
                    stream.close()
                    return bool(event["type"] != "session.deleted")
            return True

        return patient(watch)

    def _show(self, event: Event) -> None:
        """Show one event, once."""
        if event["type"] in {"event_start", "event_delta"}:
            self.line.preview(event)
        elif event["id"] not in self.known:
            self.known.add(event["id"])
            if event.get("approval_id") in self.decided:
                return
            if event["type"] == "agent.message":
                self.line.finish(event)
            elif lines := patient(lambda: list(_lines(self.inbox, event))):
                self.line.end()
                for text in lines:
                    click.echo(text)

    def _decide(self, waiting: dict[str, Any]) -> bool:
        """Ask about one approval. Returns False if the person leaves."""
        approval = patient(lambda: self.inbox.approval(waiting["approval_id"]))
        if approval["status"] != "pending":
            return True
        decision = choose(self.inbox, approval)
        if decision is Later.QUIT:
            return False
        if isinstance(decision, dict):
            try:
                for text in patient(lambda: list(settle(self.inbox, approval, decision))):
                    click.echo(text)
                self.decided.add(waiting["approval_id"])
            except RefusedByApi as refused:
                click.echo(f"Not decided: {visible(refused.message)}")
        self.later.add(_key(waiting))
        return True

    def _tell_what_waits(self, waiting_on: Sequence[dict[str, Any]]) -> None:
        """Say what waits, and why it is not decided here."""
        for one in waiting_on:
            match one["waits_for"]:
                case "worker":
                    click.echo(f"{visible(one['tool'])} waits for a worker of the session's environment.")
                case "client":
                    click.echo(f"{visible(one['tool'])} waits for the client that runs it.")
                case _:
                    click.echo(f"{'Waits for a person' if _is_ours(one) else 'Waits for others'}: {question(one)}")
                    names = people_line(patient(partial(self.inbox.briefing, one["approval_id"])))
                    for text in [*approvers({"decided_input": None, "status": "pending"} | one), *names]:
                        click.echo(text)
        click.echo("Watching. Ctrl-C for more.")

    def _pause(self) -> bool:
        """Ask what to do instead of watching. Returns False if the person leaves."""
        click.echo()
        chosen = pick(_PAUSED) if self.session_id else _LEAVE
        if chosen == _SAY:
            self._ask_for_message()
        if chosen == _STOP:
            try:
                self._send({"type": "user.interrupt"})
            except RefusedByApi as refused:
                click.echo(f"Not stopped: {visible(refused.message)}")
        return bool(chosen != _LEAVE)


class Line:
    """The agent's text, printed as the model writes it."""

    def __init__(self) -> None:
        self.event_id, self.text, self.index = "", "", 0

    def preview(self, event: Event) -> None:
        """Print the next piece of a message."""
        if event["type"] == "event_start":
            self._begin(event["event"]["id"])
        elif event["event_id"] == self.event_id:
            delta = event["delta"]
            self._print("\n" * (delta["index"] > self.index and bool(self.text)) + delta["content"]["text"])
            self.index = delta["index"]

    def finish(self, event: Event) -> None:
        """Print the rest of a complete message; all of it, on a line of its own, if another text was previewed."""
        text = "\n".join(block["text"] for block in event["content"])
        if event["id"] != self.event_id or not text.startswith(self.text):
            self._begin(event["id"], "assent" if "assent" in event else "agent")
        self._print(text[len(self.text) :])
        self.end()

    def end(self) -> None:
        """End the line, if one has begun."""
        if self.event_id:
            click.echo()
        self.event_id, self.text, self.index = "", "", 0

    def _begin(self, event_id: str, author: str = "agent") -> None:
        self.end()
        self.event_id = event_id
        click.echo(f"{click.style(author, bold=True)}> ", nl=False)

    def _print(self, text: str) -> None:
        self.text += text
        click.echo(visible_lines(text), nl=False)


def patient(call: Callable[[], T]) -> T:
    """Return what `call` returns. As long as the API does not respond, tries again, until Ctrl-C."""
    tries = 0
    while True:
        try:
            return call()
        except Absent as error:
            pause = PAUSES[min(tries, len(PAUSES) - 1)]
            click.echo(f"{visible(error.message)} Trying again in {pause} s; Ctrl-C for more." if not tries else ".", nl=not tries)
            time.sleep(pause)
            tries += 1


def _is_ours(waiting: dict[str, Any]) -> bool:
    """True if an API key may decide."""
    return bool(waiting["waits_for"] == "person" and not waiting["people_only"])


def _key(waiting: dict[str, Any]) -> tuple[str, str]:
    return waiting["approval_id"], waiting["input_sha256"]


def _lines(inbox: Inbox, event: Event) -> Iterator[str]:
    """Yield an event's lines. What waits is asked about, and not told here."""
    match event:
        case {"type": "user.message", "content": content}:
            yield from (f"you> {visible_lines(block['text'])}" for block in content if block["type"] == "text")
        case {"type": "user.tool_confirmation"}:
            yield decision_line(inbox, event)
        case {"approval": _} | {"stop_reason": {"type": "requires_action" | "end_turn"}}:
            return
        case _:
            for text in narrate(event):
                yield from _cut(text)


def _cut(text: str) -> Iterator[str]:
    lines = text.split("\n")
    yield from lines[:MOST_LINES]
    if len(lines) > MOST_LINES:
        yield f"… ({len(lines) - MOST_LINES} more lines)"


def _agent(inbox: Inbox) -> str:
    """Return the id of the only agent, or of the one that the person picks."""
    agents = inbox.listed("/v1/agents")
    if not agents:
        raise click.ClickException("there is no agent: create one with POST /v1/agents")
    names = {str(number): visible(f"{agent['name']}  {agent['id']}") for number, agent in enumerate(agents, 1)}
    return str(agents[int(pick(names)) - 1 if len(agents) > 1 else 0]["id"])
