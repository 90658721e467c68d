"""Compiles rules once and decides calls by them. The package's docstring defines the precedence."""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from models.pure.policy.commands import Pattern, certain_beginning, compile_pattern
from models.pure.policy.conditions import DIRECTORY, test_of
from models.pure.policy.covering import named_in_words
from models.pure.policy.globs import text_glob
from models.pure.policy.inputs import Input, MaskedInput, programs
from models.pure.policy.rules import COMMAND_PATHS, Effect, Rule, Verdict, sort_key
from models.pure.policy.unknown_programs import check_programs
from models.pure.shell import Words

_TEXTS = frozenset({"glob", "path_glob", "regex"})
_ABOUT_TEXTS = _TEXTS | {"equals", "one_of"}


class _Compiled:
    """One compiled rule."""

    def __init__(self, rule: Rule, place: int) -> None:
        self.rule = rule
        self.place = place
        self.path: str | None = None
        self.pattern: Pattern | None = None
        self._strict = rule.effect != "allow"
        self._tests_shown = rule.source == "grant" and rule.match.input_sha256 is None
        tests = [c for c in rule.match.conditions if c.operator != "command"]
        self._tests = [(c.path, c.operator == "exists", test_of(c.operator, c.value, rule.effect)) for c in tests]
        for condition in rule.match.conditions:
            if condition.operator == "command":
                self.path, self.pattern = condition.path, compile_pattern(condition.value)
        self._texts = [c.path for c in tests if c.path in COMMAND_PATHS and c.operator in _TEXTS]
        self._about_texts = {c.path for c in tests if c.path in COMMAND_PATHS and c.operator in _ABOUT_TEXTS}
        self.names_directory = any(c.path == DIRECTORY for c in tests)
        """True if the rule says in which directories a command may start."""
        self.lines = self._about_texts | ({self.path} if self.path else set())
        """The pointers of the command lines that the rule is about."""

    def holds(self, call: Input) -> bool:
        """True if every condition but the pattern of commands holds. Those of a grant must hold for the shown input too."""
        if self._tests_shown and call.masked_input and not self._holds(call.masked_input):
            return False
        return self._holds(call)

    def _holds(self, call: Input) -> bool:
        for path, is_exists, test in self._tests:
            argument = call.at(path)
            result = test(argument) if is_exists or argument.exists else argument.exists
            if not (self._strict if result is None else result):
                return False
        if self.rule.match.input_sha256 and self.rule.match.input_sha256 != call.sha256:
            return False
        return self._strict or (self._is_about_directory(call) and all(_is_one_command(call, path) for path in self._texts))

    def _is_about_directory(self, call: Input) -> bool:
        """False if the rule allows texts of commands and says nothing of the directory that the call names."""
        return self.names_directory or not any(map(call.names_directory, self._about_texts))

    def suspects(self, call: Input) -> bool:
        """True if the pattern fits any command that the line may run. A rule without a pattern fits every line."""
        if self.path is None or self.pattern is None or self.pattern.everything:
            return True
        if call.line(self.path) is None:
            return False
        return not isinstance(call.at(self.path).value, str) or any(map(self.pattern.test, call.suspects(self.path)))

    def fits(self, call: Input, path: str, number: int) -> bool:
        """True if the pattern is about the certain line at `path` and fits this command of it, for a grant as shown too."""
        if self.path != path or self.pattern is None:
            return False
        if self._tests_shown and call.masked_input:
            masked_commands = call.masked_input.commands(path)
            if len(masked_commands) != len(call.commands(path)) or not self.pattern.test(masked_commands[number]):
                return False
        return bool(self.pattern.test(call.commands(path)[number]))

    def may_fit(self, words: Words) -> bool:
        """True if the pattern may fit a command once bash has expanded the words: `deny bash(rm *)` and `npx r*`."""
        if self.pattern is None or certain_beginning(words) is None:
            return False
        if certain_beginning(words[:1]) is not None:  # bash expands the program's name itself
            return True
        return any(self.pattern.may_fit(certain_beginning((name, *words[1:])) or "") for name in programs(words))


