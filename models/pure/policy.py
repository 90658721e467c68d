"""The machine's answer to a tool call, with the rule that said so. Values in, values out."""

from dataclasses import dataclass
from typing import Literal

Effect = Literal["allow", "ask", "deny"]


@dataclass(frozen=True)
class Verdict:
    """Allow, ask or deny, and the rule that said so in words for people and the audit."""

    effect: Effect
    rule: str


def decide(tool: str, policy: Effect | None, default: Effect = "ask") -> Verdict:
    """The verdict on a call of `tool`: its own policy, or the default where it has none."""
    if policy is None:
        return Verdict(default, f"default: {default}")
    return Verdict(policy, f"tool {tool}: {policy}")
