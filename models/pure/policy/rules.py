"""Rules, policies and verdicts as data."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

Effect = Literal["allow", "ask", "deny"]
EFFECTS: tuple[Effect, ...] = ("allow", "ask", "deny")
"""The widest effect first."""
Source = Literal["workspace", "agent", "tool", "parent", "grant"]
"""`parent`: any level of the agent that began the thread of the call."""
UnknownPrograms = Literal["ask", "allow"]
SOURCES: tuple[Source, ...] = ("workspace", "agent", "tool", "parent", "grant")

MAX_RULES = 1_000
MAX_CONDITIONS = 20
MAX_TEXT = 1_000
"""Characters of a pattern, a pointer, a reason."""
MAX_REGEX = 500
MAX_CHOICES = 200
MAX_PRIORITY = 1_000_000

COMMAND_PATHS = frozenset({"/command", "/cmd"})
"""Arguments that hold a command line, whatever the tool."""
FILE_PATHS = {"read": "/file_path", "write": "/file_path", "edit": "/file_path", "glob": "/path", "grep": "/path"}
"""The argument that `tool(pattern)` tests, by built-in tool."""


@dataclass(frozen=True)
class Condition:
    """One test of one argument."""

    path: str
    """A JSON Pointer (RFC 6901) into the call's input."""
    operator: str
    """One of `conditions.OPERATORS`, or `command`."""
    value: Any
    """The operator's operand."""


@dataclass(frozen=True)
class Match:
    """The calls to which a rule applies. All its conditions must hold."""

    tool: str
    """A glob over the tool's full name: `bash`, `mcp__github__*`."""
    conditions: tuple[Condition, ...] = ()
    """At most one of them is a `command`."""
    input_sha256: str | None = None
    """If set, only the input with this hash (`canonical.digest`) matches."""

    def __post_init__(self) -> None:
        if sum(condition.operator == "command" for condition in self.conditions) > 1:
            raise ValueError("has two patterns of commands; write a rule for each")


@dataclass(frozen=True)
class Rule:
    """One rule."""

    effect: Effect
    match: Match
    reason: str | None = None
    """Shown to people, and to the model if the rule denies."""
    priority: int = 0
    """Of several matching rules of one effect, the one with the highest priority is named."""
    source: Source = "agent"
    id: str = ""
    """The id of the grant, or of another origin."""
    guard_rail: bool = False
    """True if the rule's policy has `"unknown_programs": "allow"`."""


@dataclass(frozen=True)
class Policy:
    """Written rules, and the default for calls that match none of them."""

    rules: tuple[Rule, ...]
    default: Effect
    unknown_programs: UnknownPrograms = "ask"
    """The effect of an allow for everything on programs that may run others, while a rule of this policy about commands denies or
    asks. `allow` counts only if every policy with such a rule has it."""


@dataclass(frozen=True)
class Verdict:
    """Allow, ask or deny, with the rule that decided, in words for people and the audit."""

    effect: Effect
    rule: str
    rules: tuple[Rule, ...] = ()
    """The rules that contributed; none for the default. Several rules may allow the parts of one command line. Each counts as
    used."""
    doubt: str | None = None
    """Why the call asks although a rule seems to allow it: the command line is uncertain, or its programs are unknown."""
    unknown: tuple[str, ...] = ()
    """Programs of the command line that may run others and that no rule names, if a rule about commands denies or asks."""

    @property
    def strictness(self) -> int:
        """0 if the call is allowed, 1 if it is asked, 2 if it is denied."""
        return EFFECTS.index(self.effect)

    def narrowed_by(self, parent: "Verdict") -> "Verdict":
        """Return the verdict on a call of a thread by the verdict on the same call of its parent's thread: the narrower one.

        If both have the same effect, the rules of both count, and so does each grant that either used.
        """
        rule = f"parent: {parent.rule}"
        if parent.strictness != self.strictness:
            return self if parent.strictness < self.strictness else replace(parent, rule=rule)
        more = tuple(each for each in parent.rules if each not in self.rules)
        if self.effect == "allow":
            more = tuple(each for each in more if each.source == "grant")  # what the parent's own rules allow is no reason
        named_by_parent = more if self.effect == "allow" else more and not self.rules
        return replace(
            self,
            rule=rule if named_by_parent and self.effect != "allow" else f"{self.rule}; {rule}" if more else self.rule,
            rules=(*self.rules, *more),
            doubt=self.doubt or parent.doubt,
            unknown=tuple(dict.fromkeys((*self.unknown, *parent.unknown))),
        )


@dataclass(frozen=True)
class Granted:
    """The grants that may cover one call, and the call's input as their givers could see it."""

    rules: tuple[Rule, ...]
    masked_input: Mapping[str, Any] | None
    """The input with its secrets masked; None if nothing is masked. A grant covers the call only if its rule fits this input too,
    whatever the secrets are. Else a giver could find out a secret by grants. A rule about one exact input need not."""


def sort_key(rule: Rule) -> tuple[bool, int, int, str, str, bool]:
    """Return the sort key of rules of one effect. The order is total, so that the order of the list has no effect."""
    return (
        rule.source == "grant",
        -rule.priority,
        SOURCES.index(rule.source),
        rule.id,
        repr((rule.match, rule.reason)),
        rule.guard_rail,
    )
