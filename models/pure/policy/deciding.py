"""Compiles rules once and decides calls by them. The package's docstring defines the precedence."""

import functools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from models.pure.canonical import digest
from models.pure.policy.commands import Pattern, certain_beginning, compiled, joined
from models.pure.policy.conditions import MISSING, Argument, look_up, pointer, test_of
from models.pure.policy.covering import named_in_words
from models.pure.policy.globs import Unjudged, regex, tool_glob
from models.pure.policy.rules import COMMAND_PATHS, EFFECTS, Effect, Rule, Verdict, named
from models.pure.policy.unknown_programs import Minded, mind_programs
from models.pure.shell import Line, Words, read

_TEXTS = frozenset({"glob", "path_glob", "regex"})
_ABOUT_TEXTS = _TEXTS | {"equals", "one_of"}
_TOOLS = 512
"""Tools whose sorted rules a rulebook caches."""


class Input:
    """One call's input. Each argument is looked up once, and each command line is parsed once."""

    def __init__(self, arguments: Mapping[str, Any], workdir: str | None, git_doubt: str | None = None) -> None:
        self.arguments = arguments
        self._git_doubt = git_doubt
        self._workdir = workdir
        self._cache: dict[str, Argument] = {}
        self._lines: dict[str, Line | None] = {}

    @functools.cached_property
    def sha256(self) -> str:
        """The hash of the whole input; empty for an input that cannot be hashed, which matches no rule."""
        try:
            return digest(self.arguments)
        except (ValueError, RecursionError):
            return ""

    def at(self, path: str) -> Argument:
        """Return the argument at a pointer."""
        argument = self._cache.get(path)
        if argument is None:
            argument = self._cache[path] = Argument(look_up(self.arguments, pointer(path)), self._workdir)
        return argument

    def line(self, path: str) -> Line | None:
        """Return the command line at a pointer; None if there is none. A value of another type gives a line in doubt."""
        if path not in self._lines:
            value = self.at(path).value
            if value is MISSING or value is None or value == "":
                self._lines[path] = None
            else:
                self._lines[path] = self._read(value)
        return self._lines[path]

    def _read(self, value: Any) -> Line:
        if not isinstance(value, str):
            return Line((), "it is no text", ())
        line = read(value)
        return replace(line, doubt=self._git_doubt) if self._git_doubt and not line.doubt and line.runs("git") else line

    @property
    def doubt(self) -> str | None:
        """Why a command line that was parsed is uncertain, or None."""
        return next((line.doubt for _, line in sorted(self._lines.items()) if line and line.doubt), None)


class _Compiled:
    """One compiled rule."""

    __slots__ = ("_strict", "_tests", "_texts", "lines", "path", "pattern", "place", "regex", "rule")

    def __init__(self, rule: Rule, place: int) -> None:
        self.rule = rule
        self.place = place
        self.path: str | None = None
        self.pattern: Pattern | None = None
        self._strict = rule.effect != "allow"
        tests = [c for c in rule.match.conditions if c.operator != "command"]
        self._tests = [(c.path, c.operator == "exists", test_of(c.operator, c.value, rule.effect)) for c in tests]
        for condition in rule.match.conditions:
            if condition.operator == "command":
                self.path, self.pattern = condition.path, compiled(condition.value)
        self._texts = [c.path for c in tests if c.path in COMMAND_PATHS and c.operator in _TEXTS]
        about_texts = {c.path for c in tests if c.path in COMMAND_PATHS and c.operator in _ABOUT_TEXTS}
        self.lines = about_texts | ({self.path} if self.path else set())
        """Pointers to the command lines to which the rule applies."""
        self.regex = next((c for c in tests if c.operator == "regex"), None)

    def holds(self, call: Input) -> bool:
        """True if every condition but the pattern of commands holds."""
        for path, any_, test in self._tests:
            argument = call.at(path)
            result = test(argument) if any_ or argument.there else argument.there
            if not (self._strict if result is None else result):
                return False
        if self.rule.match.input_sha256 and self.rule.match.input_sha256 != call.sha256:
            return False
        # A pattern of texts ignores `;`, so it allows a line only if the line is certainly one command.
        return (
            self._strict
            or not self._texts
            or all((line := call.line(path)) and not line.doubt and len(line.commands) == 1 for path in self._texts)
        )


class _Sieve:
    """Several rules' expressions about one argument, combined into one. If the combination does not match, none of them does."""

    SIZE = 32

    def __init__(self, path: str, rules: list[_Compiled]) -> None:
        self._path = path
        self._places = frozenset(rule.place for rule in rules)
        together = "|".join(f"(?:{rule.regex.value})" for rule in rules if rule.regex)
        self._any = regex(together, whole=rules[0].rule.effect == "allow")

    @classmethod
    def over(cls, rules: Iterable[_Compiled]) -> list["_Sieve"]:
        """Return sieves for these rules. Leaves out expressions with `\\Q`, which could extend into the next expression."""
        by_path: dict[str, list[_Compiled]] = {}
        for rule in rules:
            if rule.regex and "\\Q" not in rule.regex.value:
                by_path.setdefault(rule.regex.path, []).append(rule)
        sieves = []
        for path, rules_of_path in by_path.items():
            for start in range(0, len(rules_of_path), cls.SIZE):
                with suppress(ValueError):  # the combination is too large: each is tried alone
                    sieves.append(cls(path, rules_of_path[start : start + cls.SIZE]))
        return sieves

    def out(self, call: Input) -> frozenset[int]:
        """Return the places of the sieve's rules if none of them can match, else an empty set."""
        value = call.at(self._path).value
        try:
            return self._places if isinstance(value, str) and not self._any(value) else frozenset()
        except Unjudged:
            return frozenset()


