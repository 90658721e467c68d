"""The options of the archive's file system, as a text."""

import json
from typing import Any


def storage_options(text: str) -> dict[str, Any]:
    """Return the options of a JSON object. Raises ValueError, whose message does not show the text."""
    try:
        options = json.loads(text or "{}")
    except ValueError:
        options = None
    if not isinstance(options, dict):
        raise ValueError('must be a JSON object of options for fsspec, such as {"endpoint_url": "https://..."}')
    return options