class _Rules:
    """The rules of one effect for one tool, in the order of `sort_key`.

    A plain loop: 1,000 rules take 0.5 to 3 ms of the processor, and 1,000 expressions 5 ms (benchmarks.policy).
    """

    def __init__(self, rules: Iterable[_Compiled]) -> None:
        self._rules = list(rules)
        self._paths = list(dict.fromkeys(rule.path for rule in self._rules if rule.path))

    def plain(self, call: Input) -> _Compiled | None:
        """Return the first rule without a pattern of commands that matches."""
        return next((rule for rule in self._rules if rule.pattern is None and rule.holds(call)), None)

    def strict(self, call: Input) -> _Compiled | None:
        """Return the first rule that matches. One command of a line is enough."""
        return next((rule for rule in self._rules if rule.suspects(call) and rule.holds(call)), None)

    def covering(self, call: Input) -> list[_Compiled] | None:
        """Return the rules that together match every command of a certain line, the first for each; else None."""
        for path in self._paths:
            numbers = range(len(call.commands(path)))
            if hits := _covering(self._rules, call, path, numbers):
                return hits
            if call.names_directory(path):  # rules that say in which directories need not cover the `cd` as well
                about_directory = [rule for rule in self._rules if rule.names_directory]
                if hits := _covering(about_directory, call, path, numbers[1:]):
                    return hits
        return None

    def naming(self, path: str, call: Input, number: int) -> Rule | None:
        """Return the first rule that names the program of the command with this number, or this very input, and matches."""
        line = call.line(path)
        program = line.commands[number][0] if line else None
        for rule in self._rules:
            names = rule.pattern.first == program if rule.pattern else rule.rule.match.input_sha256
            if names and (rule.pattern is None or rule.fits(call, path, number)) and rule.holds(call):
                return rule.rule
        return None

    def expanded(self, call: Input) -> _Compiled | None:
        """Return the first rule that a command may match once bash has expanded its words."""
        lines = {path: line.suspects for path in self._paths if (line := call.line(path))}
        hits = (rule for rule in self._rules if rule.path and any(map(rule.may_fit, lines.get(rule.path, ()))))
        return next((rule for rule in hits if rule.holds(call)), None)


@dataclass(frozen=True)
class _ToolRules:
    """The rules about one tool."""

    deny: _Rules
    ask: _Rules
    allow: tuple[_Rules, ...]
    """The written rules; then, if there are grants, the written rules with the grants."""
    strict: dict[str, Rule]
    """By pointer to a command line: the first rule about it that denies or asks."""
    binding: dict[str, Rule]
    """As `strict`, without rules of policies with `"unknown_programs": "allow"`."""


