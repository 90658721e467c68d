"""`assent status`, and `assent` alone: whether Assent runs, what waits, what failed."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from api.cli.client import Inbox, connect
from api.cli.main import as_json, as_typed_here, assent_command, data_dir, next_command
from api.cli.states import state_of
from api.cli.tables import painted
from models.pure.state_words import ENDED_EARLY
from models.pure.text.visible import visible

MOST = 100
"""The approvals, and the newest sessions, that are counted."""


@click.command()
@data_dir
@click.option("--url", envvar="ASSENT_URL", help="URL of the API; default: that of `assent up`. Its key: ASSENT_API_KEY.")
@as_json
def status(data_dir: Path, url: str | None, as_json: bool) -> None:
    """Show whether Assent runs, what waits for people, and which of the newest sessions failed.

    Exit code 1: the API does not respond, or refuses the key.
    """
    try:
        inbox = connect(data_dir, url)
        with closing(inbox.http):
            summary = _summary(inbox)
    except click.ClickException as error:
        summary = {"status": "down", "reason": error.message}
    for line in [json.dumps(summary, indent=1)] if as_json else _lines(summary):
        click.echo(line)
    if summary["status"] == "down":
        raise SystemExit(1)


def _summary(inbox: Inbox) -> dict[str, Any]:
    halt = inbox.call("GET", "/v1/halt")
    states = [state_of(session) for session in inbox.listed("/v1/sessions", most=MOST)]
    return {
        "status": "halted" if halt["halted"] else "up",
        "url": str(inbox.http.base_url).rstrip("/"),
        "reason": halt["reason"] if halt["halted"] else None,
        "waiting_approvals": len(inbox.listed("/v1/approvals", most=MOST, status="pending")),
        "working_sessions": sum(state in {"working", "retrying"} for state in states),
        "failed_sessions": sum(state in ENDED_EARLY for state in states),
        "sessions": len(states),
    }


def _lines(summary: dict[str, Any]) -> Iterator[str]:
    """Yield the status in a line, and what to do next."""
    if summary["status"] == "down":
        yield f"{painted('down')} · {visible(as_typed_here(summary['reason']))}"
        return
    waiting, failed = summary["waiting_approvals"], summary["failed_sessions"]
    counts = [
        painted(f"{waiting}{'+' * (waiting == MOST)} wait{'s' * (waiting == 1)}", "waiting" if waiting else "-"),
        painted(f"{failed} failed", "failed" if failed else "-"),
    ]
    if summary["working_sessions"]:
        counts.insert(1, f"{summary['working_sessions']} work{'s' * (summary['working_sessions'] == 1)}")
    yield " · ".join([painted(summary["status"]), *counts, summary["url"]])
    if summary["reason"]:
        yield f"  halted: {visible(summary['reason'])}"
    purposes = {
        "halt off": "lift the halt" if summary["status"] == "halted" else "",
        "approvals": "decide what waits" if waiting else "",
        "sessions list": "see what failed" if failed else "",
    }
    next_commands = {next_command(words): purpose for words, purpose in purposes.items() if purpose}
    next_commands[f"{assent_command()} --help"] = "all commands"
    width = max(map(len, next_commands))
    yield from (f"  {words:<{width}}   {purpose}" for words, purpose in next_commands.items())
