"""`bash`: a new process for each call, in the directory where the last one ended."""

import contextlib
import os
import secrets
from pathlib import Path
from typing import Any

from models.settings import settings
from workers.tools import sandbox
from workers.tools.keeper import DIRECTORY_FD
from workers.tools.kinds import Tool, ToolContext, ToolError, ToolResult, text_result
from workers.tools.leash import Command, Ended, run_kept
from workers.tools.sandbox import shell_ready

__all__ = ["BASH", "shell_ready"]

_COMMAND_FD = 249
_RESERVE_BYTES = 1_000
"""Of a result, for what is neither standard output nor standard error."""
_LIMITS = {"RLIMIT_CORE": 0, "RLIMIT_NOFILE": 4096, "RLIMIT_FSIZE": 1 << 30, "RLIMIT_NPROC": 4096, "RLIMIT_DATA": 4 << 30}
"""Per process, in bytes where it is a size. NPROC counts all processes of the user, and none of root's."""

# Wherever the command ends (at its end, by `exit`, by `set -e`), the shell says in which directory it is. A command
# that replaces itself by `exec`, or exits under an EXIT trap of its own, leaves the directory as it was.
# All on one line, so that the command's first line is the shell's first, too.
_TELL = f'printf "\\0" >&{DIRECTORY_FD}; builtin pwd -P >&{DIRECTORY_FD}'
_SCRIPT = (
    f"exec </dev/null; trap '{{ set +x; }} 2>/dev/null; {_TELL}' EXIT; "
    f'__command="$(</dev/fd/{_COMMAND_FD})"; exec {_COMMAND_FD}<&-; eval "$__command"; '
    f'{{ __status=$?; set +x; {_TELL}; }} 2>/dev/null; exit "${{__status:-1}}"'
)


def _bash(context: ToolContext, fields: dict[str, Any]) -> ToolResult:
    text = fields.get("command")
    if fields.get("restart"):
        _remember(context, None)
        if not text:
            return text_result("The shell starts again in the working directory.")
    if not text:
        raise ToolError("command is required")
    if "\0" in text:
        raise ToolError("command: must not contain NUL")
    if problem := shell_ready():
        raise ToolError(problem)
    try:
        command = _command(context, text.encode())
    except UnicodeEncodeError:
        raise ToolError("command: is not valid Unicode") from None
    wished = int(fields.get("timeout_ms") or 0) / 1000
    seconds = min(wished, context.seconds) if wished > 0 else context.seconds
    ended = run_kept(command, seconds, context.cancelled, context.output)
    moved = _remember(context, ended.directory) if ended.directory else None
    return _result(context, ended, seconds, moved)


def _command(context: ToolContext, text: bytes) -> Command:
    cwd, home = _directory(context), str(context.workdir)
    argv, files = [sandbox.bash(), "--noprofile", "--norc", "-c", _SCRIPT, "bash"], dict[int, bytes]()
    if confined := settings().shell == "bubblewrap":
        argv, files = sandbox.wrapped(argv, context.root, cwd)
    return Command(
        argv=argv,
        env={"PATH": sandbox.PATH, "HOME": home, "LANG": "C.UTF-8", "TERM": "dumb"},
        cwd=Path("/") if confined else cwd,
        limits=_LIMITS,
        files={**files, _COMMAND_FD: text},
        # An old bubblewrap is a set-user-id program, and takes privileges away by itself.
        no_new_privileges=not confined,
    )


def _result(context: ToolContext, ended: Ended, seconds: float, moved: str | None) -> ToolResult:
    """Standard output and standard error each in a block of its own, then how it ended. An error unless the code is 0."""
    texts = [f"{stream}:\n{text}" for stream, text in context.output.texts(_RESERVE_BYTES).items()]
    if ended.how == "timeout":
        texts.append(f"timed out after {seconds:g} s; its processes were killed")
    elif ended.how == "cancelled":
        texts.append("cancelled; its processes were killed")
    else:
        texts.append(f"exit code: {ended.code}" + (f"\ndirectory: {moved}" if moved else ""))
    return text_result(*texts, is_error=ended.how != "exited" or ended.code != 0)


def _directory(context: ToolContext) -> Path:
    """Where the last call ended, if that is still a directory in the workdir; else the workdir."""
    try:
        kept = Path(os.fsdecode((context.state / "directory").read_bytes()))
    except FileNotFoundError:
        return context.workdir
    return kept if _inside(context, kept) else context.workdir


def _inside(context: ToolContext, directory: Path) -> bool:
    try:
        real = directory.resolve()
        return real == directory and real.is_relative_to(context.workdir.resolve()) and real.is_dir()
    except (OSError, RuntimeError):  # the shell may say any path, such as one of links in a circle
        return False


def _remember(context: ToolContext, directory: str | None) -> str | None:
    """Keep where the next call starts; of calls at the same time the last to end wins. What changed, to be told."""
    kept = context.workdir if directory is None or not _inside(context, Path(directory)) else Path(directory)
    before = _directory(context)
    temporary = context.state / f"directory-{secrets.token_hex(8)}"
    with contextlib.suppress(OSError):  # a full disk must not hide what the command did
        temporary.write_bytes(os.fsencode(kept))
        temporary.replace(context.state / "directory")
    return None if kept == before else str(kept)


BASH = Tool(
    name="bash",
    description=(
        "Run a command in bash. Each call is a new shell that starts in the directory where the last one ended; "
        "variables, functions and jobs do not outlive it, and processes left in the background are killed when it "
        "ends. Standard input is empty. Standard output, standard error and the exit code come back separately."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "command": {"type": ["string", "null"], "description": "The command to run. Required unless restart is set."},
            "restart": {"type": ["boolean", "null"], "description": "Go back to the working directory first."},
            "timeout_ms": {
                "type": ["integer", "null"],
                "minimum": 0,
                "description": "Time limit in milliseconds, if shorter than the one that applies anyway.",
            },
        },
        "additionalProperties": False,
    },
    effect="write",
    idempotent=False,
    seconds=None,
    prompt="Run shell command: {command}",
    run=_bash,
)
