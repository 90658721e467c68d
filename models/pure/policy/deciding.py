"""Rules compiled once, and held against calls. What the precedence is, the package's first lines say."""

import functools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from models.pure.canonical import digest
from models.pure.policy.commands import Pattern, certain_beginning, compiled, joined
from models.pure.policy.conditions import MISSING, Found, look_up, pointer, test_of
from models.pure.policy.covering import named_in_words
from models.pure.policy.globs import Unjudged, regex, tool_glob
from models.pure.policy.rules import COMMAND_PATHS, EFFECTS, Effect, Rule, Verdict, named
from models.pure.policy.unknown_programs import Minded, mind_programs
from models.pure.shell import Line, Words, read

_TEXTS = frozenset({"glob", "path_glob", "regex"})
_ABOUT_TEXTS = _TEXTS | {"equals", "one_of"}
_TOOLS = 512
"""Tools whose rules a rulebook keeps sorted out."""


class Input:
    """One call's input; each argument is looked up once, and each command line is read once."""

    def __init__(self, said: Mapping[str, Any], workdir: str | None, git_doubt: str | None = None) -> None:
        self.said = said
        self._git_doubt = git_doubt
        self._workdir = workdir
        self._found: dict[str, Found] = {}
        self._lines: dict[str, Line | None] = {}

    @functools.cached_property
    def sha256(self) -> str:
        """The hash of the whole input; of one that cannot be hashed, none that a rule could name."""
        try:
            return digest(self.said)
        except (ValueError, RecursionError):
            return ""

    def at(self, path: str) -> Found:
        """What is at a pointer."""
        found = self._found.get(path)
        if found is None:
            found = self._found[path] = Found(look_up(self.said, pointer(path)), self._workdir)
        return found

    def line(self, path: str) -> Line | None:
        """The command line at a pointer; None if there is none. What is no text cannot be read."""
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
        """Why a command line that was looked at cannot be surely read."""
        return next((line.doubt for _, line in sorted(self._lines.items()) if line and line.doubt), None)


class _Compiled:
    """One rule, ready."""

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
        """Where the command lines are that the rule is about."""
        self.regex = next((c for c in tests if c.operator == "regex"), None)

    def holds(self, given: Input) -> bool:
        """Whether all holds but the pattern of commands."""
        for path, any_, test in self._tests:
            found = given.at(path)
            said = test(found) if any_ or found.there else found.there
            if not (self._strict if said is None else said):
                return False
        if self.rule.match.input_sha256 and self.rule.match.input_sha256 != given.sha256:
            return False
        # A pattern of texts knows nothing of `;`, so it allows a line only if that is surely one command.
        return (
            self._strict
            or not self._texts
            or all((line := given.line(path)) and not line.doubt and len(line.commands) == 1 for path in self._texts)
        )


class _Sieve:
    """The expressions of some rules about one argument, tried as one: most texts fit none of them, and then none is tried alone."""

    SIZE = 32

    def __init__(self, path: str, rules: list[_Compiled]) -> None:
        self._path = path
        self._places = frozenset(rule.place for rule in rules)
        together = "|".join(f"(?:{rule.regex.value})" for rule in rules if rule.regex)
        self._any = regex(together, whole=rules[0].rule.effect == "allow")

    @classmethod
    def over(cls, rules: Iterable[_Compiled]) -> list["_Sieve"]:
        """Those that are worth it. A `\\Q` without its end would swallow its neighbours: such rules are left to themselves."""
        by_path: dict[str, list[_Compiled]] = {}
        for rule in rules:
            if rule.regex and "\\Q" not in rule.regex.value:
                by_path.setdefault(rule.regex.path, []).append(rule)
        sieves = []
        for path, found in by_path.items():
            for some in (found[start : start + cls.SIZE] for start in range(0, len(found), cls.SIZE)):
                with suppress(ValueError):  # too large together: each is tried by itself
                    sieves.append(cls(path, some))
        return sieves

    def out(self, given: Input) -> frozenset[int]:
        """The places of its rules, if none of them can match."""
        value = given.at(self._path).value
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

    def plain(self, given: Input) -> _Compiled | None:
        """The first rule without a pattern of commands that matches."""
        out = frozenset[int]().union(*(sieve.out(given) for sieve in self._sieves))
        return next((rule for rule in self._plain if rule.place not in out and rule.holds(given)), None)

    def strict(self, given: Input) -> _Compiled | None:
        """The first rule that matches, any command of a line being enough."""
        found = [hit for hit in [self.plain(given)] if hit]
        for path, by_name in self._by_name.items():
            line = given.line(path)
            if line is None:
                found += [rule for rule in by_name.get(None, []) if rule.pattern and rule.pattern.everything and rule.holds(given)]
            elif not isinstance(given.at(path).value, str):
                found += [rule for rules in by_name.values() for rule in rules if rule.holds(given)]
            else:
                found += [rule for words in line.suspects for rule in self._suspecting(path, words) if rule.holds(given)]
                found += [rule for rule in by_name.get(None, []) if rule.pattern and rule.pattern.everything and rule.holds(given)]
        return min(found, key=lambda hit: hit.place, default=None)

    def covering(self, given: Input) -> list[_Compiled] | None:
        """Rules that together match every command of a line that is surely read: of each command, the first."""
        for path in self._by_name:
            line = given.line(path)
            if line is None or line.doubt or not line.commands:
                continue
            hits = [min(self._fitting(path, words, given), key=lambda hit: hit.place, default=None) for words in line.commands]
            sure = [hit for hit in hits if hit]
            if len(sure) == len(hits):
                return sorted(dict.fromkeys(sure), key=lambda hit: hit.place)
        return None

    def naming(self, path: str, given: Input, words: Words) -> Rule | None:
        """The first rule that names the program of a command, or this very input, and matches."""
        by_name = self._by_name.get(path, {}).get(words[0], [])
        line = joined(words)
        hits = [rule for rule in by_name if rule.pattern and rule.pattern.test(line) and rule.holds(given)]
        hits += [rule for rule in self._plain if rule.rule.match.input_sha256 and rule.holds(given)]
        return min(hits, key=lambda hit: hit.place).rule if hits else None

    def expanded(self, given: Input) -> _Compiled | None:
        """The first rule that a command may match once bash has expanded its words: `deny bash(rm *)` and `npx r*`."""
        lines = [(path, line) for path in self._by_name if (line := given.line(path))]
        hits = (
            rule for path, line in lines for words in line.suspects for rule in self._expanding(path, words) if rule.holds(given)
        )
        return min(hits, key=lambda hit: hit.place, default=None)

    def _fitting(self, path: str, words: Words, given: Input) -> Iterator[_Compiled]:
        return (rule for rule in self._patterned(path, words[0], joined(words)) if rule.holds(given))

    def _suspecting(self, path: str, words: Words) -> Iterator[_Compiled]:
        """By the name as it is, and without its folder."""
        for name in {words[0], words[0].rpartition("/")[2]}:
            yield from self._patterned(path, name, joined((name, *words[1:])))

    def _expanding(self, path: str, words: Words) -> Iterator[_Compiled]:
        if certain_beginning(words) is None:
            return
        if certain_beginning(words[:1]) is not None:
            # Any command: the name itself is expanded.
            yield from (rule for rules in self._by_name[path].values() for rule in rules)
        for name in {words[0], words[0].rpartition("/")[2]}:
            begin = certain_beginning((name, *words[1:])) or ""
            yield from (rule for rule in self._named(path, name) if rule.pattern and rule.pattern.may_fit(begin))

    def _patterned(self, path: str, name: str, line: str) -> Iterator[_Compiled]:
        return (rule for rule in self._named(path, name) if rule.pattern and rule.pattern.test(line))

    def _named(self, path: str, name: str) -> Iterator[_Compiled]:
        """The rules about commands of that name, then the rules whose pattern fits several names."""
        by_name = self._by_name[path]
        yield from by_name.get(name, ())
        yield from by_name.get(None, ())


