"""What holds for a session's tool calls: the rules of workspace, agent and tool together, and how people are asked.

| from | its rules | its default |
|---|---|---|
| tool, else toolset | for that tool | first |
| agent | for every tool | for tools without a policy of their own |
| workspace | for every tool of every agent | for agents without one |
| a toolset's author | for that tool | where nobody above says anything |
| `ASSENT_DEFAULT_PERMISSION` | | for all else; client tools without a policy are allowed: posting the result is the client's act |

How rules are weighed, whoever wrote them, `models.pure.policy` says.
"""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

from models.policy.approval_levels import approval_levels
from models.policy.effective_tool import EffectiveTool, effective_tools
from models.pure import git_writes, policy, prompting
from models.pure.canonical import digest
from models.pure.json_codec import decode, encode
from models.pure.naming import OURS
from models.pure.policy import Effect, Policy, Rule, Rulebook, Verdict
from models.pure.policy.globs import tool_glob
from models.pure.policy.rules import FILE_PATHS
from models.pure.quorum import Escalation, Quorum, combined
from models.settings import settings
from models.workspace.toolset import Listed

OnTimeout = Literal["deny", "end_run", "escalate", "allow"]

NOT_GIVEN = Verdict("deny", "not a tool of this agent")


@dataclass(frozen=True)
class Asking:
    """How people are asked about a call, and what happens if nobody answers."""

    prompt: str
    """What is shown above the input."""
    seconds: float
    """Until the deadline."""
    on_timeout: OnTimeout = "deny"
    remind_after_seconds: float | None = None
    input_schema: dict[str, Any] | None = None
    """What an edited input must fit, and which of its fields are secret."""
    identity: str | None = None
    """Of the tool that they are asked about, as `Ruling.identity` has it."""
    annotations: dict[str, Any] | None = None
    """What the tool's own side says of what it does, for people to weigh: MCP's `readOnlyHint` and the like."""
    quorum: dict[str, Any] | None = None
    """Who must approve: `Quorum.kept`."""
    escalation: dict[str, Any] | None = None
    """With `on_timeout` escalate: `Escalation.kept`."""

    @property
    def kept(self) -> dict[str, Any]:
        """As JSON, for a call that may have to be asked about later."""
        return asdict(self)


@dataclass
class _Tool:
    """One tool, with the rules that are about it."""

    rules: tuple[Rule, ...]
    identity: str
    address: str | None
    default: Effect
    words: str
    prompt: str | None
    """The template of its own configuration."""
    timeouts: dict[str, Any]
    quorum: Quorum
    escalation: Escalation | None

    @property
    def is_free(self) -> bool:
        """True if every call of the tool is allowed, whatever its input."""
        plain = (rule for rule in self.rules if not rule.match.conditions and not rule.match.input_sha256)
        return all(rule.effect == "allow" for rule in self.rules) and (self.default == "allow" or any(plain))

    @cached_property
    def book(self) -> Rulebook:
        """The rules, compiled when the first call comes."""
        return Rulebook(self.rules, self.default, self.words)


