"""Why a call was asked, allowed or denied, for people: the words of a verdict's rule as a clause that begins with "because".

Rows and the audit keep the rule as `Verdict.rule` names it. Cards, sessions, mail and the terminal show this clause.
"""

import re

from models.briefing.tool_name import tool_in_words
from models.pure.text.visible import visible

_VERBS = {"allow": "Allowed", "ask": "Asked", "deny": "Denied"}
_EFFECT = "(?P<effect>allow|ask|deny)"
_DEFAULT = re.compile(rf"(?:tool (?P<tool>\S+)|default of the (?P<level>agent|workspace|toolset)|default): {_EFFECT}")
_OF_TOOL = {"allow": "is allowed", "ask": "asks every time", "deny": "is denied"}
_OF_LEVEL = {"allow": "allows every call", "ask": "asks about every call", "deny": "denies every call"}
_RULE = re.compile(rf"(?P<before>^|; |beside )(?:(?P<level>workspace|agent|tool|parent) rule|grant \S+): {_EFFECT} ")
_TO = {"allow": "to allow", "ask": "to ask about", "deny": "to deny"}
_WHOSE = {"parent": "the rule of the agent above", None: "a grant"}
_BEGINNINGS = {"not sure ": "it is not sure ", "not a tool ": "it is no tool ", "not asked: ": "", "always asked: ": ""}
_PARENT = "parent: "
_NOT_ASKED = "; the session denies what would be asked (on_ask)"


def sentence(rule: str, effect: str) -> str:
    """Return why a call has this effect: `Asked because bash asks every time unless a rule says otherwise.`"""
    return f"{_VERBS[effect]} {because(rule)}."


def because(rule: str) -> str:
    """Return the clause for a rule as verdicts name it, in one line: `because of the agent's rule to deny bash(rm *)`."""
    return _clause(visible(" ".join(rule.split())))


def _clause(rule: str) -> str:
    if rule.endswith(_NOT_ASKED):
        return f"{_clause(rule.removesuffix(_NOT_ASKED))}, and nobody can be asked in this session"
    own, _, of_parent = f"; {rule}".partition(f"; {_PARENT}")
    if of_parent:
        clauses = [_clause(part) for part in (own.removeprefix("; "), of_parent) if part]
        return f"{', and '.join(clauses)} (as the agent above has it)"
    if default := _DEFAULT.fullmatch(rule):
        return f"because {_of_default(default)} unless a rule says otherwise"
    if _RULE.match(rule):
        return f"because of {_with_rules(rule)}"
    for beginning, words in _BEGINNINGS.items():
        if rule.startswith(beginning):
            return f"because {words}{_with_rules(rule.removeprefix(beginning))}"
    reason = re.fullmatch(r"default: allow \((.+)\)", rule)
    return f"because {reason[1] if reason else rule}"


def _of_default(default: re.Match[str]) -> str:
    if tool := default["tool"]:
        return f"{tool_in_words(tool)} {_OF_TOOL[default['effect']]}"
    return f"the {default['level'] or 'installation'} {_OF_LEVEL[default['effect']]}"


def _with_rules(rule: str) -> str:
    """Return the text with each rule that it names as a noun: `the agent's rule to deny bash(rm *)`."""

    def noun(name: re.Match[str]) -> str:
        before = ", and " if name["before"] == "; " else name["before"]
        whose = _WHOSE.get(name["level"]) or f"the {name['level']}'s rule"
        return f"{before}{whose} {_TO[name['effect']]} "

    return _RULE.sub(noun, rule)
