"""`assent holds`: legal holds on sessions and on the workspace."""

import json
from typing import Any
from urllib.parse import quote

import click

from api.cli.client import Inbox, with_inbox
from api.cli.main import as_json, show
from api.cli.showing import since
from models.pure.text.visible import visible


@click.group()
def holds() -> None:
    """Put sessions, or the workspace, on legal hold: nothing of them is deleted, erased or cut."""


@holds.command("list")
@click.option("--session", "session_id", help="Only on this session.")
@click.option("--all", "over", is_flag=True, help="Also holds that are released.")
@click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="At most so many, newest first.")
@as_json
@with_inbox
def holds_list(inbox: Inbox, session_id: str | None, over: bool, limit: int, as_json: bool) -> None:
    """List holds."""
    rows = inbox.listed("/v1/legal_holds", most=limit, session_id=session_id, open=None if over else True)
    show(rows, as_json, _line)


@holds.command("set")
@click.option("--session", "session_id", help="This session.  [default: the whole workspace]")
@click.option("--reason", required=True, help="Why. Whoever tries to remove what is on hold reads it.")
@as_json
@with_inbox
def holds_set(inbox: Inbox, session_id: str | None, reason: str, as_json: bool) -> None:
    """Set a hold. Needs a key with the scope admin."""
    body = {"reason": reason} | ({"session_id": session_id} if session_id else {})
    row = inbox.call("POST", "/v1/legal_holds", json=body)
    click.echo(json.dumps(row, indent=1) if as_json else _line(row))


@holds.command("release")
@click.argument("hold_id")
@as_json
@with_inbox
def holds_release(inbox: Inbox, hold_id: str, as_json: bool) -> None:
    """Release a hold. Other holds on the same session stay. Needs a key with the scope admin."""
    row = inbox.call("DELETE", f"/v1/legal_holds/{quote(hold_id)}")
    click.echo(json.dumps(row, indent=1) if as_json else _line(row))


def _line(hold: dict[str, Any]) -> str:
    """Return a hold as a line."""
    on = f"session {hold['session_id']}" if hold["session_id"] else "the workspace"
    end = f", released {since(hold['released_at'])} by {visible(hold['released_by'])}" if hold["released_at"] else ""
    return f"{hold['id']}  on {on} {since(hold['created_at'])}, by {visible(hold['created_by'])}: {visible(hold['reason'])}{end}"
