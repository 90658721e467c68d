"""One tool of an agent with the rules, the default and the approval settings that apply to it, from every level that has some."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from models.policy.effective_tool import EffectiveTool
from models.pure import policy
from models.pure.json.canonical import digest
from models.pure.naming import OURS
from models.pure.policy import CompiledRules, Effect, Policy, Rule
from models.pure.policy.globs import text_glob
from models.pure.quorum import Escalation, Quorum, combined


@dataclass
class RuledTool:
    """One tool, with the rules that apply to it, its default effect and how people are asked about it."""

    rules: tuple[Rule, ...]
    identity: str
    address: str | None
    default: Effect
    default_reason: str
    """Where the default comes from."""
    prompt: str | None
    """The template in the tool's own configuration."""
    timeouts: dict[str, Any]
    quorum: Quorum
    escalation: Escalation | None

    @property
    def is_free(self) -> bool:
        """True if every call of the tool is allowed, whatever its input."""
        plain = (rule for rule in self.rules if not rule.match.conditions and not rule.match.input_sha256)
        return all(rule.effect == "allow" for rule in self.rules) and (self.default == "allow" or any(plain))

    @cached_property
    def compiled_rules(self) -> CompiledRules:
        """The rules, compiled at the first call."""
        return CompiledRules(self.rules, self.default, self.default_reason)


def ruled_tool(tool: EffectiveTool, over: list[Policy | None], approvals: list[Mapping[str, Any]], last: Effect) -> RuledTool:
    """Return a tool with what applies to it. `over`: the policies of the agent and the workspace. `approvals`: their configurations
    of approvals, the workspace's first. `last`: the effect where no policy has a default."""
    own = read_policy(tool.policy, tool.name, "tool")
    declared = _declared(tool)
    levels = (own, *over, declared)
    rules = tuple(rule for level in levels if level for rule in level.rules if text_glob(rule.match.tool)(tool.name))
    default, reason = _default(tool, own, [*over, declared], last)
    timeouts: dict[str, Any] = {}
    for level in (*approvals, tool.toolset_approval):
        # Only a tool's own configuration, which names the tool, can let a deadline allow a call.
        timeouts |= {key: value for key, value in level.items() if value is not None and value != "allow"}
    timeouts |= {key: value for key, value in tool.approval.items() if value is not None}
    quorum, escalation = combined([*approvals, tool.toolset_approval, tool.approval, _declared_approval(tool)])
    return RuledTool(
        rules, _identity(tool), tool.address, default, reason, tool.approval.get("prompt"), timeouts, quorum, escalation
    )


def _identity(tool: EffectiveTool) -> str:
    content = {"description": tool.description, "input_schema": tool.input_schema}
    where = f"{tool.kind}:{tool.address}" if tool.address else tool.kind
    return tool.kind if tool.kind == "builtin" else f"{where}:{digest(content)[:16]}"


def _declared(tool: EffectiveTool) -> Policy | None:
    """Return the policy that the author of an operator's toolset declared for the tool, under the name that the agent uses."""
    if not tool.entry or not tool.entry.get("policy") or not (tool.address or "").startswith(OURS):
        return None
    declared = read_policy(tool.entry["policy"], tool.name, "tool")
    assert declared is not None, "there is a policy to read"
    own = {tool.entry["name"], "*"}
    rules = [
        replace(rule, match=replace(rule.match, tool=tool.name)) if rule.match.tool in own else rule for rule in declared.rules
    ]
    return Policy(tuple(rules), declared.default)


def _declared_approval(tool: EffectiveTool) -> Mapping[str, Any]:
    """Return the approval settings that the author of an operator's toolset declared for the tool."""
    ours = tool.entry is not None and (tool.address or "").startswith(OURS)
    return (tool.entry or {}).get("approval") or {} if ours else {}


def _default(tool: EffectiveTool, own: Policy | None, over: list[Policy | None], last: Effect) -> tuple[Effect, str]:
    if own:
        return own.default, f"tool {tool.name}: {own.default}"
    if tool.kind == "custom":
        return "allow", "default: allow (the client runs it)"
    for level, name in zip(over, ("agent", "workspace", "toolset"), strict=True):
        if level:
            return level.default, f"default of the {name}: {level.default}"
    return last, f"default: {last}"


def read_policy(value: Mapping[str, Any] | None, tool: str, source: policy.Source) -> Policy | None:
    """Return a stored policy. A policy that cannot be read denies everything."""
    if value is None:
        return None
    try:
        return policy.policy_of(value, tool=tool, source=source)
    except ValueError:
        return policy.policy_of({"type": "always_deny"}, tool=tool, source=source)
