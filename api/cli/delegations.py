"""`assent delegations`: one person decides for another, for a time."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import click

from api.cli.client import Inbox, with_inbox
from api.cli.main import Number, as_json
from api.cli.names import NameOf, names_in
from api.cli.nouns import IdOf
from api.cli.showing import since, until
from api.cli.tables import Column, Row, id_column, show_row, show_table


@click.group()
def delegations() -> None:
    """Have one person decide for another, for a time."""


@delegations.command("list")
@click.option("--all", "over", is_flag=True, help="Also delegations that have ended.")
@click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="At most so many, newest first.")
@as_json
@with_inbox
def delegations_list(inbox: Inbox, over: bool, limit: int, as_json: bool) -> None:
    """List delegations."""
    rows = inbox.listed("/v1/delegations", most=limit, live=None if over else True)
    show_table(rows, as_json, _columns(inbox, [] if as_json else rows))


@delegations.command("give")
@click.argument("giver", type=IdOf("person"))
@click.argument("receiver", type=IdOf("person"))
@click.option("--hours", type=Number(0, 8784, min_open=True), help="How long, from now.")
@click.option("--until", "ends_at", help="Or the end, such as 2026-02-14T18:00:00Z.")
@click.option("--starts-at", help="The beginning, such as 2026-02-07T08:00:00Z.  [default: now]")
@click.option("--group", type=IdOf("group"), help="Only the decisions of this group, by name or id.  [default: all decisions]")
@as_json
@with_inbox
def delegations_give(
    inbox: Inbox,
    giver: str,
    receiver: str,
    hours: float | None,
    ends_at: str | None,
    starts_at: str | None,
    group: str | None,
    as_json: bool,
) -> None:
    """Have RECEIVER decide for GIVER, once GIVER accepts in the inbox. Needs a key with the scope admin."""
    if (hours is None) == (ends_at is None):
        raise click.UsageError("give the end: either --hours or --until.")
    if hours is not None:
        ends_at = (_begin(starts_at) + timedelta(hours=hours)).isoformat()
    body = {"from": f"user:{giver}", "to": f"user:{receiver}", "ends_at": ends_at}
    body |= {"starts_at": starts_at} if starts_at else {}
    body |= {"group": f"group:{group}"} if group else {}
    row = inbox.call("POST", "/v1/delegations", json=body)
    show_row(row, as_json, _columns(inbox, [] if as_json else [row]))


@delegations.command("end")
@click.argument("delegation_id", type=IdOf("delegation"))
@with_inbox
def delegations_end(inbox: Inbox, delegation_id: str) -> None:
    """End a delegation before its time."""
    inbox.call("DELETE", f"/v1/delegations/{delegation_id}")
    click.echo(f"{delegation_id} is ended.")


def _begin(starts_at: str | None) -> datetime:
    """Return when a delegation begins. Raises BadParameter."""
    try:
        return datetime.fromisoformat(starts_at) if starts_at else datetime.now(UTC)
    except ValueError:
        raise click.BadParameter(f"{starts_at} is not a time: write 2026-02-07T08:00:00Z.", param_hint="--starts-at") from None


def _term(row: Row, name: NameOf) -> str:
    """Return since when, or how long, a delegation holds."""
    now = datetime.now(UTC)
    if row["ended_at"]:
        return f"ended {since(row['ended_at'])}, by {name(row['ended_by'])}"
    if row["accepted_at"] is None:
        return f"waits until {name(row['from'])} accepts it at /inbox/account"
    if datetime.fromisoformat(row["ends_at"]) <= now:
        return f"ended {since(row['ends_at'])}"
    if datetime.fromisoformat(row["starts_at"]) > now:
        return f"from {row['starts_at']} until {row['ends_at']}"
    return until(row["ends_at"])


def _columns(inbox: Inbox, rows: Sequence[Row]) -> list[Column]:
    name = names_in(inbox, rows, "from", "to", "group", "ended_by")
    return [
        id_column(),
        Column("FROM", lambda row: name(row["from"]), gives_way=True),
        Column("TO", lambda row: name(row["to"]), gives_way=True),
        Column("DECISIONS", lambda row: name(row["group"]) or "all", gives_way=True),
        Column("TERM", partial(_term, name=name), gives_way=True),
    ]
