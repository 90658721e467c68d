"""`assent tools`: for authors of toolsets. It needs no server, and runs a tool in the same way as a worker.

The console script belongs to `api`, which must not import tools: it names this file by text (`api.cli.main.ELSEWHERE`). Modules
are imported when a command runs, so that the other commands start at once.
"""

import json
import logging
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from workers.tools.kinds import Tool, ToolContext, ToolResult

BUILTIN = "builtin"
UNKNOWN_EXIT = 2
"""Exit status of a call with an unknown outcome; 1 is any error."""

as_json = click.option("--json", "as_json", is_flag=True, help="For programs.")


@click.group()
def tools() -> None:
    """Toolsets of Python functions: list, show, call."""


@tools.command("list")
@as_json
def tools_list(as_json: bool) -> None:
    """List the tools of a worker with this environment, and the reasons why other toolsets cannot be used."""
    toolsets, problems = _toolsets()
    if as_json:
        click.echo(json.dumps({"toolsets": toolsets, "problems": problems}, indent=1))
    else:
        for name, entries in toolsets.items():
            click.echo(name if name == BUILTIN else f"{name}  (assent:{name})")
            for entry in entries:
                click.echo(f"  {entry['name']}  {_effect(entry)}, {_policy(name, entry)}: {_first_sentence(entry['description'])}")
    for problem in problems:
        click.echo(f"not used: {problem}", err=True)
    sys.exit(1 if problems else 0)


@tools.command("show")
@click.argument("tool", metavar="TOOLSET.TOOL")
def tools_show(tool: str) -> None:
    """Show a tool's declaration as JSON."""
    click.echo(json.dumps(_entry(tool), indent=1, ensure_ascii=False))


@tools.command("call")
@click.argument("tool", metavar="TOOLSET.TOOL")
@click.argument("text", metavar="JSON", default="{}")
@click.option("--call-id", help="The idempotency key; default: a new one.")
@click.option("--workdir", type=click.Path(file_okay=False, path_type=Path), help="A session's folder; its files are in DIR/files.")
@click.option("--yes", is_flag=True, help="Do not ask, though the tool writes.")
@as_json
def tools_call(tool: str, text: str, call_id: str | None, workdir: Path | None, yes: bool, as_json: bool) -> None:
    """Run a tool here, in a process of its own. No policy applies: you decide."""
    from assent import ToolError
    from models.policy.prompting import fill
    from models.pure.masking import mask
    from workers.tools.output import OutcomeUnknown
    from workers.tools.python import running

    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stderr)
    click.get_current_context().call_on_close(running.end_idle)
    definition = _tool(tool)
    input = _input(definition, text)  # noqa: A001 - the wire's word
    if definition.workdir and workdir is None:
        raise click.ClickException(f"{tool} works on a session's files: add --workdir DIR")
    if definition.effect == "write" and not yes:
        masked_input = mask(input, definition.input_schema).arguments
        click.echo(fill(definition.prompt or "Run {tool}", definition.name, masked_input), err=True)
        click.confirm(f"{tool} {json.dumps(masked_input, ensure_ascii=False)}: it writes. Run it?", abort=True, err=True)
    with tempfile.TemporaryDirectory() as temporary:
        context = _context(definition, call_id, workdir or Path(temporary))
        try:
            result = definition.run(context, input)
        except OutcomeUnknown as unknown:
            click.echo(f"the outcome is unknown: {unknown}", err=True)
            sys.exit(UNKNOWN_EXIT)
        except ToolError as error:
            raise click.ClickException(f"{definition.name}: {error}") from error
        finally:
            running.end_idle()
            for stream, output in _printed(tool, context).items():
                click.echo(f"{stream}: {output}", err=True)
    _show(result, as_json)
    sys.exit(1 if result.is_error else 0)


def _toolsets(*, keep: bool = False) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    from workers.tools.python import running

    toolsets, problems = running.describe(keep=keep)
    return {name: [tool.as_entry for tool in tools] for name, tools in _worker_tools().items()} | toolsets, problems


