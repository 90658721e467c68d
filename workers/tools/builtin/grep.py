"""`grep`: lines that match a regular expression."""

import contextlib
import fcntl
import marshal
import os
import stat
from pathlib import Path
from typing import Any

from workers.tools import paths
from workers.tools.builtin import searcher
from workers.tools.builtin.searcher import ORDER_FD
from workers.tools.errors import LAPSED, ToolError
from workers.tools.kinds import Tool, ToolContext, ToolResult, text_result
from workers.tools.sandbox.interpreter import compiled, environment, python
from workers.tools.sandbox.leash import Command, run_kept

_SEARCHER = compiled(searcher.__file__)
_LIMITS = {"RLIMIT_CORE": 0, "RLIMIT_AS": 1 << 30}
"""Memory too: a pattern of nested counts takes gigabytes to compile."""


def _grep(context: ToolContext, fields: dict[str, Any]) -> ToolResult:
    with paths.located(context.workdir, fields.get("path") or ".", context.judged) as place, contextlib.ExitStack() as stack:
        folder = stat.S_ISDIR(place.kind() or 0)
        found = paths.open_folder(place) if folder else paths.open_file(place)
        stack.callback(os.close, found)
        # Above the numbers at which the keeper puts things.
        start = fcntl.fcntl(found, fcntl.F_DUPFD_CLOEXEC, 300)
        stack.callback(os.close, start)
        command = Command(
            argv=python(_SEARCHER),
            env=environment(),
            cwd=Path("/"),
            limits=_LIMITS,
            files={ORDER_FD: marshal.dumps((fields["pattern"], place.shown, start))},
            fds=(start,),
        )
        ended = run_kept(command, context.seconds, context.cancelled, context.output)
    texts = context.output.whole()
    if ended.how != "exited":
        why = {"timeout": f"timed out after {context.seconds:g} s", "lapsed": f"ended: {LAPSED}"}.get(ended.how, "cancelled")
        return text_result(*texts.values(), f"{why}; narrow the pattern or the path", is_error=True)
    if ended.code != 0:
        raise ToolError(texts.get("stderr", "").strip() or f"the search failed with code {ended.code}")
    return text_result(texts.get("stdout", "").rstrip("\n") or "no matches")


GREP = Tool(
    name="grep",
    description=(
        "Search the text of files for a regular expression (Python's syntax), line by line. Returns path:line:text for "
        "each match. Binary files, `.git` and `node_modules` are passed over."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "The regular expression to search for."},
            "path": {
                "type": ["string", "null"],
                "description": "The file or directory to search in. Without it the working directory.",
            },
        },
        "required": ["pattern"],
        "additionalProperties": False,
    },
    effect="read",
    idempotent=True,
    seconds=None,
    prompt="Search files for: {pattern}",
    run=_grep,
)
