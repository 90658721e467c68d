"""Tests of a call's arguments. Each returns True, False, or None if it cannot judge the argument."""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jsonpointer import JsonPointer, JsonPointerException

from models.pure.json.canonical import canonical
from models.pure.policy import globs
from models.pure.policy.destroying import destroys
from models.pure.policy.rules import MAX_CHOICES, MAX_REGEX, MAX_TEXT, Effect
from models.pure.shell import read

DIRECTORY = "/working_directory"
"""The argument of `bash` that names the directory in which its command starts."""
MISSING = object()
"""The value of a missing argument."""
UNREACHABLE = object()
"""The value of a pointer into a value without members: `/a/b` where `a` is a number."""

_PATH = 4_096
"""Characters of the longest path that tests read."""

_Test = Callable[["Argument"], bool | None]


class Argument:
    """The value at a pointer, in the forms that tests need."""

    def __init__(self, value: Any, workdir: str | None) -> None:
        self.value = value
        self.exists: bool | None = None if value is UNREACHABLE else value is not MISSING
        """True if the argument exists; None if that cannot be decided."""
        self.workdir = workdir

    @functools.cached_property
    def canonical(self) -> bytes | None:
        """The value as canonical JSON; None if it has none."""
        try:
            return canonical(self.value)
        except (ValueError, RecursionError):
            return None

    @functools.cached_property
    def path(self) -> str | None:
        """The path's one certain place; None if it cannot be decided."""
        return globs.certain_path(self.value, self.workdir) if self._is_path else None

    @functools.cached_property
    def possible_paths(self) -> set[str] | None:
        """All possible places of the path; None if they cannot be decided."""
        return globs.possible_paths(self.value, self.workdir) if self._is_path else None

    @functools.cached_property
    def destroys(self) -> bool | None:
        """True if a command of the line may take away what nobody brings back; None if it is not sure which commands run."""
        line = read(self.value) if isinstance(self.value, str) else None
        return None if line is None or line.doubt else any(map(destroys, line.commands))

    @property
    def _is_path(self) -> bool:
        return isinstance(self.value, str) and len(self.value) <= _PATH and globs.encodable(self.value)


@dataclass(frozen=True)
class Operator:
    """An operator of a rule's condition."""

    check: Callable[[Any], str | None]
    """Returns None if the rule may have the value, else the requirement, as the end of a sentence "must be ..."."""
    make: Callable[[Any, Effect], _Test]
    """Returns the test of a condition with this value, for a rule of this effect."""
    words: str
    """The condition in words for people, with `{}` for the value."""


def pointer(path: str) -> tuple[str, ...]:
    """Return the steps of a JSON Pointer. Raises ValueError."""
    try:
        return tuple(JsonPointer(path).parts)
    except JsonPointerException:
        raise ValueError(f"{path!r} is not a JSON Pointer; write it as /amount or /items/0") from None


def look_up(document: Any, steps: tuple[str, ...]) -> Any:
    """Return the value at the pointer, MISSING or UNREACHABLE."""
    for step in steps:
        if isinstance(document, Mapping):
            document = document.get(step, MISSING)
        elif isinstance(document, list):
            index = int(step) if step.isascii() and step.isdigit() and len(step) < 10 and str(int(step)) == step else -1
            document = document[index] if 0 <= index < len(document) else MISSING
        else:
            return UNREACHABLE
        if document is MISSING:
            return MISSING
    return document


def test_of(operator: str, value: Any, effect: Effect) -> _Test:
    """Return the compiled test of a condition. All operators but `exists` test only arguments that exist."""
    return OPERATORS[operator].make(value, effect)


def _is_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _one_of(values: list[Any], _effect: Effect) -> _Test:
    choices = frozenset(canonical(value) for value in values)
    return lambda argument: None if argument.canonical is None else argument.canonical in choices


def _pattern(make: Callable[[Any, Effect], globs.Test]) -> Callable[[Any, Effect], _Test]:
    def make_test(value: Any, effect: Effect) -> _Test:
        matches = make(value, effect)
        return lambda argument: matches(argument.value) if isinstance(argument.value, str) else None

    return make_test


