"""Tests of a call's arguments. Each says yes, no, or that it cannot judge what it found (None)."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jsonpointer import JsonPointer, JsonPointerException

from models.pure.canonical import canonical
from models.pure.policy import globs
from models.pure.policy.rules import MAX_CHOICES, MAX_REGEX, MAX_TEXT, Effect

MISSING = object()
"""What is not there."""
UNREACHABLE = object()
"""What would be inside of something that holds nothing: a pointer to `/a/b` where `a` is a number."""

_PATH = 4_096
"""Characters of a path that is looked at."""

_Test = Callable[["Found"], bool | None]


class Found:
    """What a pointer leads to, in the forms that tests need, each made once."""

    __slots__ = ("_canonical", "_paths", "there", "value", "workdir")

    def __init__(self, value: Any, workdir: str | None) -> None:
        self.value = value
        self.there: bool | None = None if value is UNREACHABLE else value is not MISSING
        """None if nobody can say."""
        self.workdir = workdir
        self._canonical: bytes | None = None
        self._paths: tuple[str | None, set[str] | None] | None = None

    @property
    def canonical(self) -> bytes:
        """The value's one spelling. Raises ValueError, RecursionError."""
        if self._canonical is None:
            self._canonical = canonical(self.value)
        return self._canonical

    def paths(self) -> tuple[str | None, set[str] | None]:
        """Of a path: where it surely is, and where it may be; None for what nobody can say."""
        if self._paths is None:
            self._paths = (None, None)
            if isinstance(self.value, str) and len(self.value) <= _PATH and globs.speakable(self.value):
                self._paths = (globs.surely_path(self.value, self.workdir), globs.possible_paths(self.value, self.workdir))
        return self._paths


@dataclass(frozen=True)
class Operator:
    """A word of the rules' language."""

    check: Callable[[Any], str | None]
    """What is wrong with the rule's own value, as it continues "must be "."""
    make: Callable[[Any, Effect], _Test]
    """The test, for a rule of that effect."""
    says: str
    """For people, with `{}` for the value."""


def pointer(path: str) -> tuple[str, ...]:
    """The steps of a JSON Pointer. Raises ValueError."""
    try:
        return tuple(JsonPointer(path).parts)
    except JsonPointerException:
        raise ValueError(f"{path!r} is no JSON Pointer; write it as /amount or /items/0") from None


def look_up(document: Any, steps: tuple[str, ...]) -> Any:
    """The value there, MISSING or UNREACHABLE."""
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
    """The compiled test of a condition; but for `exists`, of what is there."""
    return OPERATORS[operator].make(value, effect)


def _is_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _equals(value: Any, effect: Effect) -> _Test:
    return _one_of([value], effect)


def _one_of(values: list[Any], _effect: Effect) -> _Test:
    wanted = frozenset(canonical(value) for value in values)

    def test(found: Found) -> bool | None:
        try:
            return found.canonical in wanted
        except (ValueError, RecursionError):
            return None

    return test


def _pattern(make: Callable[[Any, Effect], globs.Test]) -> Callable[[Any, Effect], _Test]:
    def made(value: Any, effect: Effect) -> _Test:
        matches = make(value, effect)

        def test(found: Found) -> bool | None:
            if not isinstance(found.value, str):
                return None
            try:
                return matches(found.value)
            except globs.Unjudged:
                return None

        return test

    return made


def _path_glob(value: str, effect: Effect) -> _Test:
    pattern = globs.path_pattern(value)
    if effect == "allow":
        allowed = globs.path_glob(pattern)
        return lambda found: _surely(allowed, found)
    # What is in a folder is refused with it. No slash: such a name anywhere. A slash in front may mean the root of the disk
    # or of the workdir: both.
    bare = pattern.lstrip("/").removesuffix("/**")
    refused = [globs.path_glob(f"{folder}{bare}/**") for folder in ([""] if "/" in bare or pattern != bare else ["", "**/"])]
    return lambda found: _possibly(refused, found)


def _surely(matches: globs.Test, found: Found) -> bool | None:
    path = found.paths()[0]
    return None if path is None else matches(path)


def _possibly(tests: list[globs.Test], found: Found) -> bool | None:
    paths = found.paths()[1]
    return None if paths is None else any(matches(path) for path in paths for matches in tests)


def _compare(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Effect], _Test]:
    return lambda limit, _effect: lambda found: holds(found.value, limit) if _is_number(found.value) else None


def _length(holds: Callable[[int, int], bool]) -> Callable[[Any, Effect], _Test]:
    def made(limit: int, _effect: Effect) -> _Test:
        return lambda found: holds(len(found.value), limit) if isinstance(found.value, (str, list, dict)) else None

    return made


def _exists(wanted: bool, _effect: Effect) -> _Test:
    return lambda found: bool(found.there) == wanted


def _json(value: Any) -> str | None:
    try:
        return "shorter" if len(canonical(value)) > MAX_TEXT * 10 else None
    except (ValueError, RecursionError):
        return "a value that JSON can say exactly"


def _choices(value: Any) -> str | None:
    if not isinstance(value, list) or not value or len(value) > MAX_CHOICES:
        return f"a list of 1 to {MAX_CHOICES} values"
    return _json(value)


def _text(value: Any, limit: int = MAX_TEXT) -> str | None:
    return None if isinstance(value, str) and 0 < len(value) <= limit else f"a text of 1 to {limit} characters"


def _expression(value: Any) -> str | None:
    if wrong := _text(value, MAX_REGEX):
        return wrong
    try:
        globs.regex(value, whole=True)
        globs.regex(value, whole=False)
    except ValueError as error:
        return f"a regular expression: {error}"
    return None


def _paths(value: Any) -> str | None:
    if wrong := _text(value):
        return wrong
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
    "equals": Operator(_json, _equals, "is {}"),
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
}
"""Every test but `command`, which looks at a whole line and is in `deciding`.

`regex` must fit all of a value to allow, and is sought anywhere in it to deny or ask. `equals` and `one_of` compare as
JSON does: 1 is 1.0 and is not true.
"""
