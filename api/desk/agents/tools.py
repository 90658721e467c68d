"""An agent's tools as people read them: each with its effect and its policy, and all policies of an agent in a line."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models.database.rows import Db
from models.policy.built_in_tools import DECLARATIONS
from models.policy.effective_tool import EffectiveTool, effective_tools
from models.policy.ruled_tool import RuledTool
from models.policy.session_policies import SessionPolicies
from models.pure.json.canonical import digest
from models.pure.policy import rule_as_json
from models.pure.policy.rules import EFFECTS, Effect, Rule
from models.pure.state_words import StateWord
from models.workspace.row import Workspace
from models.workspace.toolset import ToolListing, listings_of

SHOWN = 4
"""Names that a line has of each effect."""
EFFECT_WORDS: dict[Effect, StateWord] = {
    "allow": StateWord("allow", "check", "good"),
    "ask": StateWord("ask", "question", "due"),
    "deny": StateWord("deny", "cross", "bad"),
}
TAKES = {"read": "reads", "write": "writes"}
_KINDS = {"builtin": "built in", "custom": "run by the client", "agent": "for sub-agents"}
_VERBS = {"allow": "allows", "ask": "asks about", "deny": "denies"}


@dataclass(frozen=True)
class ToolLine:
    """One tool of an agent."""

    name: str
    origin: str
    """`built in`, `run by the client`, or the MCP server."""
    description: str
    takes: str
    """`reads`, `writes`, or that nobody declares it."""
    default: StateWord
    """The effect where no rule matches."""
    reason: str
    """Where that effect comes from."""
    rules: Sequence[Rule]
    """The rules about this tool, of all levels."""
    input_schema: Mapping[str, Any] | None
    """The JSON Schema of its input."""


def policies_of(db: Db, bodies: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[SessionPolicies, dict[str, ToolListing]]]:
    """Return the policies of agents in new sessions, and the listings of their servers, by agent. Two queries for all of them."""
    urls = {server["url"] for body in bodies.values() for server in body.get("mcp_servers") or ()}
    by_url = listings_of(db, {"mcp_servers": [{"name": url, "url": url} for url in urls]})
    workspace = Workspace.policies(db)
    result = {}
    for agent_id, body in bodies.items():
        servers = {server["name"]: server["url"] for server in body.get("mcp_servers") or ()}
        listings = {name: by_url[url] for name, url in servers.items() if url in by_url}
        result[agent_id] = SessionPolicies.of(body, workspace, listings), listings
    return result


def lines(body: Mapping[str, Any], policies: SessionPolicies, listings: Mapping[str, ToolListing]) -> list[ToolLine]:
    """Return the tools of an agent's body."""
    ruled = policies.ruled_tools
    return [_line(tool, ruled[tool.name]) for tool in effective_tools(body, listings)]


def in_words(policies: SessionPolicies) -> str:
    """Return the policies of an agent in a line: `allows read, glob · asks about bash · 2 rules`."""
    tools = policies.ruled_tools.values()
    parts = []
    for effect in EFFECTS:
        names = [tool.name for tool in tools if tool.default == effect]
        if names:
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            parts.append(f"{_VERBS[effect]} {', '.join(names[:SHOWN])}{more}")
    rules = distinct(rule for tool in tools for rule in tool.rules)
    return " · ".join([*parts, *([f"{len(rules)} rule{'s' if len(rules) > 1 else ''}"] if rules else [])])


def distinct(rules: Iterable[Rule]) -> list[Rule]:
    """Return the rules in their order, each one of a level once. Several tools have the same rule of their agent."""
    objects = {id(rule): rule for rule in rules}.values()  # compared at once: a thousand rules may count for each of many tools
    return list({(rule.source, digest(rule_as_json(rule))): rule for rule in objects}.values())


def _line(tool: EffectiveTool, ruled: RuledTool) -> ToolLine:
    text = DECLARATIONS[tool.name] if tool.kind == "builtin" else tool
    return ToolLine(
        name=tool.name,
        origin=_KINDS.get(tool.kind) or f"server {tool.server}",
        description=text.description or "",
        takes=_takes(tool),
        default=EFFECT_WORDS[ruled.default],
        reason=reason_in_words(ruled.default_reason),
        rules=ruled.rules,
        input_schema=text.input_schema,
    )


def reason_in_words(reason: str) -> str:
    """Return where a default effect comes from, without the effect: `the tool's own policy`, `default of the agent`."""
    words, _, note = reason.partition(" (")
    origin = words.rpartition(": ")[0]
    origin = "the tool's own policy" if origin.startswith("tool ") else origin
    origin = "default of the server" if origin == "default" else origin
    return f"{origin} ({note}" if note else origin


def _takes(tool: EffectiveTool) -> str:
    if tool.kind == "builtin":
        return TAKES[DECLARATIONS[tool.name].effect]
    declared = (tool.entry or {}).get("effect")
    return TAKES.get(str(declared), "not declared")
