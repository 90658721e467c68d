"""`assent holds`: legal holds on sessions and on the workspace."""

from collections.abc import Sequence

import click

from api.cli.client import Inbox, with_inbox
from api.cli.main import as_json
from api.cli.names import names_in
from api.cli.nouns import IdOf
from api.cli.showing import since
from api.cli.tables import Column, Row, id_column, short_id, show_row, show_table


@click.group()
def holds() -> None:
    """Put sessions, or the workspace, on legal hold: nothing of them is deleted, erased or cut."""


@holds.command("list")
@click.option("--session", "session_id", type=IdOf("session"), help="Only on this session.")
@click.option("--all", "over", is_flag=True, help="Also holds that are released.")
@click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="At most so many, newest first.")
@as_json
@with_inbox
def holds_list(inbox: Inbox, session_id: str | None, over: bool, limit: int, as_json: bool) -> None:
    """List holds."""
    rows = inbox.listed("/v1/legal_holds", most=limit, session_id=session_id, open=None if over else True)
    show_table(rows, as_json, _columns(inbox, [] if as_json else rows))


@holds.command("set")
@click.option("--session", "session_id", type=IdOf("session"), help="This session.  [default: the whole workspace]")
@click.option("--reason", required=True, help="Why. Whoever tries to remove what is on hold reads it.")
@as_json
@with_inbox
def holds_set(inbox: Inbox, session_id: str | None, reason: str, as_json: bool) -> None:
    """Set a hold. Needs a key with the scope admin."""
    body = {"reason": reason} | ({"session_id": session_id} if session_id else {})
    row = inbox.call("POST", "/v1/legal_holds", json=body)
    show_row(row, as_json, _columns(inbox, [] if as_json else [row]))


@holds.command("release")
@click.argument("hold_id", type=IdOf("legal hold"))
@as_json
@with_inbox
def holds_release(inbox: Inbox, hold_id: str, as_json: bool) -> None:
    """Release a hold. Other holds on the same session stay. Needs a key with the scope admin."""
    row = inbox.call("DELETE", f"/v1/legal_holds/{hold_id}")
    show_row(row, as_json, _columns(inbox, [] if as_json else [row]))


def _columns(inbox: Inbox, rows: Sequence[Row]) -> list[Column]:
    name = names_in(inbox, rows, "created_by", "released_by")

    def release(hold: Row) -> str | None:
        return f"{since(hold['released_at'])} by {name(hold['released_by'])}" if hold["released_at"] else None

    return [
        id_column(),
        Column("ON", lambda hold: f"session {short_id(hold['session_id'])}" if hold["session_id"] else "the workspace"),
        Column("REASON", lambda hold: hold["reason"], gives_way=True),
        Column("SET", lambda hold: f"{since(hold['created_at'])} by {name(hold['created_by'])}", gives_way=True, is_spare=True),
        Column("RELEASED", release, gives_way=True, is_spare=True),
    ]
