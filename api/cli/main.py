"""The command `assent`. Each command imports its modules when it runs, so that the others start quickly."""

import json
import math
import os
import re
import shlex
import shutil
import sys
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

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
reason = click.option("--reason", required=True, help="Why. The audit keeps it, so name nobody in it.")
sure = click.option("--yes", is_flag=True, help="Do not ask.")


class Number(click.FloatRange):
    """The type of a number between limits. `FloatRange` lets NaN pass."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number. Raises click.BadParameter."""
        number = super().convert(value, param, ctx)
        return self.fail(f"{value} is not a number.", param, ctx) if math.isnan(number) else number


_HERE = (
    *(
        "agents",
        "approvals",
        "audit",
        "backup",
        "channels",
        "chat",
        "completion",
        "database",
        "delegations",
        "doctor",
        "environment",
        "grants",
        "groups",
        "halt",
        "holds",
        "keys",
        "limits",
        "open",
        "people",
        "provider-keys",
    ),
    *("policy", "secrets", "sessions", "status", "upgrade", "usage", "webhooks"),
)
ELSEWHERE = {name: f"api.cli.{name.replace('-', '_')}" for name in _HERE} | {
    **dict.fromkeys(("migrate", "roles", "workspaces"), "api.cli.database"),
    "restore": "api.cli.backup",
    "open": "api.cli.browser",
    "models": "workers.providers.cli",  # imported by name, since the API must not import providers
    "tools": "workers.tools.cli",  # likewise tools
}
"""Commands with a file of their own, which is imported when the command runs."""
BUILT_IN = {"open": "open_page"}
"""Functions whose command has the name of a function of Python."""
INTERRUPTED = 130
"""The exit code after Ctrl-C."""


class Main(click.Group):
    """The command, with the subcommands of `ELSEWHERE`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all subcommands."""
        return sorted({*super().list_commands(ctx), *ELSEWHERE})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a subcommand."""
        if cmd_name in ELSEWHERE:
            module = import_module(ELSEWHERE[cmd_name])
            command: click.Command = getattr(module, BUILT_IN.get(cmd_name, cmd_name.replace("-", "_")))
            return command
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand. Raises click.UsageError, with the names that are close to an unknown one."""
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            from difflib import get_close_matches

            close = " or ".join(f"`assent {match}`" for match in get_close_matches(name, self.list_commands(ctx)))
            ctx.fail(f"No such command {name!r}.{f' Did you mean {close}?' if close else ''}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand. Ctrl-C ends it without a word, with the exit code that shells expect."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            vars(error)["message"] = as_typed_here(error.message)  # click's annotation says that nobody assigns it
            raise
        except UnicodeDecodeError as error:
            raise click.ClickException(f"a file or the standard input is not UTF-8: {error}") from error
        except KeyboardInterrupt:
            pass
        except click.Abort as abort:
            if not isinstance(abort.__context__, KeyboardInterrupt):
                raise  # the end of the input, or a no
        click.echo(err=True)
        raise click.exceptions.Exit(INTERRUPTED)


def assent_command() -> str:
    """Return the command with which people run `assent` here: its name if PATH has it, else its path."""
    beside = Path(sys.executable).with_name("assent")
    if shutil.which("assent") or not beside.exists():
        return "assent"
    return str(beside.relative_to(Path.cwd())) if beside.is_relative_to(Path.cwd()) else str(beside)


def next_command(words: str) -> str:
    """Return a command that people may type next, about the same installation: with the options of this command that name it."""
    context = click.get_current_context()
    options = [
        f" {option} {shlex.quote(str(context.params[name]))}"
        for name, option in {"data_dir": "--data-dir", "url": "--url"}.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    return f"{assent_command()} {words}{''.join(options)}"


def as_typed_here(text: str) -> str:
    """Return a text in which each command such as `assent up` is what people type here."""
    return re.sub("`assent(?=[ `])", lambda _: f"`{assent_command()}", text)


def _prepare_streams() -> None:
    """Open the standard streams that the caller closed, and have characters that the terminal lacks written as escapes."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _commit() -> str:
    """Return the commit of this image, in words; empty outside of an image."""
    commit = os.environ.get("ASSENT_COMMIT", "")
    return f", commit {commit}" if commit else ""


@click.group(
    cls=Main,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name=DISTRIBUTION, prog_name="assent", message=f"%(prog)s, version %(version)s{_commit()}")
@click.pass_context
def main(context: click.Context) -> None:
    """Runs AI agents that must ask a person before they act. Without a command: the status."""
    _prepare_streams()
    if os.environ.get("NO_COLOR"):
        context.color = False
    if context.invoked_subcommand is None:
        status: click.Command = import_module(ELSEWHERE["status"]).status
        with status.make_context("status", [], parent=context) as own:
            status.invoke(own)


@main.command()
@click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True, help="Port of the API, on 127.0.0.1.")
@click.option("--sample/--no-sample", default=True, help="Begin a sample session at the first start.")
@data_dir
def up(port: int, sample: bool, data_dir: Path) -> None:
    """Run everything on this machine: database, Redis, model, API, workers."""
    from deploy.local import up as run

    sys.exit(run(port, data_dir, sample=sample, command=assent_command()))


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


def show_secret(row: dict[str, Any], field: str, note: str, as_json: bool) -> None:
    """Print a row as JSON; or the field of it that is shown once, alone, with a note for people on stderr."""
    if as_json:
        click.echo(json.dumps(row, indent=1))
        return
    click.echo(note, err=True)
    click.echo(row[field])


def show(rows: list[dict[str, Any]], as_json: bool) -> None:
    """Print the rows as JSON, or as a table of their values."""
    from api.cli.tables import columns_for, show_table  # not above: `assent up` needs no tables

    show_table(rows, as_json, columns_for(rows))


if __name__ == "__main__":
    main()
