"""The command `assent`. Each command imports its modules when it runs, so that the others start quickly."""

import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from models import DISTRIBUTION

data_dir = click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".assent"),
    envvar="ASSENT_DATA_DIR",
    show_default=True,
    help="The folder with the data of `assent up`.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")

_HERE = (
    *(
        "approvals",
        "audit",
        "backup",
        "channels",
        "chat",
        "database",
        "delegations",
        "doctor",
        "environment",
        "grants",
        "groups",
        "halt",
        "keys",
        "limits",
        "people",
        "provider-keys",
    ),
    *("policy", "secrets", "upgrade", "usage", "webhooks"),
)
ELSEWHERE = {name: f"api.cli.{name.replace('-', '_')}" for name in _HERE} | {
    **dict.fromkeys(("migrate", "roles", "workspaces"), "api.cli.database"),
    "restore": "api.cli.backup",
    "models": "workers.providers.cli",  # imported by name, since the API must not import providers
    "tools": "workers.tools.cli",  # likewise tools
}
"""Commands with a file of their own, which is imported when the command runs."""


class Main(click.Group):
    """The command, with the subcommands of `ELSEWHERE`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all subcommands."""
        return sorted({*super().list_commands(ctx), *ELSEWHERE})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a subcommand."""
        if cmd_name in ELSEWHERE:
            command: click.Command = getattr(import_module(ELSEWHERE[cmd_name]), cmd_name.replace("-", "_"))
            return command
        return super().get_command(ctx, cmd_name)


def _commit() -> str:
    """Return the commit of this image, in words; empty outside of an image."""
    commit = os.environ.get("ASSENT_COMMIT", "")
    return f", commit {commit}" if commit else ""


@click.group(cls=Main, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name=DISTRIBUTION, prog_name="assent", message=f"%(prog)s, version %(version)s{_commit()}")
def main() -> None:
    """Runs AI agents that must ask a person before they act."""


@main.command()
@click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True, help="Port of the API, on 127.0.0.1.")
@click.option("--sample/--no-sample", default=True, help="Begin a sample session at the first start.")
@data_dir
def up(port: int, sample: bool, data_dir: Path) -> None:
    """Run everything on this machine: database, Redis, model, API, workers."""
    from deploy.local import up as run

    sys.exit(run(port, data_dir, sample=sample))


@main.command()
@click.argument("process")
def run(process: str) -> None:
    """Run a process of the Procfile in the place of this one: `web`, `turns`, `tools`, `sweeps`, `deliver`, `beat` or `flower`."""
    from deploy import procfile

    if process not in procfile.lines():
        raise click.BadParameter(f"must be one of {', '.join(procfile.lines())}", param_hint="PROCESS")
    procfile.run(process)


def running_up(folder: Path) -> dict[str, Any]:
    """Return the addresses and keys of the `assent up` that runs in `folder`; empty if none runs."""
    try:
        running: dict[str, Any] = json.loads((folder / "up.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return running


def show(rows: list[dict[str, Any]], as_json: bool, line: Callable[[dict[str, Any]], str] | None = None) -> None:
    """Print the rows as JSON, or each as the text that `line` returns; by default as its values."""
    if as_json:
        click.echo(json.dumps(rows, default=str, indent=1))
        return
    for row in rows:
        click.echo((line or _cells)(row))
    if not rows:
        click.echo("None.", err=True)


def _cells(row: dict[str, Any]) -> str:
    return "  ".join(", ".join(v) if isinstance(v, list) else "-" if v is None else str(v) for v in row.values())


if __name__ == "__main__":
    main()