@dataclass(frozen=True)
class _Tool:
    """What the rules say of one tool."""

    deny: _Shelf
    ask: _Shelf
    allow: tuple[_Shelf, ...]
    """The rules, and then, if there are any, the rules and the grants."""
    minding: dict[str, _Compiled]
    """Where the command lines are that rules which deny or ask are about, each with the first of those rules."""
    walls: dict[str, _Compiled]
    """The same, without the rules of policies that say `"unknown_programs": "allow"`."""

    def minded(self, path: str, line: Line, given: Input) -> Minded:
        """The line at a path of `minding`. Grants count under every default: they answer the question about unknown programs."""
        wall = self.walls.get(path)
        naming = functools.partial(self.allow[-1].naming, path, given)
        return Minded(line, naming, self.minding[path].rule, wall.rule if wall else None)


class Rulebook:
    """Rules and a default, compiled. Keep it: compiling costs more than deciding."""

    def __init__(self, rules: Iterable[Rule], default: Effect = "ask", words: str | None = None) -> None:
        self.default = default
        self._default = Verdict(default, words or f"default: {default}")
        self._rules = [_Compiled(rule, place) for place, rule in enumerate(sorted(rules, key=named))]
        self._tools: dict[str, _Tool] = {}

    def with_grants(self, grants: Iterable[Rule]) -> "Rulebook":
        """The same with grants, without compiling its rules again: grants are named after all rules, so no place changes."""
        book = Rulebook((), self.default, self._default.rule)
        granted = sorted((rule for rule in grants if rule.source == "grant"), key=named)
        book._rules = self._rules + [_Compiled(rule, place) for place, rule in enumerate(granted, len(self._rules))]
        return book

    def decide(self, tool: str, given: Mapping[str, Any], workdir: str | None = None, *, git_doubt: str | None = None) -> Verdict:
        """The verdict on one call. `workdir` is where relative paths begin, if absolute ones are to be compared with them.

        `git_doubt`: why no command of git is surely read in this session; None if they are read as all others.
        """
        about, said = self._about(tool), Input(given, workdir, git_doubt)
        for shelf in (about.deny, about.ask):
            if hit := shelf.strict(said):
                return _verdict([hit])
        verdict = self._allowed(about, said) or self._default
        if verdict.effect == "allow":
            lines = [(path, line) for path in about.minding if (line := said.line(path))]
            for path, line in lines:
                if line.doubt:
                    return _unsure(about.minding[path], line.doubt)
            for shelf in (about.deny, about.ask):
                if hit := shelf.expanded(said):
                    return _unsure(hit, "bash expands a word of it")
            return mind_programs(verdict, [about.minded(path, line, said) for path, line in lines])
        return replace(verdict, doubt=said.doubt) if verdict is self._default and verdict.effect == "ask" else verdict

    def _allowed(self, about: _Tool, said: Input) -> Verdict | None:
        # Rules before grants, so that no use of a grant is spent on what is allowed anyway.
        for shelf in about.allow if self.default == "ask" else about.allow[:1]:
            if hit := shelf.plain(said):
                return _verdict([hit])
            if hits := shelf.covering(said):
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
