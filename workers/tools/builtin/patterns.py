"""Regular expressions of the model, compiled by RE2, which takes linear time for every expression."""

from typing import Any

from assent import ToolError
from models.pure.regex import InvalidPattern, compile_re2
from workers.tools.clean import escape_controls

_CHARACTERS = 1_000
_MEMORY_BYTES = 1 << 20


def compile_pattern(field: str, pattern: str) -> Any:
    """Return the expression, for text or UTF-8 bytes. Raises ToolError, which names the field."""
    if len(pattern) > _CHARACTERS:
        raise ToolError(f"{field}: has more than {_CHARACTERS} characters")
    try:
        return compile_re2(pattern, max_bytes=_MEMORY_BYTES, captures=False)
    except InvalidPattern as error:
        text = escape_controls(str(error))[:300]
        raise ToolError(f"{field}: {text}; use RE2's syntax, which has no look-around and no back-references") from None
