"""Models `...-window-N` read at most N tokens, and refuse a longer request like the real APIs."""

import re
from typing import Any

from deploy.standin.rules import RefusedError
from deploy.standin.usage import tokens_of

_NAME = re.compile(r"-window-(\d+)$")


def check(request: dict[str, Any], *, is_chat: bool) -> None:
    """Raise `RefusedError` if the request, in the form of the Messages API, is longer than its model reads."""
    name = _NAME.search(request["model"])
    if name is None:
        return
    tokens, window = tokens_of(request), int(name[1])
    if tokens <= window:
        return
    if is_chat:
        message = f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens."
        raise RefusedError(message, code="context_length_exceeded")
    raise RefusedError(f"prompt is too long: {tokens} tokens > {window} maximum")
