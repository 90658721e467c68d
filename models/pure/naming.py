"""Names of toolsets' tools, for the model and in rules: `mcp__server__tool`, of characters and a length that every model takes."""

import hashlib
import re

OURS = "assent:"
"""What the addresses of the operator's toolsets begin with; all others are URLs."""
MAX_NAME = 64
"""Characters: the least that the models' APIs allow."""
_OTHER = re.compile(r"[^a-zA-Z0-9_-]")


def full_name(server: str, tool: str) -> str:
    """The tool's name for the model. What no name may hold becomes `_`; one that was changed or cut ends in a mark of its own."""
    said = f"mcp__{server}__{tool}"
    plain = _OTHER.sub("_", said)
    if plain == said and len(said) <= MAX_NAME:
        return said
    mark = hashlib.sha256(said.encode()).hexdigest()[:8]
    return f"{plain[: MAX_NAME - 9]}_{mark}"
