"""Parses rule texts into matches, and renders them.

    bash                      every call of a tool; `mcp__github__*` is every tool of an MCP server
    bash(git status *)        commands; ` *` at the end also matches no further words, `:*` is the same; an unquoted `*` matches
                              any text within one simple command; quotes and backslashes make it literal
    read(src/**)              paths of the file tools, from the workdir; `*` stays in a folder, `**` does not
    shell:cmd=ls*:cwd=src     arguments by name: `cmd` and `command` are patterns of commands, names of files are patterns
                              of paths, where a `*` at the end crosses folders, and all others are texts

`Bash`, `Read`, `Write`, `Edit`, `Glob` and `Grep` are the built-in tools with these names in lower case. `bash(*)` allows every
command line that is certain, and denies or asks for all; `read(*)` is `read`.
"""

import re
from dataclasses import replace

from models.pure.policy.commands import as_read, compile_pattern
from models.pure.policy.globs import path_pattern
from models.pure.policy.rules import COMMAND_PATHS, FILE_PATHS, MAX_CONDITIONS, MAX_TEXT, Condition, Match, Rule

_CAPITALS = {name.capitalize(): name for name in ("bash", *FILE_PATHS)}
_TOOL = re.compile(r"[A-Za-z0-9_.*?-]{1,200}")
_ARGUMENT = re.compile(r":(?=[A-Za-z_][A-Za-z0-9_.-]*=)")
_FILES = frozenset({"path", "file_path", "file", "filename", "dir", "directory", "folder", "cwd", "working_directory"})


def match_of(text: str) -> Match:
    """Return the match of a rule text. Raises ValueError, which names the fault and the remedy."""
    stripped = text.strip()
    if not stripped:
        raise ValueError("is empty; write a tool's name, or a text such as bash(git status *)")
    if len(stripped) > MAX_TEXT:
        raise ValueError(f"has {len(stripped)} characters; use at most {MAX_TEXT}")
    name, parenthesis, rest = stripped.partition("(")
    if parenthesis and not _ARGUMENT.search(name):
        if not rest.endswith(")"):
            raise ValueError(f"{stripped!r} has an unbalanced parenthesis; close it at the end, as in bash(ls *)")
        return _specified(_ours(name), rest[:-1])
    tool, *arguments = _ARGUMENT.split(stripped)
    if len(arguments) > MAX_CONDITIONS:
        raise ValueError(f"has {len(arguments)} arguments; use at most {MAX_CONDITIONS}")
    return Match(_ours(tool), tuple(_argument(argument) for argument in arguments))


def tool_of(name: str, *, servers: bool = True) -> str:
    """Return a tool's name or glob in canonical spelling. The name of an MCP server stands for all its tools. Raises ValueError."""
    tool = name.strip()
    if re.fullmatch(r"mcp:[^:]+(:[^:]+)?", tool):
        tool = tool.replace(":", "__")
    if not _TOOL.fullmatch(tool):
        if ")" in tool:
            raise ValueError(f"{tool!r} has an unbalanced parenthesis; open it after the tool's name, as in bash(ls *)")
        raise ValueError(
            f"{tool!r} is not a tool's name; use letters, digits, `_`, `-`, `.`, with `*` for any and `?` for one of them"
        )
    if servers and re.fullmatch(r"mcp__[^_*?]+(_[^_*?]+)*", tool):
        tool += "__*"
    return tool


def text_of(match: Match) -> str | None:
    """Return the text of a match, or None if no text expresses it. `match_of` parses it to an equal match."""
    text = _text_of(match)
    try:
        return text if text and match_of(text) == match else None
    except ValueError:
        return None


def grant(tool: str, match: str, input_sha256: str, *, id: str, reason: str | None = None) -> Rule:  # noqa: A002 - the row's own word
    """Return the rule of a grant for `tool`. `match` is `tool`, `exact`, or a rule text about the same tool. Raises ValueError."""
    if match == "tool":
        granted_match = Match(tool)
    elif match == "exact":
        granted_match = Match(tool, input_sha256=input_sha256)
    else:
        granted_match = match_of(match)
        if granted_match.tool != tool:
            raise ValueError(
                f"match: {match!r} is about {granted_match.tool}, and the call is one of {tool}; write a match for {tool}"
            )
    return Rule("allow", granted_match, reason=reason, source="grant", id=id)


def grant_of_part(tool: str, match: str, *, id: str) -> Rule:  # noqa: A002 - the row's own word
    """Return the rule of a grant for a part of a call of `tool`. `match` is a rule text about the tool. Raises ValueError.

    A pattern of commands covers no line with a command that takes something away, whatever its words are.
    """
    rule = grant(tool, match, "", id=id)
    if rule.match.input_sha256 is not None or not rule.match.conditions:
        example = "git status *" if tool == "bash" else "src/**"
        raise ValueError(f"match: {match!r} is about every call; write a pattern such as {tool}({example})")
    commands = [condition for condition in rule.match.conditions if condition.operator == "command"]
    if not commands:
        return rule
    spares = tuple(Condition(condition.path, "destroys", value=False) for condition in commands)
    return replace(rule, match=replace(rule.match, conditions=rule.match.conditions + spares))


def _ours(name: str) -> str:
    tool = tool_of(name)
    return _CAPITALS.get(tool, tool)


def _specified(tool: str, text: str) -> Match:
    if tool in FILE_PATHS:
        pattern = text.strip()
        if not pattern:
            raise ValueError("has nothing in its parentheses; write a pattern, or only the tool's name to match every call")
        return Match(tool, () if pattern == "*" else (Condition(FILE_PATHS[tool], "path_glob", path_pattern(pattern)),))
    if tool != "bash":
        raise ValueError(
            f"{tool} takes no pattern in parentheses, as bash and the file tools do; name the argument: {tool}:name=value*, "
            f'or write {{"tool": "{tool}", "input": [{{"path": "/name", "glob": "value*"}}]}}'
        )
    return Match(tool, (Condition("/command", "command", command_pattern(text)),))


def command_pattern(text: str) -> str:
    """Return a pattern of commands in canonical spelling. Raises ValueError."""
    pattern = text.strip(" ")
    if pattern.endswith(":*"):
        pattern = (pattern[:-2] + " *").strip(" ")
    compile_pattern(pattern)
    return as_read(pattern)


def _argument(text: str) -> Condition:
    name, _, pattern = text.partition("=")
    if not pattern:
        raise ValueError(f"{name}= has no value; write what it must be, with `*` for anything")
    path = "/" + name
    if path in COMMAND_PATHS:
        return Condition(path, "command", command_pattern(pattern))
    if name in _FILES:
        wide = pattern + "*" if pattern.endswith("/*") else pattern
        return Condition(path, "path_glob", path_pattern(wide))
    return Condition(path, "glob", pattern)


def _text_of(match: Match) -> str | None:
    if match.input_sha256:
        return None
    if not match.conditions:
        return match.tool
    only = match.conditions[0]
    if len(match.conditions) == 1 and (match.tool, only.path, only.operator) in _WITH_PARENTHESES:
        return f"{match.tool}({only.value})"
    return "".join([match.tool, *(f":{c.path[1:]}={c.value}" for c in match.conditions)])


_WITH_PARENTHESES = {("bash", "/command", "command"), *((tool, path, "path_glob") for tool, path in FILE_PATHS.items())}
