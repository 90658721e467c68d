"""What a person reads above a call: the tool's template, filled with the call's arguments."""

import json
import re
from typing import Any

_FIELD = re.compile(r"\{(\w+)\}")
_LONGEST = 2000


def fill(template: str, name: str, arguments: dict[str, Any]) -> str:
    """`template` with each `{argument}` (and `{tool}`) replaced; an argument that was not given stays in braces.

    Control characters and marks that turn or hide text are shown as escapes. At most 2000 characters, and a cut is said: the whole
    input always stands beside the prompt.
    """
    values = {"tool": name} | arguments
    filled = _FIELD.sub(lambda m: _spell(values[m[1]]) if m[1] in values else m[0], template)
    shown = visible(filled)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}… ({len(shown) - _LONGEST} more characters: see the input)"


def visible(text: str) -> str:
    """`text` with every character that a screen would not show as itself written as an escape; line ends and tabs are kept."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def _spell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
