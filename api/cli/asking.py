"""Asks a person in a terminal to decide one approval: numbered choices, and the further questions of each."""

import json
import sys
import termios
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any
from urllib.parse import quote

import click

from api.cli.briefing import briefing_lines
from api.cli.client import Approval, Inbox, RefusedByApi
from api.cli.forms import ask_all, declined
from api.cli.showing import REACHES, describe, json_text, narrate
from models.pure.json.canonical import canonical
from models.pure.policy.patterns import parts
from models.pure.text.visible import visible

Decision = dict[str, Any]

Choices = dict[str, tuple[str, Decision | None]]


class Later(Enum):
    """The approval is not decided now."""

    SKIP = "skip"
    BACK = "back"
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


FEW = 7
"""Choices that are listed at once. More are listed if the person asks for them."""
LETTERS = {
    "tool_call": {"a": "1", "s": "2", "d": "4", "e": "7", "j": "9"},
    "question": {"a": "1", "d": "3", "j": "9"},
    "unknown_outcome": {"j": "9"},
}
"""The letters for choices, by the kind of approval. Enter follows each, so that a key that is held decides nothing."""
_LETTERS = {"a": "1", "d": "4", "j": "9"}
"""Of the other kinds."""
_WORDS = {"a": "allow", "s": "session", "d": "deny", "e": "edit", "j": "next", "k": "back"}
_MORE = {"x": "exact", "?": "all", "q": "quit"}
"""One line of 80 columns has all of them."""


def ask(inbox: Inbox, approval: Approval, place: str) -> Later | None:
    """Show one approval and carry out the person's choice. Returns None if the person made a decision."""
    title = inbox.call("GET", f"/v1/sessions/{quote(approval['session_id'])}").get("title")
    decision = choose(inbox, approval, place, title)
    if not isinstance(decision, dict):
        return decision
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
    return None


def choose(inbox: Inbox, approval: Approval, place: str = "", title: str | None = None) -> "Decision | Later":
    """Show one approval, and return the person's decision. `place` and `title`: as `describe` takes them."""
    for line in [*describe(approval, place, title), *briefing_lines(inbox.briefing(approval["id"])), ""]:
        click.echo(line)
    choices = _choices(approval)
    while True:
        key = _press(approval, choices, may_go_back=bool(place))
        if key == "k":
            return Later.BACK
        if choices[key][1] is None:
            return Later.QUIT if key == "q" else Later.SKIP
        if decision := _complete(inbox, approval, key, dict(choices[key][1] or {})):
            return decision


def _press(approval: Approval, choices: Choices, *, may_go_back: bool) -> str:
    """Return the number of a choice, `q`, or `k` for the approval before."""
    letters = {key: one for key, one in LETTERS.get(approval["kind"], _LETTERS).items() if one in choices}
    letters |= {"k": "k"} if may_go_back else {}
    if len(choices) <= FEW:
        _list_choices(choices)
    click.echo("  " + "  ".join(f"{click.style(key, bold=True)} {word}" for key, word in _in_line(letters)))
    while True:
        key = _prompt([*choices, *letters, *_MORE])
        if key == "?":
            _list_choices(choices)
        elif key == "x":
            click.echo(f"  exactly   {visible(approval['input_canonical'])}\n  sha256    {approval['input_sha256']}")
        else:
            return letters.get(key, key)


