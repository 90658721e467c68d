"""`assent grants`: the standing approvals."""

from functools import partial

import click

from api.cli.client import Inbox, with_inbox
from api.cli.main import as_json
from api.cli.names import NameOf, names_in
from api.cli.nouns import IdOf
from api.cli.showing import since, until
from api.cli.states import names_of_agents
from api.cli.tables import Column, Row, id_column, short_id, show_table


@click.group()
def grants() -> None:
    """List and revoke standing approvals."""


@grants.command("list")
@click.option("--session", "session_id", type=IdOf("session"), help="Only of this session.")
@click.option("--agent", "agent_id", type=IdOf("agent"), help="Only of this agent.")
@click.option("--tool", help="Only of this tool.")
@click.option("--all", "over", is_flag=True, help="Also grants that are revoked, expired or used up.")
@click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="At most so many, newest first.")
@as_json
@with_inbox
def grants_list(inbox: Inbox, over: bool, limit: int, as_json: bool, **only: str | None) -> None:
    """List grants."""
    rows = inbox.listed("/v1/grants", most=limit, live=None if over else True, **only)
    agents = {} if as_json else names_of_agents(inbox, (row["agent_id"] for row in rows))

    def where(grant: Row) -> str:
        if grant["scope"] == "session":
            return f"session {short_id(grant['session_id'])}: {grant['reach']}"
        return f"every session of {agents.get(grant['agent_id'], grant['agent_id'])}"

    columns = [
        id_column(),
        Column("STATE", _state, coloured=True),
        Column("COVERS", lambda grant: grant["covers"], gives_way=True),
        Column("WHERE", where, gives_way=True, is_spare=True),
        Column("USES", _uses, to_the_right=True, is_spare=True),
        Column("LAST USED", _last_use, is_spare=True),
        Column("ENDS", lambda grant: until(grant["expires_at"]) if grant["expires_at"] else None, is_spare=True),
        Column("NOTE", partial(_note, name=names_in(inbox, [] if as_json else rows, "revoked_by")), gives_way=True, is_spare=True),
    ]
    show_table(rows, as_json, columns)


@grants.command("revoke")
@click.argument("grant_id", type=IdOf("grant"))
@with_inbox
def grants_revoke(inbox: Inbox, grant_id: str) -> None:
    """Revoke a grant, also for calls that it allowed and that have not begun."""
    inbox.call("DELETE", f"/v1/grants/{grant_id}")
    click.echo(f"{grant_id} is revoked.")


def _state(grant: Row) -> str:
    """Return the state of a grant in a word."""
    return "live" if grant["live"] else "revoked" if grant["revoked_at"] else "over"


def _uses(grant: Row) -> str:
    return f"{grant['uses']} of {grant['max_uses']}" if grant["max_uses"] else str(grant["uses"])


def _last_use(grant: Row) -> str | None:
    if not grant["uses"]:
        return "never"
    return since(grant["last_used_at"]) if grant["last_used_at"] else None


def _note(grant: Row, name: NameOf) -> str | None:
    """Return who revoked a grant, or why it allows nothing now."""
    if grant["revoked_at"]:
        return f"by {name(grant['revoked_by'])}"
    return f"allows nothing now: {grant['not_offered']}" if grant["not_offered"] else None
