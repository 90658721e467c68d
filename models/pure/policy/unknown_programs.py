"""Limits an allow for everything while a rule about commands denies or asks: it covers only programs that are known to run no
others.

Every other program asks, unless an allow rule or a grant names it. If each policy with such a rule has
`"unknown_programs": "allow"`, the allow covers every program: then the rule is only a guard rail.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from models.pure.policy.covering import named_in_words
from models.pure.policy.rules import Rule, Verdict
from models.pure.shell import Line, Words, unknown

_SHOWN = 3
"""Programs that the reason names."""


@dataclass(frozen=True)
class Minded:
    """A command line to which a rule applies that denies or asks."""

    line: Line
    """The line, without doubt."""
    naming: Callable[[Words], Rule | None]
    """Returns the allow rule or grant that names a command's program, or the exact input."""
    rule: Rule
    """The first rule about the line that denies or asks."""
    wall: Rule | None
    """The first of them whose policy does not have `"unknown_programs": "allow"`."""


def mind_programs(verdict: Verdict, lines: Iterable[Minded]) -> Verdict:
    """Return the verdict that allows a call, or a verdict that asks because of an unknown program that no rule names."""
    more: list[Rule] = []
    for minded in lines:
        reasons = {words: reason for words in minded.line.commands if (reason := unknown(words))}
        naming = {words: minded.naming(words) for words in reasons}
        more += [rule for rule in naming.values() if rule]
        unnamed = [words for words, rule in naming.items() if not rule]
        names = tuple(dict.fromkeys(words[0] for words in unnamed))
        if unnamed and minded.wall:
            reason = reasons[unnamed[0]]
            text = f"not sure what runs: {reason}; {named_in_words(minded.wall)} might be met"
            return Verdict("ask", text, (minded.wall,), reason, names)
        if unnamed:
            verdict = replace(verdict, rule=f"{verdict.rule}; {_let_pass(names, minded.rule)}", unknown=verdict.unknown + names)
    return _with_rules(verdict, more)


def _let_pass(names: tuple[str, ...], rule: Rule) -> str:
    """Return the reason why unknown programs run."""
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    return f'{shown} may run other programs, and "unknown_programs" is "allow" beside {named_in_words(rule)}'


def _with_rules(verdict: Verdict, more: list[Rule]) -> Verdict:
    """Return the verdict with additional rules, each once."""
    for rule in more:
        if rule not in verdict.rules:
            verdict = replace(verdict, rule=f"{verdict.rule}; {named_in_words(rule)}", rules=(*verdict.rules, rule))
    return verdict
