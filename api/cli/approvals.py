"""`assent approvals`: decide approvals in a terminal, as a person or from a program."""

import json
import time
from typing import Any, TextIO
from urllib.parse import quote

import click

from api.cli.asking import Later, ask, edited
from api.cli.briefing import briefing_lines, came_of
from api.cli.client import Approval, Inbox, with_inbox
from api.cli.main import Number, as_json
from api.cli.nouns import IdOf
from api.cli.showing import describe, outcome, question, since, tally, until
from api.cli.tables import Column, id_column, show_table
from models.pure.state_words import approval_state

WATCH_SECONDS = 1
AHEAD = 100
"""Approvals behind those already shown that are counted before each question."""
STATUSES = ("pending", "allowed", "denied", "expired", "cancelled", "answered", "all")


def _json(_context: click.Context, parameter: click.Parameter, text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError) as error:
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
@click.option("--session", "session_id", type=IdOf("session"), help="Only of this session.")
@click.option("--tool", help="Only of this tool.")
@click.option(
    "--for", type=IdOf("person"), help="The waiting list of a person: what waits for the person's vote, the oldest deadline first."
)
@click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="At most so many, oldest first.")
@as_json
@with_inbox
def approvals_list(inbox: Inbox, status: str, limit: int, as_json: bool, **only: str | None) -> None:
    """List approvals, without deciding."""
    rows = inbox.listed("/v1/approvals", most=limit, status=None if status == "all" else status, **only)
    show_table(rows, as_json, _columns(rows))


@approvals.command("show")
@click.argument("approval_id", type=IdOf("approval"))
@click.option("--reveal", is_flag=True, help="Show secrets. Needs a key with the scope reveal, and is audited.")
@as_json
@with_inbox
def approvals_show(inbox: Inbox, approval_id: str, reveal: bool, as_json: bool) -> None:
    """Show one approval: the call that would run, and the decision."""
    approval = inbox.approval(approval_id, reveal=reveal)
    if as_json:
        click.echo(json.dumps(approval, indent=1))
        return
    title = inbox.call("GET", f"/v1/sessions/{quote(approval['session_id'])}").get("title")
    briefing = inbox.briefing(approval["id"])
    ending = outcome(approval, briefing.get("ending", ""))
    for line in [*describe(approval, title=title), *briefing_lines(briefing), "", *ending, *came_of(briefing)]:
        click.echo(line)


@approvals.command("decide")
@click.argument("approval_id", type=IdOf("approval"))
@click.option("--allow/--deny", "allow", default=None, help="The decision.")
@click.option("--scope", type=click.Choice(["once", "session", "always"]), help="With --allow: session and always give a grant.")
@click.option(
    "--match", help="The calls that the grant covers: tool, exact, or a rule such as bash(git status *).  [default: tool]"
)
@click.option("--expires-in", "expires_in_seconds", type=Number(0, min_open=True), help="Lifetime of the grant, in seconds.")
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
    if as_json:
        click.echo(json.dumps(decided, indent=1))
        return
    for line in outcome(decided, inbox.briefing(approval_id).get("ending", "")):
        click.echo(line)


def _columns(rows: list[Approval]) -> list[Column]:
    """Return the columns of a list: the place in a waiting list and the votes only where there are any."""
    place = [Column("PLACE", lambda row: row["queue_position"], to_the_right=True)]
    votes = [Column("VOTES", lambda row: tally(row) if row["people_only"] else "", is_spare=True)]
    return [
        *(place if any(row["queue_position"] for row in rows) else []),
        id_column(),
        Column("STATUS", lambda row: approval_state(row["status"], row["decision"]).word, coloured=True),
        Column("QUESTION", question, gives_way=True),
        *(votes if any(row["people_only"] for row in rows) else []),
        Column("ASKED", lambda row: since(row["created_at"]), is_spare=True),
        Column("DEADLINE", lambda row: until(row["expires_at"]) if row["status"] == "pending" else "", is_spare=True),
    ]


def run(inbox: Inbox, *, watch: bool = False) -> None:
    """Show each pending approval and ask for a decision, once or for ever."""
    ids_shown: list[str] = []
    while True:
        most = len(ids_shown) + AHEAD
        pending = inbox.listed("/v1/approvals", most=most, status="pending")
        new = [approval for approval in pending if approval["id"] not in ids_shown]
        if new:
            # One at a time, since a decision may create approvals or settle others.
            ids_shown.append(new[0]["id"])
            place = f"{len(ids_shown)} of {len(ids_shown) + len(new) - 1}{'+' * (len(pending) == most)}"
            later = ask(inbox, new[0], place)
            if later is Later.QUIT:
                return
            if later is Later.BACK:
                ids_shown = _before(ids_shown, {approval["id"] for approval in pending})
        elif watch:
            time.sleep(WATCH_SECONDS)
        else:
            click.echo(_rest(len(pending), any_shown=bool(ids_shown)))
            return


def _rest(waiting: int, *, any_shown: bool) -> str:
    """Return how many approvals still wait, all of which were shown."""
    if waiting:
        return f"No others. {waiting} that {'was' if waiting == 1 else 'were'} shown still wait{'s' * (waiting == 1)}."
    return "Nothing else waits." if any_shown else "Nothing waits for a decision."


def _before(past_ids: list[str], pending: set[str]) -> list[str]:
    """Return the past approvals, without the last one and the last before it that still waits."""
    others = past_ids[:-1]
    waiting = [approval_id for approval_id in others if approval_id in pending]
    return [approval_id for approval_id in others if approval_id not in waiting[-1:]]


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
    except (ValueError, RecursionError) as error:
        raise click.ClickException(f"{file.name} is not JSON: {error}") from None
