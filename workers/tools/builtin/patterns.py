"""Regular expressions of the model, compiled by RE2, which takes linear time for every expression."""

from typing import Any

import re2

from workers.tools.clean import decode, visible
from workers.tools.errors import ToolError

_CHARACTERS = 1_000
_MEMORY_BYTES = 1 << 20


def compiled(field: str, pattern: str) -> Any:
    """The expression, for text or UTF-8 bytes. Errors: ToolError, which names the field."""
    if len(pattern) > _CHARACTERS:
        raise ToolError(f"{field}: has more than {_CHARACTERS} characters")
    options = re2.Options()
    options.log_errors, options.never_capture, options.max_mem = False, True, _MEMORY_BYTES
    try:
        return re2.compile(pattern, options)
    except UnicodeEncodeError:
        raise ToolError(f"{field}: is not valid Unicode") from None
    except re2.error as error:
        reason = error.args[0] if error.args else "is no expression"
        text = visible(decode(reason) if isinstance(reason, bytes) else str(reason))[:300]
        raise ToolError(f"{field}: {text}; use RE2's syntax, which has no look-around and no back-references") from None
