"""What the six built-in tools take and do, as models and people read it. Their code is in `workers/tools/builtin/`."""

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Declaration:
    """One tool. The fields are those of the same names of the workers' tools."""

    name: str
    description: str
    input_schema: dict[str, Any]
    effect: Literal["read", "write"]


_ALL = (
    Declaration(
        name="bash",
        description=(
            "Run a command in bash. Each call is a new shell that starts in the directory where the last call ended. "
            "Variables, functions and jobs do not outlive a call, and background processes are killed when it ends. "
            "Standard input is empty. Standard output, standard error and the exit code are returned separately, and the directory "
            "where the next call starts."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "command": {"type": ["string", "null"], "description": "The command to run. Required unless restart is set."},
                "restart": {"type": ["boolean", "null"], "description": "Go back to the working directory first."},
                "working_directory": {
                    "type": ["string", "null"],
                    "minLength": 1,
                    "description": (
                        "The directory in which the command starts, from the session's working directory, without `..` or links. "
                        "Default: where the last call ended."
                    ),
                },
                "timeout_ms": {
                    "type": ["integer", "null"],
                    "minimum": 0,
                    "description": "Time limit in milliseconds, if shorter than the tool's own limit.",
                },
            },
            "additionalProperties": False,
        },
        effect="write",
    ),
    Declaration(
        name="read",
        description=(
            "Read a text file in the working directory. Returns its exact text, without line numbers. "
            "Large files must be read in parts with view_range."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "file_path": {
                    "type": "string",
                    "description": "The file to read, relative to the working directory or absolute within it.",
                },
                "view_range": {
                    "type": ["array", "null"],
                    "items": {"type": "integer"},
                    "minItems": 2,
                    "maxItems": 2,
                    "description": "First and last line to return, counted from 1. A last line of 0 or less means "
                    "the end of the file. Default: the whole file.",
                },
            },
            "required": ["file_path"],
            "additionalProperties": False,
        },
        effect="read",
    ),
    Declaration(
        name="write",
        description="Write a file in the working directory: create it and the folders above it, or replace all of it.",
        input_schema={
            "type": "object",
            "properties": {
                "file_path": {
                    "type": "string",
                    "description": "The file to write, relative to the working directory or absolute within it.",
                },
                "content": {"type": "string", "description": "The whole new text of the file."},
            },
            "required": ["file_path", "content"],
            "additionalProperties": False,
        },
        effect="write",
    ),
    Declaration(
        name="edit",
        description=(
            "Replace text in a file in the working directory. old_string must occur exactly once, letter by letter, "
            "unless replace_all is set. The file keeps its line endings."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "file_path": {
                    "type": "string",
                    "description": "The file to edit, relative to the working directory or absolute within it.",
                },
                "old_string": {"type": "string", "description": "The text to replace, exactly as it is in the file."},
                "new_string": {"type": "string", "description": "The text to put in its place."},
                "replace_all": {
                    "type": ["boolean", "null"],
                    "description": "Replace every occurrence instead of the only one.",
                },
            },
            "required": ["file_path", "old_string", "new_string"],
            "additionalProperties": False,
        },
        effect="write",
    ),
    Declaration(
        name="glob",
        description=(
            "List files and directories whose path matches a pattern, newest first. `*` and `?` match within a name, `**` "
            "any number of directories, `{a,b}` alternatives. `.git` is skipped unless the pattern names it."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "For example `**/*.py`; relative to path."},
                "path": {
                    "type": ["string", "null"],
                    "description": "The directory to search in. Default: the working directory.",
                },
            },
            "required": ["pattern"],
            "additionalProperties": False,
        },
        effect="read",
    ),
    Declaration(
        name="grep",
        description=(
            "Search the text of files for a regular expression (RE2 syntax: no look-around, no back-references), line by line. "
            "Returns path:line:text for each match. Binary files, `.git` and `node_modules` are skipped."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "The regular expression to search for."},
                "path": {
                    "type": ["string", "null"],
                    "description": "The file or directory to search in. Default: the working directory.",
                },
            },
            "required": ["pattern"],
            "additionalProperties": False,
        },
        effect="read",
    ),
)
DECLARATIONS = {each.name: each for each in _ALL}
"""By name, in the order of listings."""
