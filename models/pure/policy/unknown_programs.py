"""What an allow for everything covers while a rule about commands denies or asks: only programs that are known to run no others.

Every other program asks, unless an allow rule or a grant names it. Where each policy with such a rule says
`"unknown_programs": "allow"`, the allow covers every program: then the rule is a guard rail and no wall.
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
    """A command line that rules which deny or ask are about."""

    line: Line
    """It is surely read."""
    naming: Callable[[Words], Rule | None]
    """The allow rule or grant that names the program of a command, or the very input."""
    rule: Rule
    """The first rule about the line that denies or asks."""
    wall: Rule | None
    """The first of them whose policy does not say `"unknown_programs": "allow"`."""


def mind_programs(verdict: Verdict, lines: Iterable[Minded]) -> Verdict:
    """The verdict that allows a call, or the question about a program that is not known and not named."""
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
    """Why programs that are not known run."""
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    return f'{shown} may run other programs, and "unknown_programs" is "allow" beside {named_in_words(rule)}'


def _with_rules(verdict: Verdict, more: list[Rule]) -> Verdict:
    """The verdict with more rules behind it, each once."""
    for rule in more:
        if rule not in verdict.rules:
            verdict = replace(verdict, rule=f"{verdict.rule}; {named_in_words(rule)}", rules=(*verdict.rules, rule))
    return verdict
