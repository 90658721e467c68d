"""`bash`: a new process for each call, in the directory where the last call ended."""

import contextlib
import os
import secrets
import threading
from pathlib import Path
from typing import Any

from assent import ToolError
from models.policy.built_in_tools import DECLARATIONS
from models.settings import settings
from workers import leash
from workers.leash import quota
from workers.tools.builtin import paths
from workers.tools.clean import escape_controls
from workers.tools.kinds import Tool, ToolContext, ToolResult, text_result
from workers.tools.output import OutcomeUnknown, OutputSoFar
from workers.tools.sandbox import bubblewrap, git, workdir
from workers.tools.sandbox.bubblewrap import shell_problem

__all__ = ["BASH", "confined", "run", "shown_directory", "starting_directory", "walls_of"]

_COMMAND_FD = 249
_ENVIRONMENT = {
    "PATH": bubblewrap.PATH,
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    # HOME is the session's folder, so that an agent may write `.curlrc` and `.wgetrc`. Those files can name programs.
    "CURL_HOME": bubblewrap.CURL_HOME,
    "WGETRC": "/dev/null",
}
"""A command's environment, beside HOME and the variables for git."""

_NO_GROWTH = "ulimit -f 0; "
# However the command ends (at its end, by `exit`, by `set -e`), the shell writes its directory. A command that replaces
# the shell by `exec`, or has an EXIT trap of its own, does not change the directory of the next call.
# After SIGTERM the shell waits for its child and then exits.
# All on one line, so that line numbers in error messages are the command's own.
_WRITE_DIRECTORY = f'printf "\\0" >&{leash.DIRECTORY_FD}; builtin pwd -P >&{leash.DIRECTORY_FD}'
# Another call may replace the directory by a link after the worker has checked it.
_REQUIRE_DIRECTORY = (
    'builtin cd -P . && [ "$PWD" = "$1" ] && unset OLDPWD && export OLDPWD || { '
    'echo "the directory was moved or replaced before the command began; nothing was done" >&2; exit 126; }; shift; '
)
_SCRIPT = (
    f"{_REQUIRE_DIRECTORY}"
    f"exec </dev/null; trap '{{ set +x; }} 2>/dev/null; {_WRITE_DIRECTORY}' EXIT; "
    "trap '{ set +x; trap \"\" TERM; wait; exit 143; } 2>/dev/null' TERM; "
    f'__command="$(</dev/fd/{_COMMAND_FD})"; exec {_COMMAND_FD}<&-; eval "$__command"; '
    f'{{ __status=$?; set +x; {_WRITE_DIRECTORY}; }} 2>/dev/null; exit "${{__status:-1}}"'
)


def _bash(context: ToolContext, fields: dict[str, Any]) -> ToolResult:
    text = fields.get("command")
    if fields.get("restart") and not text and fields.get("working_directory") is None:
        _remember(context, None)
        return text_result("The shell starts again in the working directory.", _line(context))
    if not text:
        raise ToolError("command is required")
    if fields.get("restart"):
        _remember(context, None)
    if "\0" in text:
        raise ToolError("command: must not contain NUL")
    if problem := shell_problem():
        raise ToolError(problem)
    try:
        script = text.encode()
    except UnicodeEncodeError:
        raise ToolError("command: is not valid Unicode") from None
    timeout = int(fields.get("timeout_ms") or 0) / 1000
    seconds = min(timeout, context.seconds) if timeout > 0 else context.seconds
    walls, full = walls_of(context.workdir)
    script_limits = (_NO_GROWTH if full else "") + bubblewrap.process_limit()
    directory = starting_directory(context.root, fields)
    argv = [bubblewrap.bash(), "--noprofile", "--norc", "-c", script_limits + _SCRIPT, "bash", str(directory)]
    command = confined(context, argv, directory, walls, {_COMMAND_FD: script})
    end = run(command, seconds, context.cancelled, context.output)
    if end.directory:
        _remember(context, end.directory)
    return _result(context, end, seconds)


def confined(context: ToolContext, argv: list[str], cwd: Path, walls: leash.Walls, files: dict[int, bytes]) -> leash.Command:
    """Return a command in the session's folder, inside the sandbox of the current settings. Call `shell_problem` first."""
    limits = settings()
    sandboxed = limits.shell == "bubblewrap"
    if sandboxed:
        argv, more = bubblewrap.wrapped(argv, context.root, cwd)
        files = {**files, **more}
    return leash.Command(
        argv=argv,
        env={
            **_ENVIRONMENT,
            **git.environment(context.workdir, sandboxed=sandboxed),
            "GIT_CEILING_DIRECTORIES": str(context.root),  # git looks for a repository no further up
            "HOME": str(context.workdir),
        },
        cwd=Path("/") if sandboxed else cwd,
        # Per process, sizes in bytes. NPROC counts all processes of the user, and none for root.
        limits={
            "RLIMIT_CORE": 0,
            "RLIMIT_NOFILE": 4096,
            "RLIMIT_NPROC": 4096,
            "RLIMIT_FSIZE": limits.workdir_bytes,
            "RLIMIT_DATA": limits.shell_memory_bytes,
        },
        files=files,
        sandboxed=sandboxed,
        grace=limits.shell_grace_seconds,
        walls=walls,
    )


