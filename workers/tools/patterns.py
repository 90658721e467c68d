"""Regular expressions that others wrote, matched without ever hanging this process.

Python's `re` cannot be interrupted, and one bad pattern would stop hundreds of turns that share a process. What is
plainly quick is matched here; the rest in a child process that is killed after a second.
"""

import marshal
import re
import subprocess

from workers.tools.interpreter import environment, python

_SECONDS = 1.0
_PLAIN = 1_000
"""Characters of a text that a pattern with at most one choice is matched against in this process."""
_CHILD = """
import marshal, re, sys
pattern, text = marshal.load(sys.stdin.buffer)
sys.exit(10 if re.search(pattern, text) else 11)
"""


class TooSlow(Exception):
    """The pattern was not decided in a second."""


def found(pattern: str, text: str) -> bool:
    """Whether the pattern occurs in the text. Errors: `re.error`, `TooSlow`."""
    if len(text) <= _PLAIN and len(pattern) <= _PLAIN and sum(map(pattern.count, "*+{?|")) <= 1:
        return re.search(pattern, text) is not None
    return _found_apart(pattern, text)


def _found_apart(pattern: str, text: str) -> bool:
    try:
        child = subprocess.run(  # noqa: S603 - our own program, its data on standard input
            python("-c", _CHILD),
            input=marshal.dumps((pattern, text)),
            env=environment(),
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise TooSlow from late
    if child.returncode not in (10, 11):
        raise re.error("the pattern is not a regular expression that can be used")
    return child.returncode == 10
