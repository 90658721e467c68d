"""`assent usage`: what models consumed, and what it cost."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import click

from api.cli.client import Inbox, with_inbox
from api.cli.main import as_json, show
from models.pure.text.visible import visible

GROUPS = ("agent", "person", "session", "thread", "turn", "provider", "model")


@click.command()
@click.option("--by", type=click.Choice(GROUPS), multiple=True, help="One line for each; may be repeated.")
@click.option("--daily", is_flag=True, help="One line for each day (UTC).")
@click.option("--days", type=click.IntRange(1, 366), default=30, show_default=True, help="How many days back.")
@click.option("--agent", "agent_id", help="Only this agent.")
@click.option("--session", "session_id", help="Only this session.")
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
    show(inbox.listed("/v1/usage", **query), as_json, partial(_line, by=by, daily=daily))


def _line(row: dict[str, Any], by: tuple[str, ...], *, daily: bool) -> str:
    """Return the sums of a group as a line."""
    groups = [visible(row[group if group in {"person", "provider", "model"} else f"{group}_id"] or "-") for group in by]
    cost = "unknown" if row["exact_list_cost"] is None else f"${row['exact_list_cost']}"
    unpriced = f" and {row['unpriced_requests']} requests without a price" if row["unpriced_requests"] and cost != "unknown" else ""
    estimated = f", {row['estimated_requests']} estimated" if row["estimated_requests"] else ""
    cache_reads, cache_writes = row["cache_read_input_tokens"], row["cache_creation_input_tokens"]
    inputs = f"{row['input_tokens'] + cache_reads + cache_writes} tokens in ({cache_reads} from the cache)"
    cells = [row["starting_at"][:10]] if daily else []
    cells += [*groups, f"{cost}{unpriced}", f"{row['requests']} requests{estimated}", inputs, f"{row['output_tokens']} out"]
    return "  ".join(cells)