class Ruling:
    """The policies of one session, compiled."""

    def __init__(
        self,
        agent: Mapping[str, Any],
        workspace: Mapping[str, Any],
        default: Effect,
        listed: Mapping[str, Listed] | None = None,
    ) -> None:
        over = [_read(agent.get("permission_policy"), "*", "agent"), _read(workspace.get("policy"), "*", "workspace")]
        approvals = [level.get("approval") or {} for level in (workspace, agent)]
        self.four_eyes = any(level.get("four_eyes") for _, levels in approval_levels(agent, workspace) for level in levels)
        """Whether calls of some tool need four eyes, also of tools that are not listed yet."""
        self._tools = {tool.name: _ready(tool, over, approvals, default) for tool in effective_tools(agent, listed)}
        self.git_doubt: str | None = None
        """Why no command of git is surely read; None if they are read as all others."""
        bash = self._tools.get("bash")
        self._guards_git = bash is None or not bash.is_free
        """Where the shell runs everything unasked, a guard of git's files would guard nothing."""

    @classmethod
    def of(cls, agent: Mapping[str, Any], workspace: Mapping[str, Any], listed: Mapping[str, Listed]) -> "Ruling":
        """For a session's `agent`, its workspace's `{"policy": ..., "approval": ...}`, and what its MCP servers have.

        Compiled once for the same ones.
        """
        said = {key: agent.get(key) for key in ("tools", "permission_policy", "approval")}
        behind = tuple(sorted(listed.items(), key=lambda item: item[0]))
        return _compiled(encode(said), encode(dict(workspace)), settings().default_permission, behind)

    def in_session(self, *, git_written: bool) -> "Ruling":
        """The same policies for one session. `git_written`: files that can have git run other commands were written in it."""
        if not git_written:
            return self
        ruling = copy.copy(self)
        ruling.git_doubt = git_writes.DOUBT
        return ruling

    def verdict(self, tool: str, given: Mapping[str, Any], grants: Iterable[Rule] = ()) -> Verdict:
        """Allow, ask or deny, with what people granted taken into account.

        A write into a git directory is asked, whatever allows it but for a rule about this very input.
        """
        found = self._tools.get(tool)
        if found is None:
            return NOT_GIVEN
        granted = tuple(grants)
        book = found.book.with_grants(granted) if granted else found.book
        verdict = book.decide(tool, given, git_doubt=self.git_doubt)
        guarded = self._guards_git and found.identity == "builtin" and verdict.effect == "allow"
        path = git_writes.guarded(tool, given) if guarded else None
        return verdict if path is None or any(rule.match.input_sha256 for rule in verdict.rules) else _guards(tool, path)

    def never(self, tool: str) -> bool:
        """Whether no call of the tool can ever run, so that the model need not know of it."""
        rules = self._tools[tool].rules
        closed = self._tools[tool].default == "deny" and not any(rule.effect != "deny" for rule in rules)
        return closed or any(rule.effect == "deny" and rule.match == policy.Match(tool) for rule in rules)

    def asks(self, tool: str) -> bool:
        """Whether a person may be waited for: by the default, by a rule, or because a command line cannot be read surely."""
        found = self._tools[tool]
        return found.default == "ask" or any(rule.effect != "allow" for rule in found.rules)

    def identity(self, tool: str, *, self_hosted: bool) -> str:
        """What tells the tool from others of its name: who runs it and, of a client's own, how it is described."""
        found = self._tools.get(tool)
        known = found.identity if found else ""
        return "self_hosted" if self_hosted and known == "builtin" else known

    def path_arguments(self, tool: str, grants: Iterable[Rule] = ()) -> set[str]:
        """The arguments, as JSON Pointers, by whose paths the rules and grants may judge a call of the tool."""
        found = self._tools.get(tool)
        rules = [*(found.rules if found else ()), *grants]
        own = FILE_PATHS.get(tool)
        looks = {c.path for rule in rules for c in rule.match.conditions if c.operator == "path_glob" or c.path == own}
        exact = any(rule.match.input_sha256 for rule in rules)
        guarded = self._guards_git and tool in {"write", "edit"}  # a link may lead into a git directory
        return looks | ({own} if own and (exact or guarded) else set())

    def is_at(self, tool: str, address: str | None) -> bool:
        """Whether the tool of that name is still where it was when it was called."""
        found = self._tools.get(tool)
        return found is None or found.address == address

    def lets_on_timeout(self, tool: str, verdict: Verdict) -> bool:
        """True if a passed deadline allows a call with this verdict: the tool's own configuration says so, and no rule asks."""
        found = self._tools.get(tool)
        configured = found is not None and found.timeouts.get("on_timeout") == "allow" and not found.quorum.needs_people
        return configured and (verdict.effect == "allow" or (verdict.effect == "ask" and not verdict.rules))

    def asking(self, tool: str, shown: dict[str, Any], entry: Mapping[str, Any]) -> Asking:
        """How people are asked about a call. `shown` is its masked input; `entry` describes its tool, as in
        `models.workspace.toolset`."""
        found = self._tools[tool]
        schema = entry["input_schema"]
        template = found.prompt or entry.get("prompt") or "Run {tool}"
        return Asking(
            prompt=prompting.fill(template, tool, shown),
            seconds=found.timeouts.get("timeout_seconds") or settings().approval_seconds,
            on_timeout=found.timeouts.get("on_timeout") or "deny",
            remind_after_seconds=found.timeouts.get("remind_after_seconds") or settings().remind_after_seconds,
            input_schema=schema,
            annotations=entry.get("annotations") or None,
            identity=self.identity(tool, self_hosted=False),
            **self.approvers(tool),
        )

    def quorum(self, tool: str, level: int = 0) -> Quorum:
        """Who must approve a call of the tool. `level`: how often its approval was escalated."""
        configured = self._tools.get(tool)
        if configured is None:
            return Quorum()
        steps = configured.escalation.quorums if configured.escalation else ()
        return (configured.quorum, *steps)[min(level, len(steps))]

    def approvers(self, tool: str) -> dict[str, Any]:
        """The fields `quorum` and `escalation` of an `Asking` about the tool."""
        configured = self._tools.get(tool)
        if configured is None:
            return {"quorum": None, "escalation": None}
        return {"quorum": configured.quorum.kept, "escalation": configured.escalation.kept if configured.escalation else None}


