"""RE2: regular expressions that take linear time, so that no pattern or text can stop a process."""

import re
from functools import lru_cache
from typing import Any

import re2

_BY_NUMBER = re.compile(r"\\u([0-9a-fA-F]{4})")
_PATTERN_CHARACTERS = 2000
_PATTERN_BYTES = 2_000_000
"""Memory of one compiled pattern of a schema."""
escape = re2.escape


class InvalidPattern(ValueError):
    """RE2 cannot read the pattern: it has no look-around and no back-references."""


def compile_re2(
    pattern: str | bytes, *, max_bytes: int | None = None, dot_newline: bool = False, captures: bool = True, longest: bool = False
) -> Any:
    """Return a compiled expression; one of bytes matches UTF-8. Raises InvalidPattern.

    `max_bytes` bounds its memory. `dot_newline`: `.` matches a newline too. `longest` finds the longest match, not the first.
    """
    options = re2.Options()
    options.log_errors, options.dot_nl, options.never_capture, options.longest_match = False, dot_newline, not captures, longest
    if max_bytes is not None:
        options.max_mem = max_bytes
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        message = error.args[0] if error.args else "it is not valid"
        raise InvalidPattern(message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)) from None
    except UnicodeEncodeError:
        raise InvalidPattern("it is not valid Unicode") from None


@lru_cache(maxsize=256)
def compile_schema_pattern(pattern: str) -> Any:
    """Return a compiled `pattern` of a JSON Schema, which writes characters by number as in JavaScript. Raises InvalidPattern."""
    if len(pattern) > _PATTERN_CHARACTERS:
        raise InvalidPattern(f"it has more than {_PATTERN_CHARACTERS} characters")
    return compile_re2(_BY_NUMBER.sub(r"\\x{\1}", pattern), max_bytes=_PATTERN_BYTES)
