"""Words of a command line: what each surely is once bash has taken its quotes away, or else the doubt."""

import re

from tree_sitter import Node

MARK = "\x01"
"""Begins a word that bash replaces by names of files (`*.py`, `~/x`): a pattern's `*` covers it, and nothing else does."""

_SPECIAL = frozenset("|&;()<>$`\"' \t\n")
_GLOB = frozenset("*?[]")
_ESCAPED_IN_STRING = re.compile(r'\\([$`"\\\n])')
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)


class Doubt(Exception):
    """The line cannot be read surely; the text says why, for people."""


class Torn(Doubt):
    """The tree itself is not to be believed: a command may be hidden in another's words."""


def literal(node: Node, source: bytes) -> str:
    """The word that bash makes of this node, marked if it stands for names of files. Raises Doubt."""
    pieces = _pieces(node, source)
    value = "".join(text for text, _ in pieces)
    first = next((text for text, _ in pieces if text), "")
    tilde = first.startswith("~") and pieces[0][1]
    marked = any(quoteless and _GLOB & set(_unescaped(text)) for text, quoteless in pieces)
    if any(quoteless and re.search(r"[=:]~", text) for text, quoteless in pieces):
        raise Doubt("it has a `~` in the middle of a word")
    return MARK + _bare(value) if tilde or marked else "".join(_bare(t) if q else t for t, q in pieces)


def text_of(node: Node, source: bytes) -> str:
    """The node's own text."""
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def guess(text: str) -> str:
    """What a word probably is: quotes and backslashes gone, `$'..'` spelled out. For rules that say no; never for an allow."""
    text = _ANSI.sub(lambda found: _ESCAPE.sub(_spelled, found[1]), text.replace("\\\n", ""))
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL).replace('"', "").replace("'", "")


def _spelled(found: re.Match[str]) -> str:
    code = int(found[4], 8) if found[4] else int(found[1] or found[2] or found[3] or "0", 16)
    return found[5] or (chr(code) if code <= 0x10FFFF else "")


def _pieces(node: Node, source: bytes) -> list[tuple[str, bool]]:
    """The texts of a word and whether each stood outside quotes; those keep their backslashes."""
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
    return _ESCAPED_IN_STRING.sub(lambda found: "" if found[1] == "\n" else found[1], inner)


def _unescaped(text: str) -> str:
    return re.sub(r"\\.", "", text, flags=re.DOTALL)


def _bare(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
