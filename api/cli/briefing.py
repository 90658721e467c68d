"""What a card shows beside an approval, as lines of a terminal."""

from collections.abc import Iterator
from typing import Any

import click

from api.cli.client import Inbox
from api.cli.tables import painted
from models.pure.state_words import approval_state
from models.pure.text.visible import visible

_MOST = 300
"""Most characters of a text of somebody else's."""
_EFFECTS = {"reads": "reads only", "writes": "may write", "destroys": "may destroy", "unknown": "effect not declared"}


def briefing_lines(briefing: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of an approval's briefing: what is at stake, what has changed, why, and what was decided before.

    None for an empty briefing.
    """
    if at_stake := ", ".join(_stakes(briefing)):
        yield f"  stakes    {at_stake}"
    for change in briefing.get("changes") or ():
        yield click.style(f"  changed   {visible(change)}", fg="yellow")
    if since := briefing.get("since"):
        yield click.style(f"  since     {_spoken_line(since)}", fg="yellow")
    if words := briefing.get("last_words"):
        yield f"  it says   {_short(words)}"
    if request := briefing.get("request"):
        yield f"  request   {_spoken_line(request)}"
    yield from _precedent(briefing.get("precedent"))
    yield from people_line(briefing)


def people_line(briefing: dict[str, Any]) -> Iterator[str]:
    """Yield the line with those who have voted and those who may; none if one person decides."""
    if panel := briefing.get("panel"):
        yield f"  people    {'; '.join(_votes(panel))}"


def decision_line(inbox: Inbox, event: dict[str, Any]) -> str:
    """Return the decision of an event `user.tool_confirmation`, in the words of the approval's card."""
    status = "answered" if event.get("outcome") else "allowed" if event["result"] == "allow" else "denied"
    state = approval_state(status, event)
    ending = inbox.briefing(event["approval_id"]).get("ending") if event.get("approval_id") else ""
    return painted(f"{state.character} {visible(ending)}" if ending else state.text, state.word)


def came_of(briefing: dict[str, Any]) -> Iterator[str]:
    """Yield the line that says what came of the call; none while it waits for people."""
    outcome = briefing.get("outcome")
    if not outcome or outcome["status"] == "asked":
        return
    line = f": {visible(outcome['line'])}" if outcome["line"] else ""
    yield click.style(f"  {visible(outcome['words'])}{line}", fg="red" if outcome["is_error"] else None)


def _stakes(briefing: dict[str, Any]) -> Iterator[str]:
    stakes, precedent = briefing.get("stakes"), briefing.get("precedent")
    if not stakes:
        return
    yield _EFFECTS[stakes["effect"]]
    if stakes["at_most_once"]:
        yield "at most once"
    if precedent and precedent["is_first"]:
        yield "first time for this agent"
    if stakes["at_client"]:
        yield "runs at the client"


def _votes(panel: dict[str, Any]) -> Iterator[str]:
    words = {"allow": "allowed", "deny": "denied", "edit": "edited the input"}
    for seat in panel["seats"]:
        giver = f" for {visible(seat['on_behalf_of'])}" if seat["on_behalf_of"] else ""
        yield f"{visible(seat['name'])}{giver} {words[seat['result']]}"
    if panel["awaits"]:
        names = [visible(person["name"]) for person in panel["people"]] + ([f"{panel['more']} more"] if panel["more"] else [])
        yield visible(panel["awaits"]) + (f" ({', '.join(names)})" if names else "")


def _precedent(precedent: dict[str, Any] | None) -> Iterator[str]:
    if not precedent:
        return
    words = {"allows": "allowed", "answers": "answered", "denials": "denied"}
    counts = [f"{word} {precedent[name]}" for name, word in words.items() if precedent[name]]
    if not counts:
        return
    last = precedent["last_denial"]
    reason = f": “{_short(last['message'])}”" if last and last["message"] else ""
    denial = f"; last denied by {visible(last['by'])}{reason}" if last else ""
    yield f"  before    {visible(precedent['kind'])}: {', '.join(counts)}{denial}"


def _spoken_line(message: dict[str, Any]) -> str:
    by = f"{visible(message['by'])}: " if message["by"] else ""
    return by + _short(message["text"])


def _short(text: str) -> str:
    line = " ".join(text.split())
    return visible(line) if len(line) <= _MOST else f"{visible(line[:_MOST])}… ({len(line) - _MOST} more characters)"