class _Shelf:
    """The rules of one effect for one tool, in the order in which they are named."""

    def __init__(self, rules: Iterable[_Compiled]) -> None:
        self._plain: list[_Compiled] = []
        self._by_name: dict[str, dict[str | None, list[_Compiled]]] = {}
        for rule in rules:
            if rule.path is None or rule.pattern is None:
                self._plain.append(rule)
            else:
                self._by_name.setdefault(rule.path, {}).setdefault(rule.pattern.first, []).append(rule)
        self._sieves = _Sieve.over(self._plain)

    def plain(self, call: Input) -> _Compiled | None:
        """Return the first matching rule without a pattern of commands, or None."""
        out = frozenset[int]().union(*(sieve.out(call) for sieve in self._sieves))
        return next((rule for rule in self._plain if rule.place not in out and rule.holds(call)), None)

    def strict(self, call: Input) -> _Compiled | None:
        """Return the first rule that matches the call, or any one command of a line."""
        hits = [hit for hit in [self.plain(call)] if hit]
        for path, by_name in self._by_name.items():
            line = call.line(path)
            if line is None:
                hits += [rule for rule in by_name.get(None, []) if rule.pattern and rule.pattern.everything and rule.holds(call)]
            elif not isinstance(call.at(path).value, str):
                hits += [rule for rules in by_name.values() for rule in rules if rule.holds(call)]
            else:
                hits += [rule for words in line.suspects for rule in self._suspecting(path, words) if rule.holds(call)]
                hits += [rule for rule in by_name.get(None, []) if rule.pattern and rule.pattern.everything and rule.holds(call)]
        return min(hits, key=lambda hit: hit.place, default=None)

    def covering(self, call: Input) -> list[_Compiled] | None:
        """Return rules that together match every command of a certain line, for each command the first; None if some match none."""
        for path in self._by_name:
            line = call.line(path)
            if line is None or line.doubt or not line.commands:
                continue
            hits = [min(self._fitting(path, words, call), key=lambda hit: hit.place, default=None) for words in line.commands]
            sure = [hit for hit in hits if hit]
            if len(sure) == len(hits):
                return sorted(dict.fromkeys(sure), key=lambda hit: hit.place)
        return None

    def naming(self, path: str, call: Input, words: Words) -> Rule | None:
        """Return the first matching rule that names a command's program, or this exact input."""
        by_name = self._by_name.get(path, {}).get(words[0], [])
        line = joined(words)
        hits = [rule for rule in by_name if rule.pattern and rule.pattern.test(line) and rule.holds(call)]
        hits += [rule for rule in self._plain if rule.rule.match.input_sha256 and rule.holds(call)]
        return min(hits, key=lambda hit: hit.place).rule if hits else None

    def expanded(self, call: Input) -> _Compiled | None:
        """Return the first rule that a command may match after bash expands its words: `deny bash(rm *)` and `npx r*`."""
        lines = [(path, line) for path in self._by_name if (line := call.line(path))]
        hits = (
            rule for path, line in lines for words in line.suspects for rule in self._expanding(path, words) if rule.holds(call)
        )
        return min(hits, key=lambda hit: hit.place, default=None)

    def _fitting(self, path: str, words: Words, call: Input) -> Iterator[_Compiled]:
        return (rule for rule in self._patterned(path, words[0], joined(words)) if rule.holds(call))

    def _suspecting(self, path: str, words: Words) -> Iterator[_Compiled]:
        """Yield the matching rules, by the name as written and by the name without its folder."""
        for name in {words[0], words[0].rpartition("/")[2]}:
            yield from self._patterned(path, name, joined((name, *words[1:])))

    def _expanding(self, path: str, words: Words) -> Iterator[_Compiled]:
        if certain_beginning(words) is None:
            return
        if certain_beginning(words[:1]) is not None:
            # Bash expands the name itself, so it may be any command.
            yield from (rule for rules in self._by_name[path].values() for rule in rules)
        for name in {words[0], words[0].rpartition("/")[2]}:
            begin = certain_beginning((name, *words[1:])) or ""
            yield from (rule for rule in self._named(path, name) if rule.pattern and rule.pattern.may_fit(begin))

    def _patterned(self, path: str, name: str, line: str) -> Iterator[_Compiled]:
        return (rule for rule in self._named(path, name) if rule.pattern and rule.pattern.test(line))

    def _named(self, path: str, name: str) -> Iterator[_Compiled]:
        """Yield the rules about commands with that name, then the rules whose pattern matches several names."""
        by_name = self._by_name[path]
        yield from by_name.get(name, ())
        yield from by_name.get(None, ())


