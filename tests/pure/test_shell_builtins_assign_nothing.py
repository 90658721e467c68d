"""A builtin is sure only in forms that are known to assign and evaluate nothing."""

import itertools
import os
import random
import shlex
import string
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from real_bash import BASH, run_by_bash

from models.pure.shell import builtins, read

SEED = int(os.environ.get("ASSENT_FUZZ_SEED") or random.SystemRandom().randrange(1 << 32))
SECONDS = float(os.environ.get("ASSENT_FUZZ_SECONDS") or 1)
_BATCH = 40


def _names(*kinds: str) -> set[str]:
    """Bash's own list of its builtins (`-b`) or reserved words (`-k`)."""
    script = "; ".join(f"compgen {kind}" for kind in kinds)
    return set(subprocess.run([BASH, "-c", script], capture_output=True, text=True, check=True).stdout.split())


# `kill` is missing, because the numbers would be processes of this machine.
_NAMES = sorted(_names("-b") - {"kill"})
_ARGUMENTS = [
    "x", "PATH", "a[$(qa)]", "a[`qa`]", "a[0]", "x=1", "PATH=q", "$(qa)", "1", "0", "-1", "+1", "%1", "%n", "%5n", "%-n",
    "%hn", "%s", "%d\\n", "%*d", "%b", "%q", "%(%F)T", "%%n", "%%%n", "\\x25n", "\\045n", "-", "--", "-v", "-V", "-p", "-n",
    "-x", "-R", "-a", "-c", "-f", "-s", "-t", "-e", "-o", "-i", "-A", "-nv", "-np", "-vx", "-pa[$(qa)]", "-va[$(qa)]", "-eq",
    "-lt", "=", "!", "(", ")", "]", "qa", "q", ".", "~", "./q*", "077", "u+w", "hard", "EXIT", "noglob", "=~", "errexit", "*",
    "TERM", "a+=1", "1+1", "''",
]  # fmt: skip


def _random_lines(seed: int) -> Iterator[str]:
    """Endless lines of one builtin with random arguments, mostly quoted, the same for the same seed."""
    source = random.Random(seed)
    while True:
        words = [source.choice(_ARGUMENTS) for _ in range(source.randint(0, 4))]
        yield " ".join([source.choice(_NAMES), *(word if word in {"~", "./q*"} else f"'{word}'" for word in words)])


def _harmful(lines: list[str]) -> dict[str, str]:
    """The lines that change the shell, run a command, write a file or do not end, with their faults."""
    before, *ran = run_by_bash(lines, state=True)
    assert before
    assert before.state
    faults = {}
    for line, after in zip(lines, ran, strict=True):
        changed = after.state ^ before.state if after else set()
        if "umask" in line:
            changed = {row for row in changed if not row.isdigit()}
        if after is None or after.commands - {("sleep",)} or changed or after.wrote:
            faults[line] = f"{after and after.commands} {changed}"
    return faults


def test_no_option_that_is_sure_changes_the_shell_or_runs_anything() -> None:
    """Variables, options, aliases, traps, functions and arguments stay the same, and no `$(...)` in a word runs."""
    names = set(_NAMES) - {":", "true", "false", "echo"}  # their words are plain text
    options = [f"-{letter}" for letter in string.ascii_letters]
    shapes = [("{0}", "{1}"), ("{0}", "{1}", "1"), ("{0}{1}", "1"), ("{1}", "{0}", "{1}")]
    forms = itertools.product(sorted(names), shapes, options, ["a[$(qa)]", "PATH"])
    calls = [(name, [word.format(option, text) for word in shape]) for name, shape, option, text in forms]
    sure = [f"sleep & {shlex.join([name, *args])}" for name, args in calls if not builtins.doubt(name, args)]
    assert len(sure) > 100
    assert _harmful(sure) == {}


def test_no_random_form_that_is_sure_changes_the_shell_or_runs_anything() -> None:
    """With several words. Set `ASSENT_FUZZ_SECONDS` to search longer."""
    sys.stdout.write(f"ASSENT_FUZZ_SEED={SEED}\n")
    source = (line for line in _random_lines(SEED) if not read(line).doubt)
    until, compared = time.monotonic() + SECONDS, 0
    while time.monotonic() < until:
        lines = list(itertools.islice(source, _BATCH))
        assert _harmful(lines) == {}, f"ASSENT_FUZZ_SEED={SEED}"
        compared += len(lines)
    assert compared


