"""Lines that are read with certainty run the same commands in a real bash."""

import itertools
import os
import random
import re
import sys
import time
from collections.abc import Iterable

import pytest
from real_bash import Ran, run_by_bash
from shell_lines import Pieces, random_lines

from models.pure.shell import CommandLine, read

SEED = int(os.environ.get("ASSENT_FUZZ_SEED") or random.SystemRandom().randrange(1 << 32))
"""Set it to the printed seed to repeat a run."""
SECONDS = float(os.environ.get("ASSENT_FUZZ_SECONDS") or 2)
_BATCH = 100


def misread(line: CommandLine, ran: Ran) -> str | None:
    """Describe what bash did beyond the line's sure reading, or return None."""
    unnamed = [words for words in ran.commands if not any(_stands_for(words, read) for read in line.commands)]
    return f"bash ran {unnamed}" if unnamed else "bash wrote a file" if ran.wrote else None


def _stands_for(words: tuple[str, ...], read_words: tuple[str, ...]) -> bool:
    """Whether bash may expand the read words to these words. A marked word is one or more words, and no option."""
    if not read_words or not words:
        return words == read_words
    if not read_words[0].startswith("\x01"):
        return words[0] == read_words[0] and _stands_for(words[1:], read_words[1:])
    begin = "" if read_words[0].startswith("\x01~") else re.split(r"[*?\[]", read_words[0][1:])[0]
    fits = itertools.takewhile(lambda word: word.startswith(begin) and not word.startswith("-"), words)
    return any(_stands_for(words[count:], read_words[1:]) for count, _ in enumerate(fits, 1))


def _compare(lines: Iterable[str]) -> tuple[int, dict[str, str]]:
    """Return how many lines are sure, and the misread ones of them with their faults."""
    sure = [(line, reading) for line in lines if not (reading := read(line)).doubt]
    ran = run_by_bash([line for line, _ in sure])[1:]
    return len(sure), {
        line: fault for (line, reading), one in zip(sure, ran, strict=True) if one and (fault := misread(reading, one))
    }


def _smallest(pieces: Pieces) -> str:
    """The shortest misread line, without pieces that do not matter."""
    for at in reversed(range(len(pieces))):
        fewer = pieces[:at] + pieces[at + 1 :]
        if _compare(["".join(fewer)])[1]:
            pieces = fewer
    return "".join(pieces)


def test_no_random_line_is_misread() -> None:
    """With joints, quotes, expansions, comments and nesting. Set `ASSENT_FUZZ_SECONDS` to search longer."""
    sys.stdout.write(f"ASSENT_FUZZ_SEED={SEED}\n")
    lines = random_lines(SEED)
    until, compared = time.monotonic() + SECONDS, 0
    while time.monotonic() < until:
        batch = {"".join(pieces): pieces for pieces in itertools.islice(lines, _BATCH)}
        sure, misread_lines = _compare(batch)
        compared += sure
        for line, fault in misread_lines.items():
            pytest.fail(f"ASSENT_FUZZ_SEED={SEED}: {line!r}: {fault}. The smallest such line is {_smallest(batch[line])!r}.")
    assert compared


@pytest.mark.parametrize(
    "line",
    [
        '!"./run.sh" x',
        "!'' qa",
        'if"qa"; then qb; fi',
        "if qa; then'qb'; fi",
        "if qa; then qb; else'qa'; fi",
        "if qa; then qb; elif'qa'; then qb; fi",
        "while'qa'; do qb; done",
        "until'qa'; do qb; done",
        "while qa; do'qb'; done",
        "{'qa'; }",
        "qa && !'qb'",
        "qa\n!'qb' x",
        "! !'qb' x",
        "!\\\nqa",
        "if qa; then qb; fi'x'",
        "{ qa; }'x'",
        "qa\\\nqb c",
        "qa | qb x | qa -30\nqb B && qa s",
        "qa </dev/null qb",
        "qa # c\\\nqb",
        "((qa); qb)",
        "qa &\\\n& qb",
        "qa >\\\n/dev/null qb",
    ],
)
def test_a_line_that_the_grammar_misreads_is_unsure(line: str) -> None:
    """The search above found each of these lines."""
    assert read(line).doubt


@pytest.mark.parametrize(
    "line", ["qa # c \\\nqb", "( \\\n(qa) )", "qa;# c\nqb", "qa &# c\nqb", "qa \\\n# c\nqb", "! qa", "!\tqa", "!  { qa; }"]
)
def test_a_line_that_looks_like_a_misread_one_is_read_correctly(line: str) -> None:
    assert not _compare([line])[1]


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
def test_a_plain_line_is_sure(line: str) -> None:
    """So that people are not asked about it."""
    reading = read(line)
    assert reading.doubt is None
    ran = run_by_bash([line])[1]
    assert ran
    assert ran.commands
    assert ran.commands <= set(reading.commands)