def _worker_tools() -> "dict[str, list[Tool]]":
    """Return the tools of every worker, which run in the worker itself."""
    from workers.tools import sources
    from workers.tools.builtin.agent_toolset import AGENT_TOOLSET

    return {BUILTIN: list(AGENT_TOOLSET.values()), **{name: list(tools) for name, tools in sources.WORKER_TOOLSETS.items()}}


def _entry(tool: str, *, keep: bool = False) -> dict[str, Any]:
    toolsets, problems = _toolsets(keep=keep)
    toolset, _, name = tool.partition(".")
    entry = next((entry for entry in toolsets.get(toolset, []) if entry["name"] == name), None)
    if entry is None:
        names = [f"{toolset}.{entry['name']}" for toolset, entries in toolsets.items() for entry in entries]
        unused = "".join(f"\nnot used: {problem}" for problem in problems)
        raise click.ClickException(f"there is no tool {tool!r}; there are {', '.join(names)}{unused}")
    return entry


def _tool(tool: str) -> "Tool":
    from workers.tools.python import running

    toolset, _, name = tool.partition(".")
    if worker_tool := next((worker_tool for worker_tool in _worker_tools().get(toolset, []) if worker_tool.name == name), None):
        return worker_tool
    return running.toolset_tool(toolset, _entry(tool, keep=True), receive=lambda traceback: click.echo(traceback, err=True))


def _input(tool: "Tool", text: str) -> dict[str, Any]:
    from models.pure.json.fitting import misfit

    try:
        fields = json.loads(text)
    except ValueError as error:
        raise click.ClickException(f"the input is not JSON: {error}") from error
    if problem := misfit(tool.input_schema, fields):
        raise click.ClickException(problem)
    return dict(fields)


def _context(tool: "Tool", call_id: str | None, root: Path) -> "ToolContext":
    from models.audit.principal import operating_person
    from models.database import ids
    from workers.tools.kinds import ToolContext

    for folder in (root / "files", root / "state"):
        folder.mkdir(parents=True, exist_ok=True)
    return ToolContext(
        call_id=call_id or ids.new("sevt"),
        session_id="sesn_here",
        root=root.resolve(),
        seconds=tool.time_limit,
        principal=str(operating_person("")),
    )


def _printed(tool: str, context: "ToolContext") -> dict[str, str]:
    """Return the tool's output, unless the output is its result."""
    return {} if tool.partition(".")[0] in _worker_tools() else context.output.texts()


def _show(result: "ToolResult", as_json: bool) -> None:
    if as_json:
        fields = {"content": result.content, "structured": result.structured, "is_error": result.is_error}
        click.echo(json.dumps(fields, indent=1, ensure_ascii=False))
        return
    for block in result.content:
        click.echo(block["text"] if block["type"] == "text" else f"({block['type']}, {block['source']['media_type']})")
    if result.structured is not None and not any(b["type"] == "text" for b in result.content):
        click.echo(json.dumps(result.structured, indent=1, ensure_ascii=False))


def _first_sentence(description: str) -> str:
    return description.partition("\n")[0].partition(". ")[0].rstrip(".")


def _effect(entry: dict[str, Any]) -> str:
    if entry["effect"] == "read":
        return "reads"
    return "writes, idempotent" if entry["idempotent"] else "writes, at most once"


def _policy(toolset: str, entry: dict[str, Any]) -> str:
    """Return the tool's own policy in a few words."""
    from models.settings import settings

    outcomes = {"allow": "allowed", "ask": "asked", "deny": "denied"}
    policy = entry["policy"] or {"type": f"always_{settings().default_permission if toolset == BUILTIN else 'ask'}"}
    if "default" in policy:
        return f"{len(policy.get('rules', []))} rules, else {outcomes[policy['default']]}"
    return outcomes[policy["type"].removeprefix("always_")]