@pytest.mark.parametrize(
    "line",
    ["printf %n PATH", "printf -v PATH x", "printf -v 'a[$(qa)]' x", "trap qa EXIT",
     "qb & wait -n -p 'a[$(qa)]'", "test -v 'a[$(qa)]'", "PATH=q", "set -f",
     "read PATH </dev/null", "let PATH=1", "unset PATH", "umask 0 & alias x=y\nshift"],
)  # fmt: skip
def test_the_search_finds_changes_by_builtins(line: str) -> None:
    """Each line changes the shell or runs `qa`. All of them are unsure."""
    before, after = run_by_bash([line], state=True)
    assert before
    assert after
    assert after.commands - {("qb",)} or after.state != before.state
    assert read(line).doubt


def test_every_builtin_and_every_reserved_word_is_known() -> None:
    """Of this machine's bash."""
    names = _names("-b", "-k")
    assert len(names) > 70
    assert names <= builtins.NAMES


UNSURE = [
    "printf %n PATH; ls", "printf '%5n' PATH", "printf '%-3.2n' PATH", "printf '%hhn' x", "printf '%ln' x", "printf -- %n x",
    "printf '%s%n' x PATH", "printf '%%%n' x", "printf '%*n' 1 x", "printf -v x y", "printf -vx y", "printf -- -v x",
    "printf", "printf f* x", "printf '%'", "wait -n -p 'a[$(cmd)]'", "wait -p x", "wait -np x", "wait -pn",
    "test -v 'a[$(cmd)]'", "test ! -v 'a[$(cmd)]'", "test -R x", "test x -a -v 'a[$(cmd)]'", "[ -v 'a[$(cmd)]' ]",
    "[[ -v a[$(cmd)] ]]", "[[ 'a[$(cmd)]' -eq 1 ]]", "((a[$(cmd)]))", "ls $((x))", "let 'a[$(cmd)]'", "read x",
    "read 'a[$(cmd)]'", "mapfile x", "readarray x", "declare x=1", "typeset x", "local x=1", "export PATH=x", "readonly x",
    "unset 'a[$(cmd)]'", "getopts x y", "eval ls", ". x", "source x", "exec ls", "command ls", "command -p ls",
    "command -p -v ls", "command", "builtin cd", "enable -n test", "alias ls=x", "unalias ls", "hash -p x ls", "hash",
    "shopt -s extglob", "set -- x", "set -e", "trap x EXIT", "bind x", "complete x", "compgen -C x", "compopt x", "fc -s",
    "history -p x", "shift", "caller", "jobs -x ls", "pushd -n -x", "pushd +1", "suspend", "logout", "coproc ls", "time ls",
    "umask u+w", "exit 'a[1]'",
]  # fmt: skip
SURE = [
    "printf '%s\\n' x", "printf 'a%%n %5.2f %-10s|%x' 1 b 2", "printf -- '%d' 1", "printf x", "printf '%s ' ./*", "echo -n x",
    "echo '%n' 'a[$(cmd)]'", "true", ": x", "cd", "cd ..", "cd src", "cd -", "cd -P x", "cd -- x", "cd ~/x", "pwd -P",
    "pushd src", "popd", "dirs -v", "test -f x", "test x = y", "test 1 -lt 2", "test -d x -a -n y", "test -1 -eq 1",
    "type -a ls", "command -v ls git", "command -V ls", "wait", "wait -n", "wait %1", "wait 12", "jobs -l", "kill -9 12",
    "kill -TERM %1", "kill -l", "umask 022", "ulimit -n 4096", "exit 1", "times", "help cd", "disown %1",
]  # fmt: skip


def test_a_form_that_may_assign_or_evaluate_is_unsure() -> None:
    assert [line for line in UNSURE if not read(line).doubt] == []


def test_an_everyday_form_is_sure() -> None:
    """So that people are not asked about it."""
    assert [line for line in SURE if read(line).doubt] == []
