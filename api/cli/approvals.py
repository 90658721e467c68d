"""`assent approvals`: the inbox in a terminal, for people and for programs."""

import json
import time
from typing import Any, TextIO

import click

from api.cli.asking import ask, edited
from api.cli.client import Approval, Inbox, with_inbox
from api.cli.main import as_json
from api.cli.showing import describe, outcome
from models.pure.visible import visible

WATCH_SECONDS = 1
STATUSES = ("pending", "allowed", "denied", "expired", "cancelled", "answered", "all")
PROMPT = 80
"""Characters of a prompt in a list."""


def _json(_context: click.Context, parameter: click.Parameter, said: str | None) -> Any:
    try:
        return None if said is None else json.loads(said)
    except ValueError as error:
        raise click.BadParameter(f"it is no JSON: {error}", param=parameter) from None


@click.group(invoke_without_command=True)
@with_inbox
def approvals(inbox: Inbox) -> None:
    """Decide what is waiting for a person."""
    run(inbox)


@approvals.command("watch")
@with_inbox
def approvals_watch(inbox: Inbox) -> None:
    """Decide what is waiting, and wait for more. Ctrl-C ends it."""
    try:
        run(inbox, watch=True)
    except (KeyboardInterrupt, click.Abort):
        click.echo()


@approvals.command("list")
@click.option("--status", type=click.Choice(STATUSES), default="pending", show_default=True)
@click.option("--session", "session_id", help="Only of this session.")
@click.option("--tool", help="Only of this tool.")
@click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="At most so many, the oldest first.")
@as_json
@with_inbox
def approvals_list(inbox: Inbox, status: str, limit: int, as_json: bool, **only: str | None) -> None:
    """List them, and ask nothing."""
    found = inbox.listed("/v1/approvals", most=limit, status=None if status == "all" else status, **only)
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    for row in found:
        prompt = visible(row["prompt"])
        cut = prompt if len(prompt) <= PROMPT else f"{prompt[:PROMPT]}..."
        click.echo(f"{row['id']}  {row['status']}  since {row['created_at']}  until {row['expires_at']}  {cut}")
    if not found:
        click.echo("None.", err=True)


@approvals.command("show")
@click.argument("approval_id")
@click.option("--reveal", is_flag=True, help="With its secrets. Needs a key with the scope reveal, and is audited.")
@as_json
@with_inbox
def approvals_show(inbox: Inbox, approval_id: str, reveal: bool, as_json: bool) -> None:
    """Show one of them: what would run, and what was decided."""
    found = inbox.approval(approval_id, reveal=reveal)
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    for line in [*describe(found), *outcome(found)]:
        click.echo(line)


@approvals.command("decide")
@click.argument("approval_id")
@click.option("--allow/--deny", "allow", default=None, help="May it run?")
@click.option("--scope", type=click.Choice(["once", "session", "always"]), help="How far an allow reaches.")
@click.option("--match", help="What such a grant covers: tool, exact, or a rule such as bash(git status *).  [default: tool]")
@click.option("--expires-in", "expires_in_seconds", type=float, help="Of the grant, in seconds.")
@click.option("--max-uses", type=int, help="Of the grant.")
@click.option("--message", "deny_message", help="With --deny: for the agent.")
@click.option("--interrupt", is_flag=True, help="With --deny: the run ends.")
@click.option("--edit", is_flag=True, help="With --allow: change the input in $EDITOR first.")
@click.option("--input", "file", type=click.File(encoding="utf-8"), help="With --allow: the input that is to run, as JSON.")
@click.option("--respond", help="With --allow: the answer in the tool's place.")
@click.option("--outcome", type=click.Choice(["rerun", "happened", "give_up"]), help="Of a call whose outcome is unknown.")
@click.option("--result", help="With --outcome happened: the result.")
@click.option(
    "--answers", callback=_json, help='Of a call that asks something, as JSON: {"key": {"action": "accept", "content": {}}}.'
)
@click.option("--sha256", "expected_input_sha256", help="Of the input that was shown: decide nothing if it is another.")
@as_json
@with_inbox
def approvals_decide(
    inbox: Inbox,
    approval_id: str,
    allow: bool | None,
    edit: bool,
    file: TextIO | None,
    interrupt: bool,
    result: str | None,
    as_json: bool,
    **said: Any,
) -> None:
    """Decide one of them, and ask nothing."""
    decision = {name: value for name, value in said.items() if value is not None}
    if allow is not None:
        if result is not None:
            raise click.UsageError("--result goes with --outcome happened, not with --allow or --deny.")
        result = "allow" if allow else "deny"
    decision |= {"result": result} if result is not None else {}
    decision |= {"interrupt": True} if interrupt else {}
    if edit and file:
        raise click.UsageError("give --edit or --input, not both.")
    if allow is None and "outcome" not in decision:
        raise click.UsageError("give --allow or --deny; or --outcome, for a call whose outcome is unknown.")
    decision |= _by_hand(inbox, approval_id) if edit else _from(file) if file else {}
    decided = inbox.decide(approval_id, decision)
    for line in [json.dumps(decided, indent=1)] if as_json else outcome(decided):
        click.echo(line)


def run(inbox: Inbox, *, watch: bool = False) -> None:
    """Show what waits and ask about each, once or for ever."""
    seen: set[str] = set()
    while True:
        new = [a for a in inbox.pending() if a["id"] not in seen]
        if new:
            # One at a time: what is decided may bring up more, or settle others.
            seen.add(new[0]["id"])
            if not ask(inbox, new[0]):
                return
        elif watch:
            time.sleep(WATCH_SECONDS)
        else:
            click.echo("Nothing waits for a decision." if not seen else "Nothing else waits.")
            return


def _by_hand(inbox: Inbox, approval_id: str) -> dict[str, Any]:
    """The input as somebody leaves it in $EDITOR, bound to the one that it was made of."""
    approval: Approval = inbox.approval(approval_id)
    found = edited(approval)
    if found is None:
        raise click.ClickException("the input is as it was: nothing was decided")
    return {"updated_input": found, "expected_input_sha256": approval["input_sha256"]}


def _from(file: TextIO) -> dict[str, Any]:
    try:
        return {"updated_input": json.load(file)}
    except ValueError as error:
        raise click.ClickException(f"{file.name}: it is no JSON: {error}") from None