def run(command: leash.Command, seconds: float, cancelled: threading.Event, output: OutputSoFar) -> leash.CommandEnd:
    """Run a command to its end. Raises ToolError if it never started, OutcomeUnknown if one of its processes may be alive."""
    try:
        return leash.run(command, seconds, cancelled, output.add)
    except leash.NotStarted as error:
        raise ToolError(str(error)) from error
    except leash.MayBeAlive as error:
        raise OutcomeUnknown(str(error)) from error


def walls_of(files: Path) -> tuple[leash.Walls, bool]:
    """Return the limits of a command in a folder, and True if the folder is full: then files may be removed, but not grow."""
    limits = settings()
    use = quota.measure(str(files), 10 * limits.workdir_bytes, 10 * limits.workdir_files)
    full = use.problem(limits.workdir_bytes, limits.workdir_files) or quota.disk_problem(str(files), limits.workdir_free_bytes)
    walls = leash.Walls(
        folder=str(files),
        bytes=max(limits.workdir_bytes, use.bytes),
        files=max(limits.workdir_files, use.files),
        free=0 if full else limits.workdir_free_bytes,
        processes=limits.shell_processes,
        memory=limits.shell_memory_bytes,
        shallow=not use.deep,
    )
    return walls, full is not None


def _result(context: ToolContext, end: leash.CommandEnd, seconds: float) -> ToolResult:
    """Return standard output and standard error, each in its own block, then how the command ended and where the next one starts.
    The result is an error unless the code is 0."""
    texts = [f"{stream}:\n{text}" for stream, text in context.output.whole().items()]
    if problem := workdir.full(context.workdir):
        texts.append(f"{problem}. Until there is room, no command can make a file longer: remove some.")
    code = end.code if end.code >= 0 else 128 - end.code
    reason = end.reason(seconds)
    texts.append((f"{reason}; its processes were killed" if reason else f"exit code: {code}") + f"\n{_line(context)}")
    return text_result(*texts, is_error=end.how != "exited" or end.code != 0)


def starting_directory(root: Path, fields: dict[str, Any]) -> Path:
    """Return the directory in which the command of a call starts, in the files of the session at `root`. Raises ToolError for a
    `working_directory` that is not a directory there."""
    path = fields.get("working_directory")
    if path is None:
        return root / "files" if fields.get("restart") else _next_directory(root)
    try:
        return paths.directory(root / "files", path)
    except ToolError as error:
        raise ToolError(f"working_directory: {error}") from None


def shown_directory(root: Path, directory: Path) -> str:
    """Return a directory relative to the files of the session at `root`, safe to show."""
    return escape_controls(str(directory.relative_to(root / "files")))


def _next_directory(root: Path) -> Path:
    """Return the directory where the last call ended, if it is still in the files of the session at `root`; else those files."""
    directory = Path(os.fsdecode(_stored_directory(root)))
    return directory if _inside(root / "files", directory) else root / "files"


def _stored_directory(root: Path) -> bytes:
    """Return the directory that the last call stored, empty for none."""
    try:
        return (root / "state" / "directory").read_bytes()
    except OSError:
        return b""


def _inside(files: Path, directory: Path) -> bool:
    try:
        real = directory.resolve()
        inside = real == directory and real.is_relative_to(files.resolve()) and real.is_dir()
        return inside and real.stat().st_mode & 0o100 != 0  # no later call could start in a closed directory
    except (OSError, RuntimeError, ValueError):  # the shell may write any path, such as a circle of links
        return False


def _line(context: ToolContext) -> str:
    """Return the line that ends every result."""
    return f"directory: {shown_directory(context.root, _next_directory(context.root))}"


def _remember(context: ToolContext, directory: str | None) -> None:
    """Store the directory for the next call; of concurrent calls the last one wins."""
    next_directory = context.workdir if directory is None or not _inside(context.workdir, Path(directory)) else Path(directory)
    content = os.fsencode(next_directory)
    if content == _stored_directory(context.root):
        return
    temporary = context.state / f"directory-{secrets.token_hex(8)}"
    with contextlib.suppress(OSError):  # a full disk must not hide the command's result
        temporary.write_bytes(content)
        temporary.replace(context.state / "directory")


BASH = Tool(
    **vars(DECLARATIONS["bash"]),
    idempotent=False,
    prompt="Run shell command: {command}",
    run=_bash,
)
