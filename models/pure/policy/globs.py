"""Compiles patterns of tool names, texts, paths and commands. All match in linear time."""

import functools
import itertools
import re
from collections.abc import Callable

from models.pure.regex import InvalidPattern, compile_re2, escape

Test = Callable[[str], bool | None]
"""True if the text matches; None for a text with lone surrogates, which RE2 cannot read."""

_MEMORY = 1 << 20
"""Bytes that one compiled expression may take."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def text_glob(pattern: str) -> Test:
    """Return a test of a whole text: `*` matches any characters, `?` one. No other character is special."""
    return starred(pattern, star="*", one="?")


@functools.lru_cache(maxsize=4096)
def starred(pattern: str, *, star: str, one: str = "") -> Test:
    """Return a test of a whole text, for a pattern with these wildcards. A regular expression would take three times as long."""
    if one and one in pattern:
        wildcards = {star: "(?s:.*)", one: "(?s:.)"}
        return regex("".join(wildcards.get(sign) or escape(sign) for sign in pattern), whole=True)
    beginning, *pieces = pattern.split(star)
    if not pieces:
        return pattern.__eq__
    return lambda text: text.startswith(beginning) and _in_order(pieces, text, len(beginning))


def _in_order(pieces: list[str], text: str, at: int) -> bool:
    """True if the text from `at` on consists of these pieces in order, with any text before each of them."""
    for piece in pieces[:-1]:
        at = text.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return len(text) - len(pieces[-1]) >= at and text.endswith(pieces[-1])


@functools.lru_cache(maxsize=4096)
def regex(pattern: str, *, whole: bool) -> Test:
    """Return a test by RE2 of the whole text, or of any part (where `.` includes newlines). Raises ValueError."""
    try:
        expression = compile_re2(pattern, max_bytes=_MEMORY, dot_newline=not whole, captures=False)
    except InvalidPattern as error:
        raise ValueError(f"{error}; use RE2's syntax, which has no look-around and no back-references") from None
    match = expression.fullmatch if whole else expression.search

    def test(text: str) -> bool | None:
        try:
            return match(text) is not None
        except UnicodeEncodeError:
            return None

    return test


@functools.lru_cache(maxsize=4096)
def path_glob(pattern: str) -> Test:
    """Return a test of a normalised path: `*` and `?` stay within one name, `**` crosses folders; `a/**` is `a` and its
    contents."""
    expression = ""
    names = [name for name, following in itertools.groupby(pattern.split("/")) for _ in ([1] if name == "**" else following)]
    for n, name in enumerate(names):
        last = n == len(names) - 1
        if name == "**":
            # Includes the slash before it, so that `**` can match nothing.
            expression = (
                expression.removesuffix("/") + ("(?:/(?s:.*))?" if n else "(?s:.*)") if last else expression + "(?:(?s:.*)/)?"
            )
        else:
            parts = [part for part in re.split(r"([*?])", name) if part]
            expression += "".join({"*": "[^/]*", "?": "[^/]"}.get(part) or escape(part) for part in parts) + ("" if last else "/")
    prefix = re.split(r"[*?]", pattern)[0].removesuffix("/")
    rooted = pattern.startswith("/")
    whole = regex(expression, whole=True)
    return lambda path: path.startswith(prefix) and path.startswith("/") == rooted and bool(whole(path))


def path_pattern(text: str) -> str:
    """Return a pattern of paths in canonical spelling. Raises ValueError."""
    if "\\" in text or _CONTROL.search(text) or text.startswith("~"):
        raise ValueError(f"the path pattern {text!r} must not have `\\`, `~` or control characters; write it with `/`")
    if ".." in text.split("/"):
        raise ValueError(f"the path pattern {text!r} must not have `..`; write where it leads")
    names = [name for name in text.split("/") if name not in {"", "."}]
    if any("**" in name and name != "**" for name in names):
        raise ValueError(f"in the path pattern {text!r}, `**` must be a whole name between slashes")
    if not names:
        return "/**" if text.startswith("/") else "**"
    return "/" * text.startswith("/") + "/".join(names) + "/**" * text.endswith("/")


def encodable(text: str) -> bool:
    """True if UTF-8 can encode the text."""
    return text.isprintable() or not any("\ud800" <= sign <= "\udfff" for sign in text)


def certain_path(text: str, workdir: str | None) -> str | None:
    """Return the path's one certain place, relative to the workdir if inside; None if it is uncertain."""
    if not text or "\\" in text or text.startswith("~") or _CONTROL.search(text) or ".." in text.split("/"):
        return None
    path = "/" * text.startswith("/") + "/".join(_names(text))
    inside = workdir and workdir.rstrip("/") + "/"
    if inside and (path + "/").startswith(inside):
        return path[len(inside) :]
    return path


def possible_paths(text: str, workdir: str | None) -> set[str]:
    """Return every possible place of a path, for rules that deny or ask.

    `..` is resolved. A backslash also counts as a slash. Of a path that may lie outside the workdir, every suffix counts as well.
    """
    places: set[str] = set()
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
        places |= {"/".join(_names(spelling)), "/".join(names)}
        if outside:
            places |= {"/".join(names[start:]) for start in range(min(len(names), 100))}
    if workdir and (certain := certain_path(text, workdir)) is not None and not certain.startswith("/"):
        return {certain}
    return places


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in {"", "."}]
