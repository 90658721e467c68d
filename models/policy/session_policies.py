"""The policies of one session: the rules of workspace, agent and tools together, and how people are asked.

| from | its rules | its default |
|---|---|---|
| tool, else toolset | for that tool | first |
| agent | for every tool | for tools without a policy of their own |
| workspace | for every tool of every agent | for agents without one |
| a toolset's author | for that tool | where no row above has a default |
| `ASSENT_DEFAULT_PERMISSION` | | for all else; client tools without a policy are allowed: posting the result is the client's act |

`models.pure.policy` describes how rules are weighed, whatever their level.
"""

import copy
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from models.policy import prompting
from models.policy.approval_levels import approval_levels
from models.policy.asking import Asking
from models.policy.effective_tool import effective_tools
from models.policy.ruled_tool import read_policy, ruled_tool
from models.pure import policy
from models.pure.json.codec import decode, encode
from models.pure.policy import Effect, Granted, Rule, Verdict, git_writes
from models.pure.policy.rules import FILE_PATHS
from models.pure.quorum import Quorum, combined
from models.settings import settings
from models.workspace.toolset import ToolListing

UNKNOWN_TOOL = Verdict("deny", "not a tool of this agent")


class SessionPolicies:
    """The policies of one session, compiled."""

    def __init__(
        self,
        agent: Mapping[str, Any],
        workspace: Mapping[str, Any],
        default: Effect,
        listings: Mapping[str, ToolListing] | None = None,
    ) -> None:
        over = [read_policy(agent.get("permission_policy"), "*", "agent"), read_policy(workspace.get("policy"), "*", "workspace")]
        approvals = [level.get("approval") or {} for level in (workspace, agent)]
        self._approvals = approvals
        self.four_eyes = any(level.get("four_eyes") for _, levels in approval_levels(agent, workspace) for level in levels)
        """True if calls of some tool need four eyes, tools that are not a listed yet included."""
        self._tools = {tool.name: ruled_tool(tool, over, approvals, default) for tool in effective_tools(agent, listings)}
        self.git_doubt: str | None = None
        """Why no git command counts as a read; None if git commands are read like all others."""
        bash = self._tools.get("bash")
        self._guards_git = bash is None or not bash.is_free
        """False if the shell may run everything anyway: a guard of git's files would then have no effect."""

    @classmethod
    def of(cls, agent: Mapping[str, Any], workspace: Mapping[str, Any], listings: Mapping[str, ToolListing]) -> "SessionPolicies":
        """Return the policies for a session's `agent`, its workspace's `{"policy": ..., "approval": ...}`, and the tools that its
        MCP servers list. Equal arguments are compiled once.
        """
        configured = {key: agent.get(key) for key in ("tools", "permission_policy", "approval")}
        listings_in_order = tuple(sorted(listings.items(), key=lambda item: item[0]))
        return _compile(encode(configured), encode(dict(workspace)), settings().default_permission, listings_in_order)

    def in_session(self, *, git_written: bool) -> "SessionPolicies":
        """Return these policies for one session. `git_written`: the session wrote files that can make git run other commands."""
        if not git_written:
            return self
        policies = copy.copy(self)
        policies.git_doubt = git_writes.DOUBT
        return policies

    def judge(self, tool: str, arguments: Mapping[str, Any], grants: Granted | None = None) -> Verdict:
        """Return allow, ask or deny for a call with these arguments. `grants`: what people granted; None for nothing.

        A write into a git directory is asked about, unless a rule about exactly this input allows it.
        """
        ruled = self._tools.get(tool)
        if ruled is None:
            return UNKNOWN_TOOL
        rules = ruled.compiled_rules.with_grants(grants.rules) if grants and grants.rules else ruled.compiled_rules
        verdict = rules.judge(tool, arguments, masked_fields=grants.masked_input if grants else None, git_doubt=self.git_doubt)
        guarded = self._guards_git and ruled.identity == "builtin" and verdict.effect == "allow"
        path = git_writes.guarded(tool, arguments) if guarded else None
        return verdict if path is None or any(rule.match.input_sha256 for rule in verdict.rules) else _git_verdict(tool, path)

    def is_always_denied(self, tool: str) -> bool:
        """True if no call of the tool can ever run. The model is then not offered the tool."""
        rules = self._tools[tool].rules
        denies_all = self._tools[tool].default == "deny" and not any(rule.effect != "deny" for rule in rules)
        return denies_all or any(rule.effect == "deny" and rule.match == policy.Match(tool) for rule in rules)

    def asks(self, tool: str) -> bool:
        """True if a call of the tool may wait for a person: by the default, a rule, or a command line that cannot be read."""
        ruled = self._tools[tool]
        return ruled.default == "ask" or any(rule.effect != "allow" for rule in ruled.rules)

    def identity(self, tool: str, *, self_hosted: bool) -> str:
        """Return a text that tells tools of the same name apart: where the tool runs and, for clients' tools, its description."""
        ruled = self._tools.get(tool)
        identity = ruled.identity if ruled else ""
        return "self_hosted" if self_hosted and identity == "builtin" else identity

    def path_arguments(self, tool: str, grants: Iterable[Rule] = ()) -> set[str]:
        """Return the arguments, as JSON Pointers, that hold paths which the rules and grants look at."""
        ruled = self._tools.get(tool)
        rules = [*(ruled.rules if ruled else ()), *grants]
        own = FILE_PATHS.get(tool)
        looks = {c.path for rule in rules for c in rule.match.conditions if c.operator == "path_glob" or c.path == own}
        exact = any(rule.match.input_sha256 for rule in rules)
        guarded = self._guards_git and tool in {"write", "edit"}  # a link may lead into a git directory
        return looks | ({own} if own and (exact or guarded) else set())

    def is_at(self, tool: str, address: str | None) -> bool:
        """True if the tool of that name still has this address."""
        ruled = self._tools.get(tool)
        return ruled is None or ruled.address == address

    def may_allow_on_timeout(self, tool: str, verdict: Verdict) -> bool:
        """True if a passed deadline allows a call with this verdict: the tool's own configuration says so, and no rule asks."""
        ruled = self._tools.get(tool)
        if ruled is None or ruled.timeouts.get("on_timeout") != "allow":
            return False
        may = not ruled.quorum.needs_people and ruled.quorum.offer.has("once")
        return may and (verdict.effect == "allow" or (verdict.effect == "ask" and not verdict.rules))

    def asking(self, tool: str, masked_input: dict[str, Any], entry: Mapping[str, Any]) -> Asking:
        """Return how people are asked about a call. `masked_input` is its input with the secrets masked; `entry` describes its
        tool, as in `models.workspace.toolset`."""
        ruled = self._tools[tool]
        schema = entry["input_schema"]
        template = ruled.prompt or entry.get("prompt") or "Run {tool}"
        return Asking(
            prompt=prompting.fill(template, tool, masked_input),
            seconds=self.seconds(tool),
            on_timeout=ruled.timeouts.get("on_timeout") or "deny",
            remind_after_seconds=self.remind_after_seconds(tool),
            input_schema=schema,
            annotations=entry.get("annotations") or None,
            identity=self.identity(tool, self_hosted=False),
            **self.approvers(tool),
        )

    def seconds(self, tool: str) -> float:
        """Return the time that people have for a call of the tool, before any escalation."""
        return float(self._tools[tool].timeouts.get("timeout_seconds") or settings().approval_seconds)

    def remind_after_seconds(self, tool: str) -> float | None:
        """Return the time after which people are reminded of a call of the tool."""
        return self._tools[tool].timeouts.get("remind_after_seconds") or settings().remind_after_seconds

    def asking_beyond_tools(self, prompt: str, schema: dict[str, Any]) -> Asking:
        """Return how people are asked about something other than a tool's call, by agent and workspace. Silence denies."""
        timeouts = {name: value for level in self._approvals for name, value in level.items() if value is not None}
        on_timeout = timeouts.get("on_timeout")
        quorum, escalation = combined(self._approvals)
        return Asking(
            prompt=prompt,
            seconds=timeouts.get("timeout_seconds") or settings().approval_seconds,
            on_timeout="escalate" if on_timeout == "escalate" else "deny",
            remind_after_seconds=timeouts.get("remind_after_seconds") or settings().remind_after_seconds,
            input_schema=schema,
            quorum=quorum.as_json,
            escalation=escalation.as_json if escalation else None,
        )

    def quorum(self, tool: str, level: int = 0) -> Quorum:
        """Return who must approve a call of the tool, and their options. `level`: how often its approval was escalated."""
        configured = self._tools.get(tool)
        if configured is None:
            return Quorum()
        steps = configured.escalation.quorums if configured.escalation else ()
        return (configured.quorum, *steps)[min(level, len(steps))]

    def approvers(self, tool: str) -> dict[str, Any]:
        """Return the fields `quorum` and `escalation` of an `Asking` about the tool."""
        configured = self._tools.get(tool)
        if configured is None:
            return {"quorum": None, "escalation": None}
        return {"quorum": configured.quorum.as_json, "escalation": configured.escalation.as_json if configured.escalation else None}


def _git_verdict(tool: str, path: str) -> Verdict:
    """Return the verdict on a write into a git directory. It has a rule, so that no deadline allows the call."""
    reason = f"{path[:200]} is of a git directory or makes one, and its files can have git run other commands"
    return Verdict("ask", f"always asked: {reason}", (Rule("ask", policy.Match(tool), reason, id="git_directory"),), reason)


@lru_cache(maxsize=256)
def _compile(agent: str, workspace: str, default: Effect, listings: tuple[tuple[str, ToolListing], ...]) -> SessionPolicies:
    return SessionPolicies(decode(agent), decode(workspace), default, dict(listings))
