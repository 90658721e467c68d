"""One tool of an agent with the rules, the default and the approval settings that apply to it, from every level that has some."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from models.policy.effective_tool import EffectiveTool
from models.pure import policy
from models.pure.json.canonical import digest
from models.pure.naming import OURS
from models.pure.policy import CompiledRules, Effect, Granted, Policy, Rule, Verdict
from models.pure.policy.globs import text_glob
from models.pure.quorum import Escalation, Quorum, combined


@dataclass(frozen=True)
class OfParent:
    """What the agent of a thread's parent says about a tool that the thread calls."""

    rules: tuple[Rule, ...] = ()
    """Its rules that deny or ask, and those of its own parent."""
    approvals: tuple[Mapping[str, Any], ...] = ()
    """Its levels of approval settings, and those of its own parent before them."""
    tool: "RuledTool | None" = None
    """The tool as the parent has it; None if the parent does not have it. Only then its defaults and what it allows count."""


NO_PARENT = OfParent()


@dataclass
class RuledTool:
    """One tool, with the rules that apply to it, its default effect and how people are asked about it."""

    name: str
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
    own_approvals: tuple[Mapping[str, Any], ...] = ()
    """The approval settings of its toolset and of itself."""
    parent: "RuledTool | None" = None
    """The tool as the parent of the thread has it, whose verdict counts as well; None if there is no such tool."""

    @property
    def all_rules(self) -> tuple[Rule, ...]:
        """Its rules and those of the parent's tool."""
        return self.rules + (self.parent.all_rules if self.parent else ())

    @property
    def is_free(self) -> bool:
        """True if every call of the tool is allowed, whatever its input."""
        plain = (rule for rule in self.rules if not rule.match.conditions and not rule.match.input_sha256)
        is_free = all(rule.effect == "allow" for rule in self.rules) and (self.default == "allow" or any(plain))
        return is_free and (self.parent is None or self.parent.is_free)

    @property
    def is_always_denied(self) -> bool:
        """True if no call of the tool can ever run."""
        name = self.name
        denies_all = self.default == "deny" and not any(rule.effect != "deny" for rule in self._own_rules)
        is_denied = denies_all or any(rule.effect == "deny" and rule.match == policy.Match(name) for rule in self.rules)
        return is_denied or (self.parent is not None and self.parent.is_always_denied)

    @property
    def asks(self) -> bool:
        """True if a call may wait for a person: by the default, a rule, or a command line that cannot be read."""
        asks = self.default == "ask" or any(rule.effect != "allow" for rule in self.rules)
        return asks or (self.parent is not None and self.parent.asks)

    @property
    def silence_allows(self) -> bool:
        """True if a passed deadline allows calls about which only a default asks: the tool's own configuration says so."""
        may = not self.quorum.needs_people and self.quorum.offer.has("once")
        return may and self.timeouts.get("on_timeout") == "allow"

    @property
    def _own_rules(self) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if rule.source != "parent")

    @cached_property
    def compiled_rules(self) -> CompiledRules:
        """The rules, compiled at the first call."""
        return CompiledRules(self.rules, self.default, self.default_reason)

    @cached_property
    def _compiled_own(self) -> CompiledRules:
        return CompiledRules(self._own_rules, self.default, self.default_reason)

    def judge(self, arguments: Mapping[str, Any], grants: Granted | None, git_doubt: str | None) -> Verdict:
        """Return the verdict on a call with these arguments, narrowed by the parent's. `git_doubt`: as in `CompiledRules`."""

        def judged(rules: CompiledRules) -> Verdict:
            rules = rules.with_grants(grants.rules) if grants and grants.rules else rules
            masked_fields = grants.masked_input if grants else None
            return rules.judge(self.name, arguments, masked_fields=masked_fields, git_doubt=git_doubt)

        verdict = judged(self.compiled_rules)
        if verdict.effect == "ask" and self.default == "deny" and any(rule.source == "parent" for rule in verdict.rules):
            own = judged(self._compiled_own)  # a rule that asks is wider than a default that denies
            verdict = own if own.effect == "deny" else verdict
        return verdict if self.parent is None else verdict.narrowed_by(self.parent.judge(arguments, grants, git_doubt))


@dataclass(frozen=True)
class Levels:
    """The levels beyond a tool's own configuration."""

    policies: tuple[Policy | None, Policy | None]
    """The agent's policy, and the workspace's."""
    approvals: tuple[Mapping[str, Any], Mapping[str, Any]]
    """The workspace's approval settings, and the agent's."""
    last: Effect
    """The effect where no policy has a default."""


def ruled_tool(tool: EffectiveTool, levels: Levels, parent: OfParent = NO_PARENT) -> RuledTool:
    """Return a tool with what applies to it."""
    own = read_policy(tool.policy, tool.name, "tool")
    declared = _declared(tool)
    policies = (own, *levels.policies, declared)
    rules = tuple(rule for policy in policies if policy for rule in rules_about(tool.name, policy))
    default, reason = _default(tool, own, [*levels.policies, declared], levels.last)
    of_workspace, of_agent = levels.approvals
    approvals = [of_workspace, *parent.approvals, of_agent, tool.toolset_approval]
    quorum, escalation = combined([*approvals, tool.approval, _declared_approval(tool)], len(parent.approvals))
    return RuledTool(
        name=tool.name,
        rules=rules + parent.rules,
        identity=_identity(tool),
        address=tool.address,
        default=default,
        default_reason=reason,
        prompt=tool.approval.get("prompt"),
        timeouts=_timeouts(approvals, tool.approval, parent.tool),
        quorum=quorum,
        escalation=escalation,
        own_approvals=(tool.toolset_approval, tool.approval),
        parent=parent.tool,
    )


def _timeouts(approvals: list[Mapping[str, Any]], own: Mapping[str, Any], parent: RuledTool | None) -> dict[str, Any]:
    """Return the settings about time. Only the configuration of a tool, which names the tool, can let a deadline allow a call, and
    only where the parent's tool does so, too, or does not ask."""
    timeouts: dict[str, Any] = {}
    for level in approvals:
        timeouts |= {key: value for key, value in level.items() if value is not None and value != "allow"}
    timeouts |= {key: value for key, value in own.items() if value is not None}
    if timeouts.get("on_timeout") == "allow" and parent and not (parent.default == "allow" or parent.silence_allows):
        timeouts["on_timeout"] = "deny"
    return timeouts


def rules_about(tool: str, policy: Policy) -> list[Rule]:
    """Return the policy's rules about a tool of that name."""
    return [rule for rule in policy.rules if text_glob(rule.match.tool)(tool)]


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
    if tool.kind == "agent":
        return "allow", "default: allow (the sub-agent's own calls are judged)"
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
