"""The policies of one session: the rules of workspace, agent and tools together, and how people are asked.

| from | its rules | its default |
|---|---|---|
| tool, else toolset | for that tool | first |
| agent | for every tool | for tools without a policy of their own |
| workspace | for every tool of every agent | for agents without one |
| a toolset's author | for that tool | where no row above has a default |
| `ASSENT_DEFAULT_PERMISSION` | | for all else; client tools without a policy are allowed: posting the result is the client's act |

`models.pure.policy` describes how rules are weighed, whatever their level.

A thread that another thread began has the policies of its own agent, narrowed by those of its parent's. The parent adds:

| from the parent's | for tools that the parent has | for other tools |
|---|---|---|
| rules that deny or ask, of its agent and of this tool's configuration | they count like the thread's own | the same |
| rules that allow, defaults, and `always_deny` of its agent | the narrower verdict of both agents holds | nothing |
| approval settings | all combine | those of the agent, and of this tool's configuration |
"""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from models.policy import prompting
from models.policy.asking import Asking
from models.policy.effective_tool import configured_tool, effective_tools
from models.policy.ruled_tool import NO_PARENT, Levels, OfParent, RuledTool, read_policy, ruled_tool, rules_about
from models.pure import policy
from models.pure.json.codec import decode, encode
from models.pure.offer import EVERYTHING, IN_ITS_THREAD
from models.pure.policy import Effect, Granted, Rule, Verdict, git_writes
from models.pure.policy.rules import FILE_PATHS
from models.pure.policy.wire import NEVER
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
        parent: "SessionPolicies | None" = None,
    ) -> None:
        of_agent = read_policy(agent.get("permission_policy"), "*", "agent")
        of_workspace = read_policy(workspace.get("policy"), "*", "workspace")
        approvals = (workspace.get("approval") or {}, agent.get("approval") or {})
        self._levels = Levels((of_agent, of_workspace), approvals, default)
        self._agent, self._parent = agent, parent
        over = parent.of_parent if parent else lambda _tool: NO_PARENT
        self._tools = {tool.name: ruled_tool(tool, self._levels, over(tool.name)) for tool in effective_tools(agent, listings)}
        self.offer_of_agent = EVERYTHING
        """The answers about calls of this agent. Settings narrow them."""
        self.git_doubt: str | None = None
        """Why no git command counts as a read; None if git commands are read like all others."""
        bash = self._tools.get("bash")
        self._guards_git = bash is None or not bash.is_free
        """False if the shell may run everything anyway: a guard of git's files would then have no effect."""

    @classmethod
    def of(
        cls,
        agent: Mapping[str, Any],
        workspace: Mapping[str, Any],
        listings: Mapping[str, ToolListing],
        parent: "SessionPolicies | None" = None,
    ) -> "SessionPolicies":
        """Return the policies for a thread's `agent`, its workspace's `{"policy": ..., "approval": ...}`, and the tools that its
        MCP servers list. `parent`: what this method returned for the thread that began it. Equal arguments are compiled once.
        """
        configured = {key: agent.get(key) for key in ("tools", "multiagent", "permission_policy", "approval")}
        listings_in_order = tuple(sorted(listings.items(), key=lambda item: item[0]))
        return _compile(encode(configured), encode(dict(workspace)), settings().default_permission, listings_in_order, parent)

    def in_session(self, *, git_written: bool, inline: bool = False) -> "SessionPolicies":
        """Return these policies for one session.

        `git_written`: the session wrote files that can make git run other commands. `inline`: the agent has no id, and exists in
        its thread alone.
        """
        if not git_written and not inline:
            return self
        policies = copy.copy(self)
        policies.git_doubt = git_writes.DOUBT if git_written else None
        policies.offer_of_agent = IN_ITS_THREAD if inline else EVERYTHING
        return policies

    def of_parent(self, tool: str) -> OfParent:
        """Return what these policies, as those of a thread, say about a tool of the threads that this thread begins."""
        ruled = self._tools.get(tool)
        configured = configured_tool(self._agent, tool) if ruled is None else None
        above = self._parent.of_parent(tool) if self._parent else NO_PARENT
        if configured is not None and configured.enabled:  # its server's tools are unknown
            ruled = ruled_tool(configured, self._levels, above)
        if ruled is None:
            own = read_policy(configured.policy, tool, "parent") if configured else None
            of_agent = self._levels.policies[0]
            named = [rule for rule in (rules_about(tool, of_agent) if of_agent else ()) if rule.id != NEVER]
            rules = [*named, *(rules_about(tool, own) if own else ())]
            approvals = [self._levels.approvals[1], *([configured.approval] if configured else ())]
        else:
            rules = [rule for rule in ruled.rules if rule.source in {"agent", "tool"}]
            approvals = [self._levels.approvals[1], *ruled.own_approvals]
        strict = tuple(replace(rule, source="parent") for rule in rules if rule.effect != "allow")
        return OfParent(above.rules + strict, (*above.approvals, *approvals), ruled)

    def judge(self, tool: str, arguments: Mapping[str, Any], grants: Granted | None = None) -> Verdict:
        """Return allow, ask or deny for a call with these arguments. `grants`: what people granted; None for nothing.

        A write into a git directory is asked about, unless a rule about exactly this input allows it.
        """
        ruled = self._tools.get(tool)
        if ruled is None:
            return UNKNOWN_TOOL
        verdict = ruled.judge(arguments, grants, self.git_doubt)
        guarded = self._guards_git and ruled.identity == "builtin" and verdict.effect == "allow"
        path = git_writes.guarded(tool, arguments) if guarded else None
        return verdict if path is None or any(rule.match.input_sha256 for rule in verdict.rules) else _git_verdict(tool, path)

    @property
    def ruled_tools(self) -> Mapping[str, RuledTool]:
        """The agent's tools with the rules that apply to each, by name."""
        return self._tools

    def has(self, tool: str) -> bool:
        """True if the agent has the tool."""
        return tool in self._tools

    def is_always_denied(self, tool: str) -> bool:
        """True if no call of the tool can ever run. The model is then not offered the tool."""
        return self._tools[tool].is_always_denied

    def asks(self, tool: str) -> bool:
        """True if a call of the tool may wait for a person: by the default, a rule, or a command line that cannot be read."""
        return self._tools[tool].asks

    def identity(self, tool: str, *, self_hosted: bool) -> str:
        """Return a text that tells tools of the same name apart: where the tool runs and, for clients' tools, its description."""
        ruled = self._tools.get(tool)
        identity = ruled.identity if ruled else ""
        return "self_hosted" if self_hosted and identity == "builtin" else identity

    def path_arguments(self, tool: str, grants: Iterable[Rule] = ()) -> set[str]:
        """Return the arguments, as JSON Pointers, that hold paths which the rules and grants look at."""
        ruled = self._tools.get(tool)
        rules = [*(ruled.all_rules if ruled else ()), *grants]
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
        if ruled is None or not ruled.silence_allows:
            return False
        return verdict.effect == "allow" or (verdict.effect == "ask" and not verdict.rules)

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
        above = self._parent.beyond_tools if self._parent else ()
        of_workspace, of_agent = self._levels.approvals
        approvals = [of_workspace, *above, of_agent]
        timeouts = {name: value for level in approvals for name, value in level.items() if value is not None}
        on_timeout = timeouts.get("on_timeout")
        quorum, escalation = combined(approvals, len(above))
        return Asking(
            prompt=prompt,
            seconds=timeouts.get("timeout_seconds") or settings().approval_seconds,
            on_timeout="escalate" if on_timeout == "escalate" else "deny",
            remind_after_seconds=timeouts.get("remind_after_seconds") or settings().remind_after_seconds,
            input_schema=schema,
            quorum=quorum.as_json,
            escalation=escalation.as_json if escalation else None,
        )

    @property
    def beyond_tools(self) -> tuple[Mapping[str, Any], ...]:
        """The approval settings of the agents on the path, the root's first."""
        return (*(self._parent.beyond_tools if self._parent else ()), self._levels.approvals[1])

    def quorum(self, tool: str, level: int = 0) -> Quorum:
        """Return who must approve a call of the tool, and their options. `level`: how often its approval was escalated."""
        configured = self._tools.get(tool)
        if configured is None:
            return self._narrowed(Quorum())
        steps = configured.escalation.quorums if configured.escalation else ()
        return self._narrowed((configured.quorum, *steps)[min(level, len(steps))])

    def approvers(self, tool: str) -> dict[str, Any]:
        """Return the fields `quorum` and `escalation` of an `Asking` about the tool."""
        configured = self._tools.get(tool)
        if configured is None:
            return {"quorum": None, "escalation": None}
        escalation = configured.escalation
        if escalation:
            escalation = replace(escalation, quorums=tuple(self._narrowed(quorum) for quorum in escalation.quorums))
        return {"quorum": self._narrowed(configured.quorum).as_json, "escalation": escalation.as_json if escalation else None}

    def _narrowed(self, quorum: Quorum) -> Quorum:
        return quorum if self.offer_of_agent is EVERYTHING else quorum.and_also(Quorum(offer=self.offer_of_agent))


def _git_verdict(tool: str, path: str) -> Verdict:
    """Return the verdict on a write into a git directory. It has a rule, so that no deadline allows the call."""
    reason = f"{path[:200]} is of a git directory or makes one, and its files can have git run other commands"
    return Verdict("ask", f"always asked: {reason}", (Rule("ask", policy.Match(tool), reason, id="git_directory"),), reason)


@lru_cache(maxsize=512)  # a sub-agent takes two
def _compile(
    agent: str,
    workspace: str,
    default: Effect,
    listings: tuple[tuple[str, ToolListing], ...],
    parent: SessionPolicies | None,
) -> SessionPolicies:
    return SessionPolicies(decode(agent), decode(workspace), default, dict(listings), parent)
