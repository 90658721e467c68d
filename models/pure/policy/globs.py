"""Patterns, compiled: of tool names, texts, paths and commands. All are linear in what they are held against."""

import enum
import fnmatch
import functools
import itertools
import re
from collections.abc import Callable, Sequence

from models.pure.regex import InvalidPattern, compile_re2, escape

Test = Callable[[str], bool]

_MEMORY = 1 << 20
"""Bytes that one compiled expression may take."""
_CLOSED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Sign(enum.Enum):
    """What in a pattern is not meant literally."""

    ANY = "(?s:.*)"
    ONE = "(?s:.)"


class Unjudged(Exception):
    """The text is none that a pattern can be held against."""


@functools.lru_cache(maxsize=1024)
def tool_glob(pattern: str) -> Test:
    """Over a tool's name; `*` and `?` only."""
    if not set("*?") & set(pattern):
        return pattern.__eq__
    compiled = re.compile(fnmatch.translate(pattern.replace("[", "[[]")))
    return lambda name: compiled.match(name) is not None


@functools.lru_cache(maxsize=4096)
def regex(pattern: str, *, whole: bool) -> Test:
    """RE2: all of a text, or anything in it (there `.` is a newline, too). Raises ValueError, and Unjudged when it is used."""
    try:
        compiled = compile_re2(pattern, max_bytes=_MEMORY, dot_newline=not whole, captures=False)
    except InvalidPattern as error:
        raise ValueError(f"{error}; use RE2's syntax, which has no look-around and no back-references") from None
    match = compiled.fullmatch if whole else compiled.search

    def test(text: str) -> bool:
        try:
            return match(text) is not None
        except UnicodeEncodeError:
            raise Unjudged from None

    return test


@functools.lru_cache(maxsize=4096)
def text_glob(pattern: str) -> Test:
    """Over a whole text: `*` is any characters, `?` is one."""
    signs = {"*": Sign.ANY, "?": Sign.ONE}
    return starred([signs.get(part, part) for part in re.split(r"([*?])", pattern) if part])


def starred(parts: Sequence[str | Sign]) -> Test:
    """A test of literal parts and signs over a whole text; what is plain is compared without an expression."""
    first = next((n for n, part in enumerate(parts) if isinstance(part, Sign)), len(parts))
    prefix = "".join(part for part in parts[:first] if isinstance(part, str))
    if first == len(parts):
        return prefix.__eq__
    if parts[first:] == [Sign.ANY]:
        return lambda text: text.startswith(prefix)
    if Sign.ONE in parts:
        return regex("".join(part.value if isinstance(part, Sign) else escape(part) for part in parts), whole=True)
    pieces = [prefix, *_between(parts[first + 1 :])]
    return lambda text: text.startswith(prefix) and _in_order(pieces, text)


def _between(parts: Sequence[str | Sign]) -> list[str]:
    """The literal texts between signs, the first and the last maybe empty."""
    found = [""]
    for part in parts:
        if isinstance(part, Sign):
            found.append("")
        else:
            found[-1] += part
    return found


def _in_order(pieces: list[str], text: str) -> bool:
    """Whether the text is these pieces with anything between them: each as early as it can be, the last at the end."""
    at = len(pieces[0])
    for piece in pieces[1:-1]:
        at = text.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return len(text) - len(pieces[-1]) >= at and text.endswith(pieces[-1])


@functools.lru_cache(maxsize=4096)
def path_glob(pattern: str) -> Test:
    """Over a normalised path: `*` and `?` stay within one name, `**` crosses folders; `a/**` is `a` and all inside it."""
    built = ""
    names = [name for name, following in itertools.groupby(pattern.split("/")) for _ in ([1] if name == "**" else following)]
    for n, name in enumerate(names):
        last = n == len(names) - 1
        if name == "**":
            # With the slash before it, so that it may stand for nothing.
            built = built.removesuffix("/") + ("(?:/(?s:.*))?" if n else "(?s:.*)") if last else built + "(?:(?s:.*)/)?"
        else:
            parts = [part for part in re.split(r"([*?])", name) if part]
            built += "".join({"*": "[^/]*", "?": "[^/]"}.get(part) or escape(part) for part in parts) + ("" if last else "/")
    prefix = re.split(r"[*?]", pattern)[0].removesuffix("/")
    rooted = pattern.startswith("/")
    whole = regex(built, whole=True)
    return lambda path: path.startswith(prefix) and path.startswith("/") == rooted and whole(path)


def path_pattern(text: str) -> str:
    """A pattern of paths in its one spelling. Raises ValueError."""
    if "\\" in text or _CLOSED.search(text) or text.startswith("~"):
        raise ValueError(f"the path pattern {text!r} must not have `\\`, `~` or control characters; write it with `/`")
    if ".." in text.split("/"):
        raise ValueError(f"the path pattern {text!r} must not have `..`; write where it leads")
    names = [name for name in text.split("/") if name not in {"", "."}]
    if any("**" in name and name != "**" for name in names):
        raise ValueError(f"in the path pattern {text!r}, `**` must be a whole name between slashes")
    if not names:
        return "/**" if text.startswith("/") else "**"
    return "/" * text.startswith("/") + "/".join(names) + "/**" * text.endswith("/")


def speakable(text: str) -> bool:
    """Whether UTF-8 can say it."""
    return text.isprintable() or not any("\ud800" <= sign <= "\udfff" for sign in text)


def surely_path(text: str, workdir: str | None) -> str | None:
    """The one place that a path surely is, relative to the workdir where it is inside; None if that is not sure."""
    if not text or "\\" in text or text.startswith("~") or _CLOSED.search(text) or ".." in text.split("/"):
        return None
    path = "/" * text.startswith("/") + "/".join(_names(text))
    inside = workdir and workdir.rstrip("/") + "/"
    if inside and (path + "/").startswith(inside):
        return path[len(inside) :]
    return path


def possible_paths(text: str, workdir: str | None) -> set[str]:
    """Every place that a path may be, as rules that deny and ask see it.

    `..` is resolved, a backslash is also a slash, and a path that is not plainly below the workdir is also each of its ends.
    """
    found: set[str] = set()
    for spelling in {text, text.replace("\\", "/")}:
        names: list[str] = []
        outside = spelling.startswith(("/", "~"))
        for name in _names(spelling):
            if name != "..":
                names.append(name)
            elif names:
                names.pop()
            else:
                outside = True
        found |= {"/".join(_names(spelling)), "/".join(names)}
        if outside:
            found |= {"/".join(names[start:]) for start in range(min(len(names), 100))}
    if workdir and (sure := surely_path(text, workdir)) is not None and not sure.startswith("/"):
        return {sure}
    return found


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in {"", "."}]
