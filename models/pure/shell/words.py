"""Words of a command line: the text of each after bash removes its quotes, or a doubt."""

import re

from tree_sitter import Node

MARK = "\x01"
"""Begins a word that bash expands (`src/*.py`, `~/x`). The word as written, without its quotes, follows the mark.

A marked word of a certain line stands for one or more words, none of which begins with `-`, so none is an option. Nothing else is
known about them. A check that needs one certain word (a subcommand, a script, the first argument) must refuse a marked one.
"""

_SPECIAL = frozenset("|&;()<>$`\"' \t\n")
_GLOB = frozenset("*?[")
_ESCAPED_IN_STRING = re.compile(r'\\([$`"\\\n])')
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)


class Doubt(Exception):
    """The line cannot be parsed with certainty. The text tells people why."""


class Torn(Doubt):
    """The syntax tree itself is unreliable: a command may be hidden in another's words."""


def literal(node: Node, source: bytes) -> str:
    """Return the word that bash reads at this node, marked if bash expands it. Raises Doubt."""
    pieces = [(text, unquoted) for text, unquoted in _pieces(node, source) if text]
    if any(unquoted and re.search(r"[=:]~", text) for text, unquoted in pieces):
        raise Doubt("it has a `~` in the middle of a word")
    value = "".join(_bare(text) if unquoted else text for text, unquoted in pieces)
    begin, begin_unquoted = pieces[0] if pieces else ("", False)
    tilde = begin_unquoted and begin.startswith("~")
    if tilde and value[1:2] not in {"", "/"}:
        raise Doubt("its `~` may stand for any folder; write the path")
    if not any(unquoted and _GLOB & set(_unescaped(text)) for text, unquoted in pieces):
        return MARK + value if tilde else value
    if value.startswith("-") or (begin_unquoted and begin[0] in _GLOB):
        raise Doubt("a word of it may become an option that begins with `-`; write `./*` for `*`, or quote the word")
    return MARK + value


def fixed_beginning(word: str) -> str | None:
    """Return the common beginning of all words for which a marked word may stand; None if the word is not marked."""
    return re.split(r"[*?\[~]", word[1:], maxsplit=1)[0] if word.startswith(MARK) else None


def may_begin(word: str, text: str) -> bool:
    """True if the word, or any word for which a marked word may stand, may begin with the text."""
    beginning = fixed_beginning(word)
    return word.startswith(text) if beginning is None else beginning.startswith(text) or text.startswith(beginning)


def text_of(node: Node, source: bytes) -> str:
    """Return the node's text."""
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def guess(text: str) -> str:
    """Return the probable text of a word: without quotes and backslashes, `$'..'` decoded. Only for rules that deny or ask."""
    text = _ANSI.sub(lambda match: _ESCAPE.sub(_decode_escape, match[1]), text.replace("\\\n", ""))
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL).replace('"', "").replace("'", "")


def _decode_escape(match: re.Match[str]) -> str:
    code = int(match[4], 8) if match[4] else int(match[1] or match[2] or match[3] or "0", 16)
    return match[5] or (chr(code) if code <= 0x10FFFF else "")


def _pieces(node: Node, source: bytes) -> list[tuple[str, bool]]:
    """Return the texts of a word, each with True if it is outside quotes. Unquoted texts keep their backslashes."""
    text = text_of(node, source)
    if node.type in {"word", "number"}:
        if node.child_count:
            raise Doubt(f"`{text[:40]}` is computed when it runs")
        return [(_plain(text), True)]
    if node.type == "raw_string":
        if len(text) < 2 or text[0] != "'" or text[-1] != "'" or "'" in text[1:-1]:
            raise Torn("its quotes are not those of bash")
        return [(text[1:-1], False)]
    if node.type == "string":
        return [(_string(text), False)]
    if node.type == "concatenation":
        end = node.start_byte
        for child in node.children:
            if child.start_byte != end:
                raise Torn("a word of it is broken")
            end = child.end_byte
        return [piece for child in node.children for piece in _pieces(child, source)]
    raise Doubt(f"`{text[:40]}` is computed when it runs")


def _plain(text: str) -> str:
    bare = _unescaped(text)
    if _SPECIAL & set(bare) or bare.endswith("\\"):
        raise Torn("it has a sign of the shell where a word should be")
    if "{" in bare or "}" in bare:
        raise Doubt("its braces may stand for several words")
    if "!" in bare:
        raise Doubt("its `!` may recall an earlier command")
    if "#" in bare[:1]:
        raise Doubt("it has a `#` that may begin a comment")
    return text


def _string(text: str) -> str:
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        raise Torn("its quotes are not those of bash")
    inner = text[1:-1]
    bare = re.sub(r"\\.", "", inner, flags=re.DOTALL)
    if '"' in bare or bare.endswith("\\"):
        raise Torn("its quotes are not those of bash")
    if "$" in bare or "`" in bare:
        raise Doubt(f"{text[:40]} is computed when it runs")
    return _ESCAPED_IN_STRING.sub(lambda match: "" if match[1] == "\n" else match[1], inner)


def _unescaped(text: str) -> str:
    return re.sub(r"\\.", "", text, flags=re.DOTALL)


def _bare(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
