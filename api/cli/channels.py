"""`assent channels`: where the workspace is told of approvals."""

import sys
import time
from typing import Any

import click

from api.cli.client import Inbox, with_inbox
from api.cli.main import as_json
from api.cli.nouns import IdOf
from api.cli.tables import Column, Row, id_column, show_row, show_table
from models.notices.services import CHANNEL_KINDS
from models.pure.text.visible import visible

TEST_SECONDS = 60
_hours = click.option("--quiet", metavar="FROM-UNTIL", help="Quiet hours, such as 22:00-07:00.")
_zone = click.option("--time-zone", help="Of the quiet hours, such as Europe/Berlin.")
_name = click.option("--name", help="A name for people.")
_timing = click.option("--only-reminders/--at-once", default=None, help="Whether to leave out the first message.")

_outcomes = click.option(
    "--outcomes/--no-outcomes", "tells_outcomes", default=None, help="Whether to tell as well what came of an allowed call."
)


@click.group()
def channels() -> None:
    """Manage where the workspace is told of approvals. Needs a key with the scope admin."""


@channels.command("list")
@as_json
@with_inbox
def channels_list(inbox: Inbox, *, as_json: bool) -> None:
    """List the workspace's channels, newest first."""
    show_table(inbox.listed("/v1/channels"), as_json, _COLUMNS)


@channels.command("add")
@click.argument("kind", type=click.Choice(CHANNEL_KINDS))
@click.argument("address", required=False, default="")
@click.option("--for-everyone", is_flag=True, help="Mail for each person who may decide and has no channel; without ADDRESS.")
@_name
@_timing
@_outcomes
@_hours
@_zone
@as_json
@with_inbox
def channels_add(inbox: Inbox, kind: str, address: str, for_everyone: bool, as_json: bool, **settings: Any) -> None:
    """Add a channel. ADDRESS: a mail address, a Slack conversation's id, or the name of a URL of the operator.

    For the kind apprise, the URL is read from the terminal or from standard input, since it holds secrets.
    """
    body = {"kind": kind, "for_everyone": for_everyone} | _changes(**settings)
    if kind == "apprise":
        hide = sys.stdin.isatty()
        body["url"] = click.prompt("URL", hide_input=hide, prompt_suffix=": " if hide else "", err=True)
    body |= {"address": address} if address else {}
    row = inbox.call("POST", "/v1/channels", json=body)
    show_row(row, as_json, _COLUMNS)


@channels.command("change")
@click.argument("channel_id", type=IdOf("channel"))
@_name
@_timing
@_outcomes
@_hours
@_zone
@click.option("--enable/--disable", "enabled", default=None, help="Whether anything is sent.")
@as_json
@with_inbox
def channels_change(inbox: Inbox, channel_id: str, enabled: bool | None, as_json: bool, **settings: Any) -> None:
    """Change a channel. `--quiet none` ends its quiet hours."""
    changes = _changes(**settings)
    if enabled is not None:
        changes["state"] = "enabled" if enabled else "disabled"
    if not changes:
        raise click.UsageError("name a change, such as --disable.")
    show_row(inbox.call("POST", f"/v1/channels/{channel_id}", json=changes), as_json, _COLUMNS)


@channels.command("test")
@click.argument("channel_id", type=IdOf("channel"))
@with_inbox
def channels_test(inbox: Inbox, channel_id: str) -> None:
    """Send a channel a test message, and wait for the result, up to a minute. Exits with 1 if the channel does not take it."""
    path = f"/v1/channels/{channel_id}/test"
    row, until = inbox.call("POST", path, json={}), time.monotonic() + TEST_SECONDS
    while row["ended_at"] is None and time.monotonic() < until:
        time.sleep(0.2)
        row = inbox.call("GET", path)
    match row["status"]:
        case "done":
            click.echo("The channel took the test message.")
        case "failed":
            raise click.ClickException(f"The channel did not take the test message. {visible(row['error'])}")
        case "cancelled":
            raise click.ClickException("The test message was not sent: the channel is off, or its Slack user is no longer linked.")
        case _:
            raise click.ClickException("The test message still waits. Does the process deliver run?")


@channels.command("remove")
@click.argument("channel_id", type=IdOf("channel"))
@with_inbox
def channels_remove(inbox: Inbox, channel_id: str) -> None:
    """Delete a channel."""
    inbox.call("DELETE", f"/v1/channels/{channel_id}")
    click.echo(f"{channel_id} is deleted.")


def _changes(
    name: str | None, only_reminders: bool | None, tells_outcomes: bool | None, quiet: str | None, time_zone: str | None
) -> dict[str, Any]:
    """Return the fields that the options set. Raises BadParameter."""
    changes: dict[str, Any] = {"name": name} if name is not None else {}
    if tells_outcomes is not None:
        changes["tells_outcomes"] = tells_outcomes
    if only_reminders is not None:
        changes["timing"] = "reminders" if only_reminders else "at_once"
    if quiet == "none":
        changes |= {"quiet_from": None, "quiet_until": None}
    elif quiet is not None:
        start, dash, end = quiet.partition("-")
        if not dash:
            raise click.BadParameter("write the hours as 22:00-07:00, or none.", param_hint="--quiet")
        changes |= {"quiet_from": start, "quiet_until": end}
    return changes | ({"time_zone": time_zone} if time_zone is not None else {})


def _quiet(row: Row) -> str | None:
    return f"{row['quiet_from']} to {row['quiet_until']} {row['time_zone']}" if row["quiet_from"] else None


def _note(row: Row) -> str | None:
    """Return why a channel is disabled, or why its last attempt failed."""
    if row["state"] == "disabled":
        return row["disabled_reason"] or "disabled by a person"
    return f"last attempt failed: {row['error']}" if row["error"] else None


_COLUMNS = [
    id_column(),
    Column("KIND", lambda row: row["kind"], is_spare=True),
    Column("TO", lambda row: "everyone without a channel" if row["for_everyone"] else row["address"], gives_way=True),
    Column("NAME", lambda row: row["name"], gives_way=True, is_spare=True),
    Column("STATE", lambda row: row["state"], coloured=True),
    Column("TELLS", lambda row: "only reminders" if row["timing"] == "reminders" else "at once", is_spare=True),
    Column("QUIET", _quiet, is_spare=True),
    Column("NOTE", _note, gives_way=True, is_spare=True),
]
