"""The machine's answer to a tool call, with the rule that said so. Values in, values out.

Precedence, stated here and nowhere else: **deny, then ask, then allow, then the default.**

1. A rule that denies and matches: denied. Nothing overrides it. `always_deny` is such a rule.
2. A rule that asks and matches: asked, whatever somebody granted. That is how an author says "always ask for this one".
3. A rule that allows and matches: allowed. Rules come first, then grants, the rules that were born of a decision.
   A grant answers the question that the default would put, so it is heard only where the default is to ask
   (`always_ask`, or no policy at all); a default that denies is no question.
4. The default of the tool's policy.

Two things can only make an answer stricter. A condition that cannot judge what it finds (a text where it compares
numbers) counts as met by rules that deny or ask, and as not met by rules that allow; a value that is missing meets
`exists: false` and nothing else. And a command line that cannot be read surely is never allowed by patterns of commands,
nor by anything else while a rule that denies or asks looks at the tool's commands: then it asks. While there is such a rule,
an allow for everything covers only programs that are known to run no others (`unknown_programs` says more).

`priority` orders the rules of one effect: it decides which of several is named. The order in which rules are given
decides nothing.
"""

from models.pure.policy.covering import covers
from models.pure.policy.deciding import Rulebook
from models.pure.policy.rules import Condition, Effect, Match, Policy, Rule, Source, Verdict
from models.pure.policy.texts import grant, match_of
from models.pure.policy.wire import policy_of, rule_of, spelled, spelled_rule

__all__ = [
    "Condition", "Effect", "Match", "Policy", "Rule", "Rulebook", "Source", "Verdict",
    "covers", "grant", "match_of", "policy_of", "rule_of", "spelled", "spelled_rule",
]  # fmt: skip
