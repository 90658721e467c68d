"""`assent usage`: what models consumed, and what it cost."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import click

from api.cli.client import Inbox, with_inbox
from api.cli.main import as_json
from api.cli.names import names_in
from api.cli.nouns import IdOf
from api.cli.showing import dollars
from api.cli.states import names_of_agents
from api.cli.tables import Column, show_table

GROUPS = ("agent", "person", "session", "thread", "turn", "provider", "model")


@click.command()
@click.option("--by", type=click.Choice(GROUPS), multiple=True, help="One line for each; may be repeated.")
@click.option("--daily", is_flag=True, help="One line for each day (UTC).")
@click.option("--days", type=click.IntRange(1, 366), default=30, show_default=True, help="How many days back.")
@click.option("--agent", "agent_id", type=IdOf("agent"), help="Only this agent.")
@click.option("--session", "session_id", type=IdOf("session"), help="Only this session.")
@as_json
@with_inbox
def usage(
    inbox: Inbox, by: tuple[str, ...], daily: bool, days: int, agent_id: str | None, session_id: str | None, as_json: bool
) -> None:
    """Sum up what models consumed and what it cost, in US dollars."""
    query: dict[str, Any] = {
        "starting_at": (datetime.now(UTC) - timedelta(days=days - 1)).isoformat(),
        "bucket_width": "1d" if daily else None,
        "group_by[]": list(by) or None,
        "agent_id": agent_id,
        "session_id": session_id,
    }
    rows = inbox.listed("/v1/usage", **query)
    show_table(rows, as_json, [] if as_json else _columns(inbox, rows, by, daily=daily))


def _columns(inbox: Inbox, rows: list[dict[str, Any]], by: tuple[str, ...], *, daily: bool) -> list[Column]:
    """Return the columns: the groups, then the sums."""
    names = names_of_agents(inbox, (row["agent_id"] for row in rows)) if "agent" in by else {}
    name_of_person = names_in(inbox, rows if "person" in by else [], "person")

    def name_of(row: dict[str, Any], group: str) -> Any:
        value = row[group if group in {"person", "provider", "model"} else f"{group}_id"]
        return name_of_person(value) if group == "person" else names.get(value, value)

    note = [Column("NOTE", _note, is_spare=True)] if any(map(_note, rows)) else []
    return [
        *([Column("DAY", lambda row: row["starting_at"][:10])] if daily else []),
        *(Column(group.upper(), partial(name_of, group=group), gives_way=True) for group in by),
        Column("COST", lambda row: dollars(row["exact_list_cost"]), to_the_right=True),
        Column("REQUESTS", lambda row: row["requests"], to_the_right=True),
        Column("TOKENS IN", _input_tokens, to_the_right=True),
        Column("FROM CACHE", lambda row: row["cache_read_input_tokens"], to_the_right=True, is_spare=True),
        Column("OUT", lambda row: row["output_tokens"], to_the_right=True),
        *note,
    ]


def _input_tokens(row: dict[str, Any]) -> int:
    return int(row["input_tokens"] + row["cache_read_input_tokens"] + row["cache_creation_input_tokens"])


def _note(row: dict[str, Any]) -> str:
    """Return what the sums of a row leave out or guess."""
    parts = [
        f"{row['unpriced_requests']} without a price" if row["unpriced_requests"] else "",
        f"{row['estimated_requests']} estimated" if row["estimated_requests"] else "",
    ]
    return ", ".join(filter(None, parts))
