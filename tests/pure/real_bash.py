"""Runs command lines in real bash and records what bash did, without running any program."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

BASH = shutil.which("bash") or "bash"
FILES = ("q", "qz", "-exec", "-x", "!q", "a=b")
"""The files in the directory where the lines run; globs expand to them."""

# No program is on the PATH, so bash passes each command, word by word, to the handler instead of running it. The handler writes a
# record at once, which it would not with a newline in it, because several handlers may write at the same time. Its status is
# random, so both branches of a list are taken and every loop ends. Line 0 is empty: its state is the one before a line.
_SCRIPT = r"""
exec 200>&1 201<&0 </dev/null >/dev/null 2>/dev/null
command_not_found_handle() { printf '%s\0' ran "$__line" "$#" "${@//$'\n'/$'\x02'}" >&200; return "$((RANDOM % 2))"; }
__state() {
  local __all
  __all=$(declare -p; alias -p; shopt -p; set +o; enable -a; trap -p; declare -F; umask; printf 'positional %s\n' "$@")
  printf '%s\0' state "$__line" 1 "${__all//$'\n'/$'\x02'}" >&200
}
PATH=/nonexistent
set -- one two
__line=-1
while IFS= read -r -d '' __text <&201; do
  __line=$((__line + 1))
  ( [ "$__wanted" ] && trap 'wait; __state "$@"' EXIT; eval "$__text" )
done
"""
_ALWAYS_CHANGING = re.compile(
    r"declare -\S+ (_|__\w*|BASH\w*|EPOCH\w*|FUNCNAME|LINENO|RANDOM|SRANDOM|SECONDS|PIPESTATUS|PWD|OLDPWD|DIRSTACK)\b"
)


@dataclass
class Ran:
    """What bash did for one line."""

    commands: set[tuple[str, ...]] = field(default_factory=set)
    """Every command that bash would have run, word by word."""
    state: frozenset[str] = frozenset()
    """The shell's variables, options, aliases, traps and the like afterwards, if `state` was set."""
    wrote: bool = False
    """Whether a file was created, removed or changed in size."""


def run_by_bash(lines: Sequence[str], *, state: bool = False) -> list[Ran | None]:
    """Run lines in bash. Returns a result for the empty line, then one per line; None for a line that took too long."""
    ran = _run(["", *lines], 2 if len(lines) == 1 else 10, state)
    if len(lines) > 1 and (ran is None or ran[0].wrote):
        alone = [run_by_bash([line], state=state) for line in lines]
        return [alone[0][0], *(result for _, result in alone)]
    return [None] * (len(lines) + 1) if ran is None else list(ran)


def _run(lines: Sequence[str], seconds: float, state: bool) -> list[Ran] | None:
    with tempfile.TemporaryDirectory() as folder:
        for name in FILES:
            (Path(folder) / name).touch()
        output = _output(lines, seconds, {"LANG": "C.UTF-8", "HOME": folder, "__wanted": "yes" if state else ""}, folder)
        if output is None:
            return None
        wrote = {(entry.name, entry.stat().st_size) for entry in os.scandir(folder)} != {(name, 0) for name in FILES}
    ran = [Ran(wrote=wrote) for _ in lines]
    fields = output.decode("utf-8", "surrogateescape").replace(folder, "/home").replace("\x02", "\n").split("\0")
    while len(fields) > 1:
        kind, line, count = fields[0], ran[int(fields[1])], int(fields[2])
        if kind == "ran":
            line.commands.add(tuple(fields[3 : 3 + count]))
        else:
            line.state = frozenset(row for row in fields[3].split("\n") if not _ALWAYS_CHANGING.match(row))
        fields = fields[3 + count :]
    return ran


def _output(lines: Sequence[str], seconds: float, environment: dict[str, str], folder: str) -> bytes | None:
    """Return the output of the handlers, or None. Kills bash and its children when the time is over."""
    bash = subprocess.Popen(
        [BASH, "--noprofile", "--norc", "-c", _SCRIPT, "bash"],
        cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        return bash.communicate("".join(f"{line}\0" for line in lines).encode(), seconds)[0]
    except subprocess.TimeoutExpired:
        return None
    finally:
        if bash.returncode is None:
            os.killpg(bash.pid, signal.SIGKILL)
            bash.communicate()