def _in_line(letters: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the keys of a line of choices, each with its word."""
    yield from ((key, _WORDS[key]) for key in letters)
    yield from _MORE.items()


def _list_choices(choices: Choices) -> None:
    for number, (words, _) in choices.items():
        click.echo(f"  {number}  {words}")


def pick(choices: Mapping[str, str]) -> str:
    """Show choices, and return the one that the person types. What was typed before they were shown is discarded."""
    for number, words in choices.items():
        click.echo(f"  {number}  {words}")
    return _prompt(list(choices))


def _prompt(keys: list[str]) -> str:
    """Return the key that the person types. What was typed before is discarded."""
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)  # such as further lines of a pasted text
    choice: str = click.prompt("Your choice", type=click.Choice(list(dict.fromkeys(keys))), show_choices=False)
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
    for grant in decided_approval["grants"]:
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
        except (ValueError, RecursionError) as error:
            fault = f"It is not JSON: {error}."
        else:
            fault = _fault_of(content)
            if not fault:
                return content if content != approval["input"] else None
        if not click.confirm(f"{fault} Edit it again?", default=True):
            return None


def _fault_of(content: Any) -> str:
    """Return why an input cannot run, or an empty text."""
    if not isinstance(content, dict):
        return "It is not a JSON object."
    try:
        canonical(content)
    except ValueError as error:  # a number that JSON does not have, or that programs read differently
        return f"It is not JSON that can be sent: {error}."
    return ""


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
    try:
        edited_input = edited(approval)
    except click.ClickException as error:  # the editor does not start, or ends with an error
        click.echo(f"{error.message}. Nothing was decided.")
        return None
    if edited_input is None:
        click.echo("The input is unchanged: nothing was decided.")
        return None
    click.echo(f"  input instead  {json_text(edited_input)}")
    return decision | {"updated_input": edited_input} if click.confirm("Run this instead?") else None


def _granting(inbox: Inbox, approval: Approval, decision: Decision) -> Decision | None:
    """Ask which calls the grant covers, and show them before the decision."""
    scope = decision["scope"]
    grant: dict[str, Any] = {"scope": scope} | (
        {"match": "exact"} if approval["covers"]["tool"] is None else _match(approval, scope)
    )
    if scope == "session" and len(approval["path"]) > 1 and _is_for_all_agents(approval):
        grant["include_sub_agents"] = True
    try:
        preview = inbox.preview(approval["id"], grant)
    except RefusedByApi as refused:
        click.echo(visible(refused.message))
        return None
    for one in preview["grants"]:
        click.echo(f"The grant covers {visible(one['covers'])}, {REACHES[scope]}.")
    click.echo(f"It is for {visible(preview['reach'])}.")
    if waiting := preview["waiting"]:
        click.echo(f"It also allows {waiting} other waiting call{'' if waiting == 1 else 's'}.")
    return decision | grant if click.confirm("Give this grant?" if len(preview["grants"]) == 1 else "Give these grants?") else None


def _is_for_all_agents(approval: Approval) -> bool:
    """Ask whether the grant is for the agent that asks or for all of the session."""
    click.echo("Whose calls to allow?")
    click.echo(f"  1  {visible(approval['reach']['session'])}")
    click.echo(f"  2  {visible(approval['reach']['include_sub_agents'])}")
    which: str = click.prompt("Your choice", type=click.Choice(["1", "2"]), show_choices=False)
    return which == "2"


def _match(approval: Approval, scope: str) -> dict[str, Any]:
    """Ask which calls the grant covers, or a grant for each command of a line. Returns the decision's `match` or `matches`."""
    commands = parts(approval["tool"], approval["input"])
    are_covered = bool(commands) and all(part.patterns and not part.destroys for part in commands)
    click.echo(f"Which calls to allow, {REACHES[scope]}?")
    click.echo(f"  1  {visible(approval['covers']['tool'])}")
    click.echo(f"  2  {visible(approval['covers']['exact'])}")
    click.echo("  3  calls that match a rule, such as bash(git status *)")
    if are_covered:
        rules = ", ".join(visible(part.suggestion) for part in commands)
        click.echo(f"  4  each command of this line, by a grant for each: {rules}")
    which = click.prompt("Your choice", type=click.Choice(["1", "2", "3", *("4" * are_covered)]), show_choices=False)
    if which == "4":
        return {"matches": [part.suggestion for part in commands]}
    return {"match": {"1": "tool", "2": "exact"}.get(which) or str(click.prompt("The rule:", prompt_suffix=" "))}
