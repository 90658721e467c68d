"""Asks a person in a terminal to decide one approval: numbered choices, and the further questions of each."""

import json
import sys
import termios
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

import click

from api.cli.client import Approval, Inbox, RefusedByApi
from api.cli.forms import ask_all, declined
from api.cli.showing import REACHES, describe, json_text, narrate
from models.pure.text.visible import visible

Decision = dict[str, Any]

Choices = dict[str, tuple[str, Decision | None]]


class Later(Enum):
    """The approval is not decided now."""

    SKIP = "skip"
    QUIT = "quit"


_LATER: Choices = {"9": ("skip", None), "q": ("quit", None)}
CALL: Choices = {
    "1": ("allow once", {"result": "allow"}),
    "2": ("allow for this session", {"result": "allow", "scope": "session"}),
    "3": ("allow always", {"result": "allow", "scope": "always"}),
    "4": ("deny", {"result": "deny"}),
    "5": ("deny with a message", {"result": "deny"}),
    "6": ("deny and end the run", {"result": "deny", "interrupt": True}),
    "7": ("edit the input, then allow", {"result": "allow"}),
    "8": ("answer in the tool's place", {"result": "allow"}),
    **_LATER,
}
UNKNOWN: Choices = {
    "1": ("it happened: tell the agent this result", {"outcome": "happened"}),
    "2": ("run it again, though it may have happened", {"outcome": "rerun"}),
    "3": ("give up: tell the agent that the outcome is unknown", {"outcome": "give_up"}),
    **_LATER,
}
QUESTION: Choices = {
    "1": ("answer, and let it go on", {"result": "allow"}),
    "2": ("decline to answer, and let it go on", {"result": "allow"}),
    "3": ("deny: it does not go on", {"result": "deny"}),
    **_LATER,
}
BUDGET: Choices = {
    "1": ("raise the budget", {"result": "allow"}),
    "4": ("deny: the run rests", {"result": "deny"}),
    **_LATER,
}
YES_OR_NO: Choices = {
    "1": ("allow", {"result": "allow"}),
    "4": ("deny", {"result": "deny"}),
    **_LATER,
}
"""Of the kinds that `CHOICES` does not name."""
CHOICES = {"budget": BUDGET, "tool_call": CALL, "unknown_outcome": UNKNOWN, "question": QUESTION}
PROMPTS = {
    ("tool_call", "5"): ("deny_message", "Tell the agent:"),
    ("tool_call", "8"): ("respond", "The result:"),
    ("unknown_outcome", "1"): ("result", "The result:"),
}
EDIT = "7"
OPTIONS = {"1": "once", "2": "session", "3": "always", "7": "edit", "8": "answer"}
"""The option of each choice about a call that a tool may leave out. A choice keeps its number if others are left out."""


def ask(inbox: Inbox, approval: Approval) -> bool:
    """Show one approval and carry out the person's choice. Returns False if the person quits."""
    decision = choose(inbox, approval)
    if not isinstance(decision, dict):
        return decision is Later.SKIP
    try:
        for line in settle(inbox, approval, decision):
            click.echo(line)
        for event in inbox.follow(approval["session_id"]).until_idle():
            for line in narrate(event):
                click.echo(line)
    except RefusedByApi as refused:
        click.echo(f"Not decided: {visible(refused.message)}")
    except KeyboardInterrupt:
        click.echo("Stopped watching. The session continues.")
    return True


def choose(inbox: Inbox, approval: Approval) -> "Decision | Later":
    """Show one approval, and return the person's decision."""
    for line in describe(approval):
        click.echo(line)
    choices = _choices(approval)
    while True:
        key = pick({number: words for number, (words, _) in choices.items()})
        if choices[key][1] is None:
            return Later.QUIT if key == "q" else Later.SKIP
        if decision := _complete(inbox, approval, key, dict(choices[key][1] or {})):
            return decision


def pick(choices: Mapping[str, str]) -> str:
    """Show choices, and return the one that the person types. What was typed before they were shown is discarded."""
    for number, words in choices.items():
        click.echo(f"  {number}  {words}")
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)  # such as further lines of a pasted text
    choice: str = click.prompt("Your choice", type=click.Choice(list(choices)), show_choices=False)
    return choice


