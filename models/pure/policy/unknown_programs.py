"""Limits an allow for everything while a rule about commands denies or asks: it covers only programs that are known to run no
others.

Every other program asks, unless an allow rule or a grant names it. If each policy with such a rule has
`"unknown_programs": "allow"`, the allow covers every program: then the rule is only a guard rail.
"""

from collections.abc import Callable
from dataclasses import replace

from models.pure.policy.covering import named_in_words
from models.pure.policy.rules import Rule, Verdict
from models.pure.shell import CommandLine, unknown

_SHOWN = 3
"""Programs that the reason names."""


def check_programs(
    verdict: Verdict, line: CommandLine, naming: Callable[[int], Rule | None], rule: Rule, binding: Rule | None
) -> Verdict:
    """Return the verdict that allows a call, or a verdict that asks because of an unknown program that no rule names.

    `line` has no doubt. `naming` returns the allow rule or grant that names the program of the command with a number, or the exact
    input. `rule` is the first rule about the line that denies or asks. `binding` is the first whose policy lacks
    `"unknown_programs": "allow"`.
    """
    reasons = {number: reason for number, words in enumerate(line.commands) if (reason := unknown(words))}
    allowing = {number: naming(number) for number in reasons}
    unnamed = [number for number, allow_rule in allowing.items() if not allow_rule]
    names = tuple(dict.fromkeys(line.commands[number][0] for number in unnamed))
    if unnamed and binding:
        reason = reasons[unnamed[0]]
        return Verdict("ask", f"not sure what runs: {reason}; {named_in_words(binding)} might be met", (binding,), reason, names)
    if unnamed:
        verdict = replace(verdict, rule=f"{verdict.rule}; {_let_pass(names, rule)}", unknown=verdict.unknown + names)
    for allow_rule in allowing.values():
        if allow_rule and allow_rule not in verdict.rules:
            verdict = replace(verdict, rule=f"{verdict.rule}; {named_in_words(allow_rule)}", rules=(*verdict.rules, allow_rule))
    return verdict


def _let_pass(names: tuple[str, ...], rule: Rule) -> str:
    """Return the reason why unknown programs run."""
    programs = ", ".join(f"`{name}`" for name in names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    return f'{programs} may run other programs, and "unknown_programs" is "allow" beside {named_in_words(rule)}'
