"""Names of toolsets' tools, for the model and in rules: `mcp__server__tool`, in characters and a length that all models accept."""

import hashlib
import re

OURS = "assent:"
"""Prefix of the addresses of the operator's toolsets. Every other address is a URL."""
MAX_NAME = 64
"""Characters: the lowest limit among the models' APIs."""
_OTHER = re.compile(r"[^a-zA-Z0-9_-]")


def full_name(server: str, tool: str) -> str:
    """Return the tool's name for the model. Other characters become `_`; a changed or cut name ends in a part of its hash."""
    name = f"mcp__{server}__{tool}"
    plain = _OTHER.sub("_", name)
    if plain == name and len(name) <= MAX_NAME:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{plain[: MAX_NAME - 9]}_{mark}"