def _path_glob(value: str, effect: Effect) -> _Test:
    pattern = globs.path_pattern(value)
    if effect == "allow":
        fits = globs.path_glob(pattern)
        return lambda argument: None if argument.path is None else fits(argument.path)
    # A pattern of a folder includes its contents. A pattern without a slash matches that name anywhere. A leading slash may stand
    # for the root of the disk or of the workdir: both match.
    bare = pattern.lstrip("/").removesuffix("/**")
    tests = [globs.path_glob(f"{folder}{bare}/**") for folder in ([""] if "/" in bare or pattern != bare else ["", "**/"])]

    def may_be_refused(argument: Argument) -> bool | None:
        paths = argument.possible_paths
        return None if paths is None else any(matches(path) for path in paths for matches in tests)

    return may_be_refused


def _compare(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Effect], _Test]:
    return lambda limit, _effect: lambda argument: holds(argument.value, limit) if _is_number(argument.value) else None


def _length(holds: Callable[[int, int], bool]) -> Callable[[Any, Effect], _Test]:
    def make_test(limit: int, _effect: Effect) -> _Test:
        return lambda argument: holds(len(argument.value), limit) if isinstance(argument.value, (str, list, dict)) else None

    return make_test


def _destroys(value: bool, _effect: Effect) -> _Test:
    return lambda argument: None if argument.destroys is None else argument.destroys == value


def _exists(should_exist: bool, _effect: Effect) -> _Test:
    return lambda argument: bool(argument.exists) == should_exist


def _json(value: Any) -> str | None:
    try:
        return "shorter" if len(canonical(value)) > MAX_TEXT * 10 else None
    except (ValueError, RecursionError):
        return "a value that JSON can express exactly"


def _choices(value: Any) -> str | None:
    if not isinstance(value, list) or not value or len(value) > MAX_CHOICES:
        return f"a list of 1 to {MAX_CHOICES} values"
    return _json(value)


def _text(value: Any, limit: int = MAX_TEXT) -> str | None:
    return None if isinstance(value, str) and 0 < len(value) <= limit else f"a text of 1 to {limit} characters"


def _expression(value: Any) -> str | None:
    if requirement := _text(value, MAX_REGEX):
        return requirement
    try:
        globs.regex(value, whole=True)
        globs.regex(value, whole=False)
    except ValueError as error:
        return f"a regular expression: {error}"
    return None


def _paths(value: Any) -> str | None:
    if requirement := _text(value):
        return requirement
    try:
        globs.path_pattern(value)
    except ValueError as error:
        return f"a pattern of paths: {error}"
    return None


def _number(value: Any) -> str | None:
    return None if _is_number(value) else "a number"


def _count(value: Any) -> str | None:
    return None if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else "a whole number from 0"


def _flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else "true or false"


OPERATORS: dict[str, Operator] = {
    "equals": Operator(_json, lambda value, effect: _one_of([value], effect), "is {}"),
    "one_of": Operator(_choices, _one_of, "is one of {}"),
    "glob": Operator(_text, _pattern(lambda value, _effect: globs.text_glob(value)), "fits {}"),
    "path_glob": Operator(_paths, _path_glob, "is a path that fits {}"),
    "regex": Operator(
        _expression, _pattern(lambda value, effect: globs.regex(value, whole=effect == "allow")), "fits the expression {}"
    ),
    "gt": Operator(_number, _compare(lambda a, b: a > b), "is above {}"),
    "gte": Operator(_number, _compare(lambda a, b: a >= b), "is at least {}"),
    "lt": Operator(_number, _compare(lambda a, b: a < b), "is below {}"),
    "lte": Operator(_number, _compare(lambda a, b: a <= b), "is at most {}"),
    "min_length": Operator(_count, _length(lambda a, b: a >= b), "has a length of at least {}"),
    "max_length": Operator(_count, _length(lambda a, b: a <= b), "has a length of at most {}"),
    "exists": Operator(_flag, _exists, "is given"),
    "destroys": Operator(_flag, _destroys, "is a line with a command that takes something away: {}"),
}
"""Every operator but `command`, which tests a whole line and is in `judging`.

`regex` must match the whole value to allow, and any part of it to deny or ask. `equals` and `one_of` compare JSON values: 1 equals
1.0 and differs from true.
"""