class CompiledRules:
    """Compiled rules and a default. Keep it, since compiling costs more than judging."""

    def __init__(self, rules: Iterable[Rule], default: Effect = "ask", words: str | None = None) -> None:
        self.default = default
        self._default = Verdict(default, words or f"default: {default}")
        self._rules = [_Compiled(rule, place) for place, rule in enumerate(sorted(rules, key=sort_key))]
        self._tools: dict[str, _ToolRules] = {}

    def with_grants(self, grants: Iterable[Rule]) -> "CompiledRules":
        """Return these rules with grants added. They are not compiled again: grants come after all rules in the order."""
        rules = CompiledRules((), self.default, self._default.rule)
        grant_rules = sorted((rule for rule in grants if rule.source == "grant"), key=sort_key)
        rules._rules = self._rules + [_Compiled(rule, place) for place, rule in enumerate(grant_rules, len(self._rules))]
        return rules

    def judge(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        workdir: str | None = None,
        *,
        masked_fields: Mapping[str, Any] | None = None,
        git_doubt: str | None = None,
    ) -> Verdict:
        """Return the verdict on one call. Relative paths start at `workdir`, to be compared with absolute ones.

        `masked_fields`: the arguments with their secrets masked, which a grant must fit too; None if nothing is masked.
        `git_doubt`: why commands of git are uncertain in this session; None if they are not.
        """
        tool_rules, call = self._rules_of(tool), Input(tool, arguments, workdir, git_doubt)
        call.masked_input = None if masked_fields is None else MaskedInput(tool, masked_fields, workdir, git_doubt)
        for rules in (tool_rules.deny, tool_rules.ask):
            if hit := rules.strict(call):
                return _verdict([hit])
        verdict = self._find_allow(tool_rules, call) or self._default
        if verdict.effect == "allow":
            lines = [(path, line) for path in tool_rules.strict if (line := call.line(path))]
            for path, line in lines:
                if line.doubt:
                    return _unsure(tool_rules.strict[path], line.doubt)
            for rules in (tool_rules.deny, tool_rules.ask):
                if hit := rules.expanded(call):
                    return _unsure(hit.rule, "bash expands a word of it")
            for path, line in lines:
                # Here grants count under every default, since they may name unknown programs.
                naming = functools.partial(tool_rules.allow[-1].naming, path, call)
                verdict = check_programs(verdict, line, naming, tool_rules.strict[path], tool_rules.binding.get(path))
                if verdict.effect == "ask":
                    return verdict
        return replace(verdict, doubt=call.doubt) if verdict is self._default and verdict.effect == "ask" else verdict

    def _find_allow(self, tool_rules: _ToolRules, call: Input) -> Verdict | None:
        # Rules before grants, so that an allowed call does not use up a grant.
        for rules in tool_rules.allow if self.default == "ask" else tool_rules.allow[:1]:
            if hit := rules.plain(call):
                return _verdict([hit])
            if hits := rules.covering(call):
                return _verdict(hits)
        return None

    def _rules_of(self, tool: str) -> _ToolRules:
        if tool not in self._tools:
            rules = [rule for rule in self._rules if text_glob(rule.rule.match.tool)(tool)]
            deny, ask, allow = ([rule for rule in rules if rule.rule.effect == effect] for effect in ("deny", "ask", "allow"))
            written_rules = [rule for rule in allow if rule.rule.source != "grant"]
            self._tools[tool] = _ToolRules(
                deny=_Rules(deny),
                ask=_Rules(ask),
                allow=(_Rules(written_rules), _Rules(allow)) if len(written_rules) < len(allow) else (_Rules(written_rules),),
                strict=_first_by_path([*deny, *ask]),
                binding=_first_by_path([rule for rule in [*deny, *ask] if not rule.rule.guard_rail]),
            )
        return self._tools[tool]


def _is_one_command(call: Input, path: str) -> bool:
    """True if the line is certainly one command, after the `cd` to its directory. A pattern of texts knows nothing of `;`."""
    line = call.line(path)
    return line is not None and not line.doubt and len(line.commands) == 1 + call.names_directory(path)


def _covering(rules: list[_Compiled], call: Input, path: str, numbers: range) -> list[_Compiled] | None:
    """Return the rules that together match these commands of a certain line, the first for each; None if one is not matched."""
    hits = [next((rule for rule in rules if rule.fits(call, path, n) and rule.holds(call)), None) for n in numbers]
    certain = [hit for hit in hits if hit]
    return sorted(dict.fromkeys(certain), key=lambda hit: hit.place) if certain and len(certain) == len(hits) else None


def _first_by_path(rules: list[_Compiled]) -> dict[str, Rule]:
    return {path: rule.rule for rule in reversed(rules) for path in sorted(rule.lines)}


def _unsure(rule: Rule, doubt: str) -> Verdict:
    return Verdict("ask", f"not sure which commands run: {doubt}; {named_in_words(rule)} might be met", (rule,), doubt)


def _verdict(hits: list[_Compiled]) -> Verdict:
    rules = tuple(hit.rule for hit in hits)
    return Verdict(rules[0].effect, "; ".join(named_in_words(rule) for rule in rules), rules)