def _choices(approval: Approval) -> Choices:
    """Return the choices that the approval offers."""
    choices, options = CHOICES.get(approval["kind"], YES_OR_NO), approval["options"]
    if options is None:
        return choices
    return {number: choice for number, choice in choices.items() if OPTIONS.get(number, "deny") in options}


def settle(inbox: Inbox, approval: Approval, decision: Decision) -> Iterator[str]:
    """Decide the approval that was shown. Yields lines about the effect. Raises RefusedByApi if the API refuses."""
    decided_approval = inbox.decide(approval["id"], {**decision, "expected_input_sha256": approval["input_sha256"]})
    yield "Decided."
    if grant := decided_approval["grant"]:
        yield f"This gives a grant, {grant['id']}: {visible(grant['covers'])}; {visible(grant['reach'])}."


def edited(approval: Approval) -> dict[str, Any] | None:
    """Return the input as edited in $EDITOR, or None if it is unchanged. Masked secrets may stay masked."""
    text: str | None = json.dumps(approval["input"], indent=2, ensure_ascii=False) + "\n"
    while True:
        text = click.edit(text, extension=".json")
        if text is None:
            return None
        try:
            content = json.loads(text)
        except ValueError as error:
            fault = f"It is not JSON: {error}."
        else:
            if isinstance(content, dict):
                return content if content != approval["input"] else None
            fault = "It is not a JSON object."
        if not click.confirm(f"{fault} Edit it again?", default=True):
            return None


def _complete(inbox: Inbox, approval: Approval, choice: str, decision: Decision) -> Decision | None:
    """Return the decision with its further fields, or None if the person goes back."""
    if "scope" in decision:
        return _granting(inbox, approval, decision)
    if approval["kind"] == "tool_call" and choice == EDIT:
        return _editing(approval, decision)
    if approval["kind"] == "question" and decision["result"] == "allow":
        decision["answers"] = (ask_all if choice == "1" else declined)(approval["questions"])
    if prompt := PROMPTS.get((approval["kind"], choice)):
        field, label = prompt
        decision[field] = click.prompt(label, prompt_suffix=" ")
    return decision


def _editing(approval: Approval, decision: Decision) -> Decision | None:
    edited_input = edited(approval)
    if edited_input is None:
        click.echo("The input is unchanged: nothing was decided.")
        return None
    click.echo(f"  input instead  {json_text(edited_input)}")
    return decision | {"updated_input": edited_input} if click.confirm("Run this instead?") else None


def _granting(inbox: Inbox, approval: Approval, decision: Decision) -> Decision | None:
    """Ask which calls the grant covers, and show them before the decision."""
    scope = decision["scope"]
    grant = {"scope": scope, "match": "exact" if approval["covers"]["tool"] is None else _match(approval, scope)}
    if scope == "session" and len(approval["path"]) > 1 and _is_for_all_agents(approval):
        grant["include_sub_agents"] = True
    try:
        preview = inbox.preview(approval["id"], grant)
    except RefusedByApi as refused:
        click.echo(visible(refused.message))
        return None
    click.echo(f"The grant covers {visible(preview['covers'])}, {REACHES[scope]}.")
    click.echo(f"It is for {visible(preview['reach'])}.")
    if waiting := preview["waiting"]:
        click.echo(f"It also allows {waiting} other waiting call{'' if waiting == 1 else 's'}.")
    return decision | grant if click.confirm("Give this grant?") else None


def _is_for_all_agents(approval: Approval) -> bool:
    """Ask whether the grant is for the agent that asks or for all of the session."""
    click.echo("Whose calls to allow?")
    click.echo(f"  1  {visible(approval['reach']['session'])}")
    click.echo(f"  2  {visible(approval['reach']['include_sub_agents'])}")
    which: str = click.prompt("Your choice", type=click.Choice(["1", "2"]), show_choices=False)
    return which == "2"


def _match(approval: Approval, scope: str) -> str:
    """Ask which calls the grant covers."""
    click.echo(f"Which calls to allow, {REACHES[scope]}?")
    click.echo(f"  1  {visible(approval['covers']['tool'])}")
    click.echo(f"  2  {visible(approval['covers']['exact'])}")
    click.echo("  3  calls that match a rule, such as bash(git status *)")
    which = click.prompt("Your choice", type=click.Choice(["1", "2", "3"]), show_choices=False)
    return {"1": "tool", "2": "exact"}.get(which) or str(click.prompt("The rule:", prompt_suffix=" "))