@dataclass(frozen=True)
class _Tool:
    """The rules about one tool."""

    deny: _Shelf
    ask: _Shelf
    allow: tuple[_Shelf, ...]
    """The written rules; then, if there are grants, the written rules with the grants."""
    minding: dict[str, _Compiled]
    """By pointer to a command line: the first rule about it that denies or asks."""
    walls: dict[str, _Compiled]
    """The same, without rules of policies with `"unknown_programs": "allow"`."""

    def minded(self, path: str, line: Line, call: Input) -> Minded:
        """Return the line at a path of `minding`. Here grants count under every default, since they may name unknown programs."""
        wall = self.walls.get(path)
        naming = functools.partial(self.allow[-1].naming, path, call)
        return Minded(line, naming, self.minding[path].rule, wall.rule if wall else None)


class Rulebook:
    """Compiled rules and a default. Keep it, since compiling costs more than deciding."""

    def __init__(self, rules: Iterable[Rule], default: Effect = "ask", words: str | None = None) -> None:
        self.default = default
        self._default = Verdict(default, words or f"default: {default}")
        self._rules = [_Compiled(rule, place) for place, rule in enumerate(sorted(rules, key=named))]
        self._tools: dict[str, _Tool] = {}

    def with_grants(self, grants: Iterable[Rule]) -> "Rulebook":
        """Return this rulebook with grants added. Its rules are not compiled again: grants come after all rules in the order."""
        book = Rulebook((), self.default, self._default.rule)
        granted = sorted((rule for rule in grants if rule.source == "grant"), key=named)
        book._rules = self._rules + [_Compiled(rule, place) for place, rule in enumerate(granted, len(self._rules))]
        return book

    def decide(
        self, tool: str, arguments: Mapping[str, Any], workdir: str | None = None, *, git_doubt: str | None = None
    ) -> Verdict:
        """Return the verdict on one call. Relative paths start at `workdir`, to be compared with absolute ones.

        `git_doubt`: why commands of git are uncertain in this session; None if they are not.
        """
        about, call = self._about(tool), Input(arguments, workdir, git_doubt)
        for shelf in (about.deny, about.ask):
            if hit := shelf.strict(call):
                return _verdict([hit])
        verdict = self._allowed(about, call) or self._default
        if verdict.effect == "allow":
            lines = [(path, line) for path in about.minding if (line := call.line(path))]
            for path, line in lines:
                if line.doubt:
                    return _unsure(about.minding[path], line.doubt)
            for shelf in (about.deny, about.ask):
                if hit := shelf.expanded(call):
                    return _unsure(hit, "bash expands a word of it")
            return mind_programs(verdict, [about.minded(path, line, call) for path, line in lines])
        return replace(verdict, doubt=call.doubt) if verdict is self._default and verdict.effect == "ask" else verdict

    def _allowed(self, about: _Tool, call: Input) -> Verdict | None:
        # Rules before grants, so that an allowed call does not use up a grant.
        for shelf in about.allow if self.default == "ask" else about.allow[:1]:
            if hit := shelf.plain(call):
                return _verdict([hit])
            if hits := shelf.covering(call):
                return _verdict(hits)
        return None

    def _about(self, tool: str) -> _Tool:
        about = self._tools.get(tool)
        if about is None:
            rules = [rule for rule in self._rules if tool_glob(rule.rule.match.tool)(tool)]
            by_effect = {effect: [rule for rule in rules if rule.rule.effect == effect] for effect in EFFECTS}
            written = [rule for rule in by_effect["allow"] if rule.rule.source != "grant"]
            about = _Tool(
                deny=_Shelf(by_effect["deny"]),
                ask=_Shelf(by_effect["ask"]),
                allow=(_Shelf(written), _Shelf(by_effect["allow"]))
                if len(written) < len(by_effect["allow"])
                else (_Shelf(written),),
                minding=_first_by_path([*by_effect["deny"], *by_effect["ask"]]),
                walls=_first_by_path([r for e in ("deny", "ask") for r in by_effect[e] if not r.rule.guard_rail]),
            )
            if len(self._tools) < _TOOLS:
                self._tools[tool] = about
        return about


def _first_by_path(rules: list[_Compiled]) -> dict[str, _Compiled]:
    return {path: rule for rule in reversed(rules) for path in sorted(rule.lines)}


def _unsure(hit: _Compiled, doubt: str) -> Verdict:
    words = f"not sure which commands run: {doubt}; {named_in_words(hit.rule)} might be met"
    return Verdict("ask", words, (hit.rule,), doubt)


def _verdict(hits: list[_Compiled]) -> Verdict:
    rules = tuple(hit.rule for hit in hits)
    return Verdict(rules[0].effect, "; ".join(named_in_words(rule) for rule in rules), rules)
