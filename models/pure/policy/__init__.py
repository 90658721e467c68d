"""Decides a tool call by rules: the verdict, and the rule that gave it.

Precedence, defined only here: **deny, then ask, then allow, then the default.**

1. A matching rule that denies: denied. Nothing overrides it. `always_deny` is such a rule.
2. A matching rule that asks: asked, whatever grants exist. An author writes "always ask for this one" in this way.
3. A matching rule that allows: allowed. Written rules come first, then grants, which are rules that a decision created.
   A grant answers the default's question, so grants count only if the default is to ask (`always_ask`, or no policy at all).
   A grant covers a call only if it fits the real input and the input with its secrets masked.
4. The default of the tool's policy.

Two cases make a verdict stricter. First, a condition that cannot judge its argument (a text where it compares numbers) counts as
met for rules that deny or ask, and as not met for rules that allow. A missing argument meets only `exists: false`. Second, a
command line that cannot be parsed with certainty is never allowed by patterns of commands. While a rule about the tool's commands
denies or asks, nothing else allows such a line either: it asks. While there is such a rule, an allow for everything covers only
programs that are known to run no others (see `unknown_programs`).

`priority` orders the rules of one effect: it decides which of several matching rules is named. The order of the list has no effect.
"""

from models.pure.policy.covering import covers
from models.pure.policy.judging import CompiledRules
from models.pure.policy.rules import Condition, Effect, Granted, Match, Policy, Rule, Source, Verdict
from models.pure.policy.texts import grant, grant_of_part, match_of
from models.pure.policy.wire import policy_as_json, policy_of, rule_as_json, rule_of

__all__ = [
    "CompiledRules",
    "Condition",
    "Effect",
    "Granted",
    "Match",
    "Policy",
    "Rule",
    "Source",
    "Verdict",
    "covers",
    "grant",
    "grant_of_part",
    "match_of",
    "policy_as_json",
    "policy_of",
    "rule_as_json",
    "rule_of",
]  # fmt: skip
