"""The rules of all levels in order of precedence, as rows: those of the workspace, of an agent, and of its tools."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.desk.agents.tools import EFFECT_WORDS, SHOWN, policies_of, reason_in_words
from models.database.rows import Db
from models.policy.ruled_tool import RuledTool, read_policy
from models.pure.policy import Policy, Rule, covers
from models.pure.policy.rules import EFFECTS, Effect, sort_key
from models.pure.policy.texts import text_of
from models.pure.state_words import StateWord
from models.settings import settings
from models.workspace.row import Workspace


@dataclass(frozen=True)
class RuleRow:
    """A rule, or the default for what no rule matches."""

    state: StateWord
    """The effect."""
    covers: str
    level: str
    text: str = ""
    """The rule as one writes it; empty if no text expresses it."""
    reason: str = ""


def rows_of_workspace(policy: Mapping[str, Any] | None) -> list[RuleRow]:
    """Return the rules of the workspace's policy, the strictest first, and its default."""
    read = read_policy(policy, "*", "workspace")
    fallback = settings().default_permission
    default, level = (read.default, "workspace") if read else (fallback, "server")
    return [*_rules(read.rules if read else ()), RuleRow(EFFECT_WORDS[default], _rest(""), level)]


def rows_of_agent(db: Db, agent_id: str, body: Mapping[str, Any]) -> list[RuleRow]:
    """Return the rules that count for an agent in a new session, and the defaults of its tools."""
    policies, _listings = policies_of(db, {agent_id: body})[agent_id]
    tools = policies.ruled_tools.values()
    levels: list[Policy | None] = [
        read_policy(body.get("permission_policy"), "*", "agent"),
        read_policy(Workspace.policies(db)["policy"], "*", "workspace"),
    ]
    rules = [*(rule for level in levels if level for rule in level.rules), *(rule for tool in tools for rule in tool.rules)]
    return [*_rules(dict.fromkeys(rules)), *_defaults(list(tools))]


def _rules(rules: Iterable[Rule]) -> list[RuleRow]:
    """Return the rows of rules. Of one effect, the rule that is named first stands first."""
    in_order = sorted(rules, key=lambda rule: (-EFFECTS.index(rule.effect), *sort_key(rule)))
    return [RuleRow(EFFECT_WORDS[r.effect], covers(r), r.source, text_of(r.match) or "", r.reason or "") for r in in_order]


def _defaults(tools: Sequence[RuledTool]) -> list[RuleRow]:
    """Return the effects on calls that no rule matches: a row for all tools with the same effect from the same level."""
    names: dict[tuple[Effect, str], list[str]] = {}
    for tool in tools:
        own = tool.default_reason.startswith("tool ")
        names.setdefault((tool.default, "tool" if own else reason_in_words(tool.default_reason)), []).append(tool.name)
    in_order = sorted(names.items(), key=lambda item: -EFFECTS.index(item[0][0]))
    return [RuleRow(EFFECT_WORDS[effect], _rest(_first_names(tools)), level) for (effect, level), tools in in_order]


def _first_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _rest(tools: str) -> str:
    return f"every other call of {tools}" if tools else "every other call, where agent and tool say nothing"
