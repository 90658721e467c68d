"""`assent agents`: the agents of the workspace, with their tools and policies."""

import json
from collections.abc import Iterator
from typing import Any

import click

from api.cli.client import Inbox, with_inbox
from api.cli.main import as_json
from api.cli.nouns import IdOf
from api.cli.showing import since
from api.cli.tables import Column, id_column, painted, show_table
from models.pure.text.relative_time import number_with_noun
from models.pure.text.visible import visible, visible_lines

EFFECTS = {"always_allow": "allow", "always_ask": "ask"}


@click.group()
def agents() -> None:
    """List and show agents, with their tools and policies."""


@agents.command("list")
@click.option("--all", "include_archived", is_flag=True, help="Also archived agents.")
@click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="At most so many, newest first.")
@as_json
@with_inbox
def agents_list(inbox: Inbox, include_archived: bool, limit: int, as_json: bool) -> None:
    """List agents."""
    rows = inbox.listed("/v1/agents", most=limit, include_archived=True if include_archived else None)
    columns = [
        id_column(),
        Column("NAME", lambda agent: agent["name"], gives_way=True),
        Column("MODEL", lambda agent: agent["model"]["id"], gives_way=True, is_spare=True),
        Column("TOOLS", _tools_in_short, gives_way=True, is_spare=True),
        Column("POLICY", lambda agent: _policy(agent["permission_policy"]), is_spare=True),
        Column("V", lambda agent: agent["version"], to_the_right=True, is_spare=True),
        Column("CHANGED", lambda agent: "archived" if agent["archived_at"] else since(agent["updated_at"]), is_spare=True),
    ]
    show_table(rows, as_json, columns)


@agents.command("show")
@click.argument("agent", type=IdOf("agent"))
@click.option("--version", type=click.IntRange(min=1), help="Default: the newest.")
@as_json
@with_inbox
def agents_show(inbox: Inbox, agent: str, version: int | None, as_json: bool) -> None:
    """Show an agent, by its name or id: its model, its instructions, and each tool with its policy."""
    row = inbox.call("GET", f"/v1/agents/{agent}", params={"version": version} if version else {})
    for line in [json.dumps(row, indent=1)] if as_json else _lines(row):
        click.echo(line)


@agents.command("versions")
@click.argument("agent", type=IdOf("agent"))
@as_json
@with_inbox
def agents_versions(inbox: Inbox, agent: str, as_json: bool) -> None:
    """List the versions of an agent, newest first."""
    columns = [
        Column("V", lambda version: version["version"], to_the_right=True),
        Column("MADE", lambda version: since(version["updated_at"])),
        Column("MODEL", lambda version: version["model"]["id"], gives_way=True),
        Column("TOOLS", _tools_in_short, gives_way=True),
        Column("POLICY", lambda version: _policy(version["permission_policy"])),
    ]
    show_table(inbox.listed(f"/v1/agents/{agent}/versions"), as_json, columns)


def _lines(agent: dict[str, Any]) -> Iterator[str]:
    yield click.style(f"{visible(agent['name'])}, version {agent['version']}", bold=True)
    yield f"  id        {agent['id']}"
    if agent["description"]:
        yield f"  about     {visible(agent['description'])}"
    yield f"  model     {visible(agent['model']['id'])}"
    yield f"  changed   {since(agent['updated_at'])}{', archived' if agent['archived_at'] else ''}"
    yield f"  policy    {_policy(agent['permission_policy'])}"
    yield from _rules(agent["permission_policy"])
    if agent["system"]:
        yield "  system"
        yield from (f"    {line}" for line in visible_lines(agent["system"]).splitlines())
    for name, policy, note in _tools(agent):
        yield f"  tool      {visible(name)}  {painted(_policy(policy))}{note}"
        yield from _rules(policy)


def _rules(policy: dict[str, Any] | None) -> Iterator[str]:
    """Yield the rules of a policy, in their order."""
    for rule in (policy or {}).get("rules", []):
        match = rule["match"] if isinstance(rule["match"], str) else json.dumps(rule["match"])
        reason = f"  ({visible(rule['reason'])})" if rule.get("reason") else ""
        yield f"            {painted(rule['effect'])} {visible(match)}{reason}"


def _policy(policy: dict[str, Any] | None) -> str:
    """Return a policy in a few words: `ask`, or `2 rules, else ask`."""
    if policy is None:
        return "none"
    if policy["type"] in EFFECTS:
        return EFFECTS[policy["type"]]
    default = str(policy["default"])
    return f"{number_with_noun(len(policy['rules']), 'rule')}, else {default}" if policy["rules"] else default


def _tools(agent: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any] | None, str]]:
    """Yield the name, the policy and a note of each tool that is switched on."""
    for tool in agent["tools"]:
        match tool["type"]:
            case "custom":
                yield tool["name"], tool.get("permission_policy"), "  (the client runs it)"
            case "mcp_toolset":
                server = tool["mcp_server_name"]
                yield f"{server}: other tools", tool["default_config"]["permission_policy"], ""
                for one in tool["configs"]:
                    yield f"{server}: {one['name']}", one["permission_policy"], "" if one["enabled"] else "  (off)"
            case _:
                yield from ((one["name"], one["permission_policy"], "") for one in tool["configs"] if one["enabled"])


def _tools_in_short(agent: dict[str, Any]) -> str:
    names: list[str] = []
    for tool in agent["tools"]:
        match tool["type"]:
            case "custom":
                names.append(tool["name"])
            case "mcp_toolset":
                names.append(tool["mcp_server_name"])
            case _:
                names += [one["name"] for one in tool["configs"] if one["enabled"]]
    return ", ".join(names)
