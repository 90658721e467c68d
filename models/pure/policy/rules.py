"""Rules as data, and what a policy answers."""

from dataclasses import dataclass
from typing import Any, Literal

Effect = Literal["allow", "ask", "deny"]
EFFECTS: tuple[Effect, ...] = ("allow", "ask", "deny")
Source = Literal["workspace", "agent", "tool", "grant"]
UnknownPrograms = Literal["ask", "allow"]
SOURCES: tuple[Source, ...] = ("workspace", "agent", "tool", "grant")

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
"""By built-in tool: the argument that `tool(pattern)` is about."""


@dataclass(frozen=True)
class Condition:
    """One test of one argument."""

    path: str
    """A JSON Pointer (RFC 6901) into the call's input."""
    operator: str
    """One of `conditions.OPERATORS`, or `command`."""
    value: Any
    """What the operator compares with."""


@dataclass(frozen=True)
class Match:
    """Which calls a rule is about: all that is given must hold."""

    tool: str
    """A glob over the tool's full name: `bash`, `mcp__github__*`."""
    conditions: tuple[Condition, ...] = ()
    """At most one of them is a `command`."""
    input_sha256: str | None = None
    """Only the input with this hash (`canonical.digest`)."""

    def __post_init__(self) -> None:
        if sum(condition.operator == "command" for condition in self.conditions) > 1:
            raise ValueError("has two patterns of commands; write a rule for each")


@dataclass(frozen=True)
class Rule:
    """One rule."""

    effect: Effect
    match: Match
    reason: str | None = None
    """Shown to people, and to the model when it is denied."""
    priority: int = 0
    """Among rules of one effect, the highest that matches is named."""
    source: Source = "agent"
    id: str = ""
    """Of the grant, or of whatever else the rule came from."""
    guard_rail: bool = False
    """True if the rule's policy says `"unknown_programs": "allow"`."""


@dataclass(frozen=True)
class Policy:
    """The rules that somebody wrote for a tool, and what holds where none of them matches."""

    rules: tuple[Rule, ...]
    default: Effect
    unknown_programs: UnknownPrograms = "ask"
    """What an allow for everything says to commands that may run other programs, where this policy has a rule about commands that
    denies or asks. `allow` counts only if every such policy says so."""


@dataclass(frozen=True)
class Verdict:
    """Allow, ask or deny, and the rule that said so in words for people and the audit."""

    effect: Effect
    rule: str
    rules: tuple[Rule, ...] = ()
    """The rules behind it, none for the default. Several may allow the parts of one command line; each of them is a use."""
    doubt: str | None = None
    """Why it is asked though a rule may seem to allow it: the command line cannot be surely read, or its programs are not known."""
    unknown: tuple[str, ...] = ()
    """Programs of the command line that may run others and that no rule names, where a rule about commands denies or asks."""


def named(rule: Rule) -> tuple[bool, int, int, str, str, bool]:
    """The order in which rules of one effect are named; total, so that the order in which they were given is nothing."""
    return (
        rule.source == "grant",
        -rule.priority,
        SOURCES.index(rule.source),
        rule.id,
        repr((rule.match, rule.reason)),
        rule.guard_rail,
    )
