"""Walks the syntax tree of a command line: yields every simple command, and checks that bash would parse the line in the same way.

The grammar sometimes misreads valid lines without an error (a newline read as a space). So every byte must be a word, an operator
or a gap that bash reads in the same way, and every node must have one of the kinds below.
"""

import re
from collections.abc import Iterator

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from models.pure.shell.words import MARK, Doubt, Torn, guess, literal, text_of

_BASH = Language(tree_sitter_bash.language())
_NODES = 4_000
_DEPTH = 60
_GAP = re.compile(rb"(?:[ \t]|\\\n)*")
_JOINED = re.compile(rb"(?<![ \t])\\\n")
"""A line that continues on the next without a space. Bash reads one word or sign there, the grammar two."""
_LINES = re.compile(rb"(?:[ \t\n]|\\\n)*")
_SEPARATORS = frozenset({";", "&", "\n"})
_BODIES = frozenset(
    {"program", "subshell", "compound_statement", "do_group", "if_statement", "elif_clause", "else_clause", "while_statement"}
)
_IN_ORDER = frozenset({"program", "list", "negated_command", "redirected_statement"})
_BETWEEN = frozenset({"&&", "||", ";", "\n", "!", "comment"})
"""What stands between commands that run one after the other: neither `|` nor `&`."""
_KEYWORDS = frozenset({"if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "(", ")"})
_CLOSING = frozenset({"fi", "done", "}"})
_WORDS = frozenset({"word", "number", "string", "raw_string", "concatenation"})
_TEXTS = frozenset({"heredoc_body", "herestring_redirect"})


def tree_of(source: bytes) -> Node:
    """Return the root of the syntax tree."""
    return Parser(_BASH).parse(source).root_node


def sure(root: Node, source: bytes) -> list[tuple[str, ...]]:
    """Return every simple command, with its words as bash will read them. Raises Doubt."""
    if root.has_error:
        raise Torn("it is not a command line that bash's grammar knows")
    if root.type != "program" or root.descendant_count > _NODES:
        raise Torn("it is too long to be sure of")
    if _JOINED.search(source):
        raise Torn("a line ends in the middle of a word or of a sign")
    if not _LINES.fullmatch(source, 0, root.start_byte) or not _LINES.fullmatch(source, root.end_byte):
        raise Torn("it has parts that are not commands")
    return list(_body(root, source, 0))


def runs_in_order(root: Node) -> bool:
    """True if the commands of a certain line run one after the other, as they are written, each at most once."""
    todo = [root]
    while todo:
        node = todo.pop()
        if node.type in _IN_ORDER:
            todo.extend(node.children)
        elif node.type != "command" and node.type not in _BETWEEN and not node.type.endswith("redirect"):
            return False
    return True


def probable(root: Node, source: bytes) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return every probable simple command, also in substitutions, functions and heredocs, and the texts of their input."""
    commands: list[tuple[str, ...]] = []
    texts: list[str] = []
    todo = [root]
    node_count = 0
    while todo and node_count < _NODES:
        node = todo.pop()
        node_count += 1
        if node.type == "command":
            words = [child for child in node.children if child.is_named and _is_word(child)] + _after_redirects(node)
            commands.append(tuple(part for word in words for part in _braces(guess(text_of(word, source)))))
            commands.append(tuple(_with_inner_quotes(word, source) for word in words))
        elif node.type in _TEXTS:
            texts.append(text_of(node, source))
        todo.extend(reversed(node.children))
    return [words for words in dict.fromkeys(commands) if words], texts


def _with_inner_quotes(word: Node, source: bytes) -> str:
    """Return the word with the quotes that stand within its quotes, as in `sh -c "git -C '/a b' push"`."""
    try:
        value = literal(word, source)
    except Doubt:
        value = MARK
    return guess(text_of(word, source)) if value.startswith(MARK) else value


def _is_word(node: Node) -> bool:
    return not node.type.endswith("redirect") and node.type not in {"variable_assignment", "comment"}


def _after_redirects(command: Node) -> list[Node]:
    around = command.parent.children if command.parent and command.parent.type == "redirected_statement" else []
    redirects = [child for child in [*command.children, *around] if child.type == "file_redirect"]
    return [word for redirect in redirects for word in _targets(redirect)[1:]]


def _braces(word: str) -> list[str]:
    match = re.fullmatch(r"\{([^{}]*,[^{}]*)\}", word)
    return match[1].split(",") if match else [word]


def _statement(node: Node, source: bytes, depth: int) -> Iterator[tuple[str, ...]]:
    if depth > _DEPTH:
        raise Torn("it is nested too deeply to be sure of")
    if node.type == "command":
        yield _command(node, source)
    elif node.type in {"list", "pipeline", "negated_command"}:
        yield from _sequence(node, source, depth)
    elif node.type == "redirected_statement":
        yield from _redirected(node, source, depth)
    elif node.type in _BODIES - {"program"}:
        yield from _body(node, source, depth)
    else:
        raise Doubt(f"it has a {node.type.replace('_', ' ')}")


def _body(node: Node, source: bytes, depth: int) -> Iterator[tuple[str, ...]]:
    """Yield the commands of consecutive statements. A separator must stand between every two."""
    end, separated = node.start_byte, True
    for child in node.children:
        gap = source[end : child.start_byte]
        if not _LINES.fullmatch(gap):
            raise Torn("it has parts that are not commands")
        separated |= b"\n" in gap.replace(b"\\\n", b"")
        if child.type == "comment":
            _comment(child, source, gap)
        elif child.type in _SEPARATORS:
            separated = True
        elif child.type in _KEYWORDS and not child.is_named:
            _keyword(child, source, separated)
            separated = child.type not in {"fi", "done", "}", ")"}
        else:
            if not separated:
                raise Torn("two commands of it have nothing between them")
            yield from _statement(child, source, depth + 1)
            # A clause includes its own separator, before the next keyword.
            separated = child.type in {"do_group", "elif_clause", "else_clause"}
        end = child.end_byte
    if source[end : node.end_byte].strip(b" \t\n"):
        raise Torn("it has parts that are not commands")


def _keyword(node: Node, source: bytes, separated: bool) -> None:
    if node.type in {"(", ")"}:
        if node.type == "(" and source[node.end_byte : node.end_byte + 1] == b"(":
            raise Doubt("its `((` may be arithmetic")
        return
    if not separated:
        raise Doubt(f"its `{node.type}` has no separator before it")
    _reserved(node, source)


def _reserved(node: Node, source: bytes) -> None:
    """Raise Torn unless the word ends here. The grammar ends a reserved word at a quote, but bash reads `if"x"` as one name."""
    after = source[node.end_byte : node.end_byte + 1]
    if after not in {b" ", b"\t", b"\n"} and not (node.type in _CLOSING and after in {b"", b";", b"&", b"|", b")"}):
        raise Torn(f"its `{node.type}` may be the beginning of a longer word")


def _comment(node: Node, source: bytes, gap: bytes) -> None:
    text = text_of(node, source)
    before = source[node.start_byte - 1 : node.start_byte]
    after = source[node.end_byte : node.end_byte + 1]
    if (not gap and before not in {b"", b";", b"\n"}) or "\n" in text or after not in {b"", b"\n"}:
        raise Doubt("it has a `#` that may not begin a comment")


def _sequence(node: Node, source: bytes, depth: int) -> Iterator[tuple[str, ...]]:
    end, operator = node.start_byte, True
    for child in node.children:
        gap = source[end : child.start_byte]
        if not child.is_named:
            if child.type not in {"&&", "||", "|", "|&", "!"} or not _GAP.fullmatch(gap):
                raise Doubt(f"it has a `{child.type}` in an unusual place")
            if child.type == "!":
                _reserved(child, source)
            operator = True
        else:
            if not operator or not _LINES.fullmatch(gap):
                raise Torn("two commands of it have nothing between them")
            yield from _statement(child, source, depth + 1)
            operator = False
        end = child.end_byte


def _redirected(node: Node, source: bytes, depth: int) -> Iterator[tuple[str, ...]]:
    end = node.start_byte
    for index, child in enumerate(node.children):
        gap = source[end : child.start_byte]
        if not _GAP.fullmatch(gap) or (index and not gap):
            raise Torn("it has parts that are not commands")
        if child.type == "file_redirect":
            _redirect(child, source)
        elif index:
            raise Doubt(f"it has a {child.type.replace('_', ' ')}")
        else:
            yield from _statement(child, source, depth + 1)
        end = child.end_byte


def _redirect(node: Node, source: bytes) -> None:
    """Accept redirections to /dev/null, to another stream, and from a file. Raises Doubt for all others."""
    text = text_of(node, source)
    if re.fullmatch(r"(\d?>>?|&>>?)[ \t]*/dev/null|\d?[<>]&[ \t]*\d|\d?<[ \t]*/dev/null", text):
        return
    if re.match(r"\d?<[ \t]*[^<&(]", text) and len(_targets(node)) == 1:
        if not re.match(rf"/dev|//|{MARK}|.*\.\.", literal(_targets(node)[0], source), re.DOTALL):
            return
        raise Doubt("it reads from a place that may not be a file")
    raise Doubt("it writes to a file")


def _targets(redirect: Node) -> list[Node]:
    """Return the redirection's target and the words of the command after it, which the grammar attaches to it."""
    return [child for child in redirect.children if child.is_named and child.type != "file_descriptor"]


def _command(node: Node, source: bytes) -> tuple[str, ...]:
    words: list[str] = []
    end = node.start_byte
    for child in node.children:
        gap = source[end : child.start_byte]
        if not _GAP.fullmatch(gap) or (end > node.start_byte and not gap):
            raise Torn("its words are not where bash would see them")
        end = child.end_byte
        if child.type == "command_name" and child.child_count == 1 and child.children[0].type in _WORDS and not words:
            words.append(_name(child.children[0], source))
        elif child.type in _WORDS and words:
            words.append(literal(child, source))
        elif child.type == "variable_assignment":
            raise Doubt("it sets a variable")
        elif child.type.endswith("redirect"):
            raise Doubt("it has a redirection in an unusual place")
        else:
            raise Doubt(f"`{text_of(child, source)[:40]}` is computed when it runs")
    if not words:
        raise Doubt("it has a command without a name")
    return tuple(words)


def _name(node: Node, source: bytes) -> str:
    name = literal(node, source)
    if not name or name.startswith(MARK) or "=" in name or re.search(r"\s", name):
        raise Doubt("the name of a command is not plain")
    return name
