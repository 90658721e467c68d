"""What is surely read is what bash itself runs: held against bash."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from models.pure.shell import read

BASH = shutil.which("bash") or "bash"
# No name is found, so that bash hands each command, word by word, to this function instead of running it. It writes at once,
# which it would not with a newline in it, for several may write at the same time.
TELL = r"""
exec 9>&1 </dev/null >/dev/null 2>/dev/null
command_not_found_handle() { printf '%s\0' "$#" "${@//$'\n'/$'\x02'}" >&9; }
PATH=/nonexistent
"""
WORDS = [
    "qa",
    "qb",
    "-x",
    "'q c'",
    '"q d"',
    '"q\\"e"',
    "q\\ f",
    "q'g'\"h\"",
    "q#i",
    "10",
    "''",
    "a=b",
    "qü",
    '"q\nj"',
    "\\q",
    "q\\\\",
    "\\#",
]
JOINTS = [
    " ",
    " ",
    " ",
    "  ",
    "\t",
    " \\\n",
    "\\\n",
    "\n",
    ";",
    "; ",
    " ;\n",
    " && ",
    " || ",
    " | ",
    "|",
    " |& ",
    " & ",
    "&&\n",
    " |\n",
]
REST = [
    "( ",
    " )",
    "(",
    ")",
    "{ ",
    "; }",
    "}",
    "! ",
    "# c",
    " # c\n",
    " >/dev/null",
    " 2>&1",
    " 2>/dev/null ",
    " </dev/null",
    "<q",
    "> q",
]
KEYS = [
    "if ",
    "; then ",
    "\nthen\n",
    "; else ",
    "; fi",
    "while ",
    "; do ",
    "; done",
    "$q",
    "$(qa)",
    "`qb`",
    "{a,b}",
    "<<E\n",
    "\nE\n",
    "$'q'",
    "*",
]
PIECES = st.sampled_from(WORDS * 3 + JOINTS * 3 + REST + KEYS)
LINES = st.lists(PIECES, min_size=1, max_size=14).map("".join)


def run_by_bash(line: str) -> set[tuple[str, ...]] | None:
    """The commands that bash would have run, or None if it ran too long."""
    argv = [BASH, "--noprofile", "--norc", "-c", TELL + 'eval "$1"', "bash", line]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "q").touch()
        try:
            ended = subprocess.run(argv, cwd=folder, stdout=subprocess.PIPE, timeout=5, check=False, env={"LANG": "C.UTF-8"})
        except subprocess.TimeoutExpired:
            return None
    told = ended.stdout.decode().replace("\x02", "\n").split("\0")
    found: set[tuple[str, ...]] = set()
    while len(told) > 1:
        count = int(told[0])
        found.add(tuple(told[1 : count + 1]))
        told = told[count + 1 :]
    return found


def is_said_by(words: tuple[str, ...], said: tuple[str, ...]) -> bool:
    """Whether these are the words that were read; a word that stands for names of files may be any."""
    marked = next((n for n, word in enumerate(said) if word.startswith("\x01")), None)
    return words == said if marked is None else words[:marked] == said[:marked]


@given(LINES)
@settings(max_examples=400, deadline=None)
@example("qa | qb x | qa -30\nqb B && qa s")
@example("qa\\\nqb c")
@example("qa </dev/null qb")
@example("qa # c\\\nqb")
@example("((qa); qb)")
@example("qa &\\\n& qb")
@example("( \\\n(qa) )")
@example("qa >\\\n/dev/null qb")
@example("qa # c \\\nqb")
@example("qa;# c\nqb")
@example("qa &# c\nqb")
@example("qa \\\n# c\nqb")
def test_nothing_runs_that_a_sure_reading_does_not_name(line: str) -> None:
    """Word for word, however lines are joined, quoted, commented and nested."""
    found = read(line)
    if found.doubt:
        return
    ran = run_by_bash(line)
    if ran is not None:
        assert all(any(is_said_by(words, said) for said in found.commands) for words in ran), line


@pytest.mark.parametrize(
    "line",
    [
        "qa -l | qb 'x y' | qc",
        "qa; qb &\nqc",
        '( qa; qb "1" ) && { qc; qd; }',
        "if qa; then qb; else qc; fi",
        "qa 2>&1 >/dev/null | qb",
        "# first\nqa # second\n\nqb",
        "qa \\\n  -x",
        "! qa",
        "qa'b'\"c\" d\\ e",
    ],
)
def test_what_is_plain_is_sure(line: str) -> None:
    """Or nobody would ever be spared a question."""
    found = read(line)
    assert found.doubt is None
    ran = run_by_bash(line)
    assert ran
    assert ran <= set(found.commands)
