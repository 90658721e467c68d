"""`assent approvals`: decide approvals in a terminal, as a person or from a program."""

import json
import time
from typing import Any, TextIO

import click

from api.cli.asking import ask, edited
from api.cli.client import Approval, Inbox, with_inbox
from api.cli.main import as_json, show
from api.cli.showing import describe, outcome, question, since, tally, until

WATCH_SECONDS = 1
STATUSES = ("pending", "allowed", "denied", "expired", "cancelled", "answered", "all")
PROMPT = 80
"""Characters of a prompt in a list."""


def _json(_context: click.Context, parameter: click.Parameter, text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"it is not JSON: {error}", param=parameter) from None


@click.group(invoke_without_command=True)
@with_inbox
def approvals(inbox: Inbox) -> None:
    """Decide pending approvals."""
    run(inbox)


@approvals.command("watch")
@with_inbox
def approvals_watch(inbox: Inbox) -> None:
    """Decide pending approvals, and wait for more until Ctrl-C."""
    try:
        run(inbox, watch=True)
    except (KeyboardInterrupt, click.Abort):
        click.echo()


@approvals.command("list")
@click.option("--status", type=click.Choice(STATUSES), default="pending", show_default=True)
@click.option("--session", "session_id", help="Only of this session.")
@click.option("--tool", help="Only of this tool.")
@click.option("--for", help="The waiting list of a person, user_...: what waits for the person's vote, the oldest deadline first.")
@click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="At most so many, oldest first.")
@as_json
@with_inbox
def approvals_list(inbox: Inbox, status: str, limit: int, as_json: bool, **only: str | None) -> None:
    """List approvals, without deciding."""
    rows = inbox.listed("/v1/approvals", most=limit, status=None if status == "all" else status, **only)
    show(rows, as_json, _line)


@approvals.command("show")
@click.argument("approval_id")
@click.option("--reveal", is_flag=True, help="Show secrets. Needs a key with the scope reveal, and is audited.")
@as_json
@with_inbox
def approvals_show(inbox: Inbox, approval_id: str, reveal: bool, as_json: bool) -> None:
    """Show one approval: the call that would run, and the decision."""
    approval = inbox.approval(approval_id, reveal=reveal)
    if as_json:
        click.echo(json.dumps(approval, indent=1))
        return
    for line in [*describe(approval), *outcome(approval)]:
        click.echo(line)


@approvals.command("decide")
@click.argument("approval_id")
@click.option("--allow/--deny", "allow", default=None, help="The decision.")
@click.option("--scope", type=click.Choice(["once", "session", "always"]), help="With --allow: session and always give a grant.")
@click.option(
    "--match", help="The calls that the grant covers: tool, exact, or a rule such as bash(git status *).  [default: tool]"
)
@click.option("--expires-in", "expires_in_seconds", type=float, help="Lifetime of the grant, in seconds.")
@click.option("--max-uses", type=int, help="Calls that the grant may allow.")
@click.option(
    "--include-sub-agents", is_flag=True, default=None, help="With --scope session: the grant covers every agent of the session."
)
@click.option("--message", "deny_message", help="With --deny: the reason, for the agent.")
@click.option("--interrupt", is_flag=True, help="With --deny: end the run as well.")
@click.option("--edit", is_flag=True, help="With --allow: edit the input in $EDITOR first.")
@click.option("--input", "file", type=click.File(encoding="utf-8"), help="With --allow: a file with the input to run, as JSON.")
@click.option("--respond", help="With --allow: a result in the tool's place.")
@click.option("--outcome", type=click.Choice(["rerun", "happened", "give_up"]), help="For a call whose outcome is unknown.")
@click.option("--result", help="With --outcome happened: the result.")
@click.option(
    "--answers", callback=_json, help='Answers to a tool\'s questions, as JSON: {"key": {"action": "accept", "content": {}}}.'
)
@click.option("--sha256", "expected_input_sha256", help="SHA-256 of the input that you saw: refuse to decide another input.")
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
    **fields: Any,
) -> None:
    """Decide one approval, without prompts."""
    decision = {name: value for name, value in fields.items() if value is not None}
    if allow is not None:
        if result is not None:
            raise click.UsageError("--result goes with --outcome happened, not with --allow or --deny.")
        result = "allow" if allow else "deny"
    decision |= {"result": result} if result is not None else {}
    decision |= {"interrupt": True} if interrupt else {}
    if edit and file:
        raise click.UsageError("use --edit or --input, not both.")
    if allow is None and "outcome" not in decision:
        raise click.UsageError("use --allow or --deny; or --outcome, for a call whose outcome is unknown.")
    decision |= _by_hand(inbox, approval_id) if edit else _from(file) if file else {}
    decided = inbox.decide(approval_id, decision)
    for line in [json.dumps(decided, indent=1)] if as_json else outcome(decided):
        click.echo(line)


def _line(row: Approval) -> str:
    """Return an approval as a line of a list."""
    prompt = question(row)
    cut = prompt if len(prompt) <= PROMPT else f"{prompt[:PROMPT]}..."
    place = f"{row['queue_position']}. " if row["queue_position"] else ""
    votes = f"  {tally(row)}" if row["people_only"] else ""
    left = f", {until(row['expires_at'])}" if row["status"] == "pending" else ""
    return f"{place}{row['id']}  {row['status']}{votes}  asked {since(row['created_at'])}{left}  {cut}"


def run(inbox: Inbox, *, watch: bool = False) -> None:
    """Show each pending approval and ask for a decision, once or for ever."""
    seen: set[str] = set()
    while True:
        new = [a for a in inbox.pending() if a["id"] not in seen]
        if new:
            # One at a time, since a decision may create approvals or settle others.
            seen.add(new[0]["id"])
            if not ask(inbox, new[0]):
                return
        elif watch:
            time.sleep(WATCH_SECONDS)
        else:
            click.echo("Nothing waits for a decision." if not seen else "Nothing else waits.")
            return


def _by_hand(inbox: Inbox, approval_id: str) -> dict[str, Any]:
    """Return the input as edited in $EDITOR, with the hash of the original input."""
    approval: Approval = inbox.approval(approval_id)
    edited_input = edited(approval)
    if edited_input is None:
        raise click.ClickException("the input is unchanged: nothing was decided")
    return {"updated_input": edited_input, "expected_input_sha256": approval["input_sha256"]}


def _from(file: TextIO) -> dict[str, Any]:
    try:
        return {"updated_input": json.load(file)}
    except ValueError as error:
        raise click.ClickException(f"{file.name} is not JSON: {error}") from None
