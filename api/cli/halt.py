"""`assent halt`: the kill switch of a workspace."""

import json
from typing import Any

import click

from api.cli.client import Inbox, with_inbox
from api.cli.main import as_json
from api.cli.showing import since
from models.pure.text.visible import visible


@click.group(invoke_without_command=True)
@as_json
@with_inbox
def halt(inbox: Inbox, as_json: bool) -> None:
    """Show whether the workspace is halted. While it is, no turn and no call begins."""
    _print(inbox.call("GET", "/v1/halt"), as_json)


@halt.command("on")
@click.option("--reason", help="Shown to everybody while the workspace is halted.")
@as_json
@with_inbox
def halt_on(inbox: Inbox, reason: str | None, as_json: bool) -> None:
    """Halt the workspace. Needs a key with the scope admin."""
    _print(inbox.call("POST", "/v1/halt", json={} if reason is None else {"reason": reason}), as_json)


@halt.command("off")
@as_json
@with_inbox
def halt_off(inbox: Inbox, as_json: bool) -> None:
    """Lift the halt. Each deadline moves by the length of the halt. Needs a key with the scope admin."""
    _print(inbox.call("DELETE", "/v1/halt"), as_json)


def _print(status: dict[str, Any], as_json: bool) -> None:
    click.echo(json.dumps(status, indent=1) if as_json else _line(status))


def _line(status: dict[str, Any]) -> str:
    """Return the state of a workspace as a sentence."""
    if not status["halted"]:
        last_end = (
            f" The last halt ended {since(status['ended_at'])}, by {visible(status['ended_by'])}." if status["ended_at"] else ""
        )
        return f"The workspace is not halted.{last_end}"
    reason = f": {visible(status['reason'])}" if status["reason"] else "."
    return f"The workspace is halted, {since(status['started_at'])}, by {visible(status['started_by'])}{reason}"