def _guards(tool: str, path: str) -> Verdict:
    """The question about a write into a git directory. It has a rule, so that no deadline allows the call."""
    reason = f"{path[:200]} is of a git directory or makes one, and its files can have git run other commands"
    return Verdict("ask", f"always asked: {reason}", (Rule("ask", policy.Match(tool), reason, id="git_directory"),), reason)


@lru_cache(maxsize=256)
def _compiled(agent: str, workspace: str, default: Effect, listed: tuple[tuple[str, Listed], ...]) -> Ruling:
    return Ruling(decode(agent), decode(workspace), default, dict(listed))


def _ready(tool: EffectiveTool, over: list[Policy | None], approvals: list[Mapping[str, Any]], last: Effect) -> _Tool:
    own = _read(tool.policy, tool.name, "tool")
    declared = _declared(tool)
    levels = (own, *over, declared)
    rules = tuple(rule for level in levels if level for rule in level.rules if tool_glob(rule.match.tool)(tool.name))
    default, words = _default(tool, own, [*over, declared], last)
    timeouts: dict[str, Any] = {}
    for level in (*approvals, tool.toolset_approval):
        # Only a tool's own configuration can have a deadline allow: it says so by name.
        timeouts |= {key: value for key, value in level.items() if value is not None and value != "allow"}
    timeouts |= {key: value for key, value in tool.approval.items() if value is not None}
    quorum, escalation = combined([*approvals, tool.toolset_approval, tool.approval])
    return _Tool(rules, _identity(tool), tool.address, default, words, tool.approval.get("prompt"), timeouts, quorum, escalation)


def _identity(tool: EffectiveTool) -> str:
    described = {"description": tool.description, "input_schema": tool.input_schema}
    where = f"{tool.kind}:{tool.address}" if tool.address else tool.kind
    return tool.kind if tool.kind == "builtin" else f"{where}:{digest(described)[:16]}"


def _declared(tool: EffectiveTool) -> Policy | None:
    """What the author of a toolset of the operator's says of a tool, by its own name."""
    if not tool.entry or not tool.entry.get("policy") or not (tool.address or "").startswith(OURS):
        return None
    said = _read(tool.entry["policy"], tool.name, "tool")
    assert said is not None, "there is a policy to read"
    own = {tool.entry["name"], "*"}
    named = [replace(rule, match=replace(rule.match, tool=tool.name)) if rule.match.tool in own else rule for rule in said.rules]
    return Policy(tuple(named), said.default)


def _default(tool: EffectiveTool, own: Policy | None, over: list[Policy | None], last: Effect) -> tuple[Effect, str]:
    if own:
        return own.default, f"tool {tool.name}: {own.default}"
    if tool.kind == "custom":
        return "allow", "default: allow (the client runs it)"
    for level, name in zip(over, ("agent", "workspace", "toolset"), strict=True):
        if level:
            return level.default, f"default of the {name}: {level.default}"
    return last, f"default: {last}"


def _read(said: Mapping[str, Any] | None, tool: str, source: policy.Source) -> Policy | None:
    """A stored policy. One that is not understood denies: default is no."""
    if said is None:
        return None
    try:
        return policy.policy_of(said, tool=tool, source=source)
    except ValueError:
        return policy.policy_of({"type": "always_deny"}, tool=tool, source=source)
