"""`assent grants`: the standing approvals."""

from urllib.parse import quote

import click

from api.cli.client import Inbox, with_inbox
from api.cli.main import as_json, show
from api.cli.showing import grant_line


@click.group()
def grants() -> None:
    """List and revoke standing approvals."""


@grants.command("list")
@click.option("--session", "session_id", help="Only of this session.")
@click.option("--agent", "agent_id", help="Only of this agent.")
@click.option("--tool", help="Only of this tool.")
@click.option("--all", "over", is_flag=True, help="Also grants that are revoked, expired or used up.")
@click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="At most so many, newest first.")
@as_json
@with_inbox
def grants_list(inbox: Inbox, over: bool, limit: int, as_json: bool, **only: str | None) -> None:
    """List grants."""
    rows = inbox.listed("/v1/grants", most=limit, live=None if over else True, **only)
    show(rows, as_json, grant_line)


@grants.command("revoke")
@click.argument("grant_id")
@with_inbox
def grants_revoke(inbox: Inbox, grant_id: str) -> None:
    """Revoke a grant, also for calls that it allowed and that have not begun."""
    inbox.call("DELETE", f"/v1/grants/{quote(grant_id)}")
    click.echo(f"{grant_id} is revoked.")
