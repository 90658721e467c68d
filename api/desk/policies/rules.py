"""The rules of all levels in order of precedence, as rows: those of the workspace, of an agent, and of its tools."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.desk.agents.tools import EFFECT_WORDS, SHOWN, distinct, policies_of, reason_in_words
from models.database.rows import Db
from models.errors import Conflict
from models.policy.ruled_tool import RuledTool, read_policy
from models.pure.json.canonical import digest
from models.pure.policy import Policy, Rule, covers, rule_as_json
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
    key: str = ""
    """What names the rule in `without`; empty for a row that is not a rule of the chosen level's own policy."""


def rows_of_workspace(policy: Mapping[str, Any] | None) -> list[RuleRow]:
    """Return the rules of the workspace's policy, the strictest first, and its default."""
    read = read_policy(policy, "*", "workspace")
    fallback = settings().default_permission
    default, level = (read.default, "workspace") if read else (fallback, "server")
    return [*_rules(read.rules if read else (), policy), RuleRow(EFFECT_WORDS[default], _rest(""), level)]


def rows_of_agent(db: Db, agent_id: str, body: Mapping[str, Any]) -> list[RuleRow]:
    """Return the rules that count for an agent in a new session, and the defaults of its tools."""
    policies, _listings = policies_of(db, {agent_id: body})[agent_id]
    tools = policies.ruled_tools.values()
    levels: list[Policy | None] = [
        read_policy(body.get("permission_policy"), "*", "agent"),
        read_policy(Workspace.policies(db)["policy"], "*", "workspace"),
    ]
    rules = [*(rule for level in levels if level for rule in level.rules), *(rule for tool in tools for rule in tool.rules)]
    return [*_rules(distinct(rules), body.get("permission_policy"), "agent"), *_defaults(list(tools))]


def without(policy: Mapping[str, Any] | None, key: str) -> dict[str, Any]:
    """Return a stored policy without the rule of a row with this `key`. Raises Conflict if it has no such rule any more."""
    rules = [rule for rule in (policy or {}).get("rules", ()) if digest(rule) != key]
    if policy is None or len(rules) == len(policy.get("rules", ())):
        raise Conflict("The policy has no such rule any more. Open the page again.")
    return {**policy, "rules": rules}


def _rules(rules: Iterable[Rule], own: Mapping[str, Any] | None, level: str = "workspace") -> list[RuleRow]:
    """Return the rows of rules. Of one effect, the rule that is named first stands first. `own`: the policy of `level`."""
    in_order = sorted(rules, key=lambda rule: (-EFFECTS.index(rule.effect), *sort_key(rule)))
    keys = {digest(rule) for rule in (own or {}).get("rules", ())}
    rows = []
    for rule in in_order:
        key = digest(rule_as_json(rule)) if rule.source == level else ""
        text, reason = text_of(rule.match) or "", rule.reason or ""
        rows.append(RuleRow(EFFECT_WORDS[rule.effect], covers(rule), rule.source, text, reason, key if key in keys else ""))
    return rows


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
