"""Names of toolsets' tools, for the model and in rules: `mcp__server__tool`, in characters and a length that all models accept."""

import hashlib
import re

OURS = "assent:"
"""Prefix of the addresses of the operator's toolsets. Every other address is a URL."""
MAX_NAME = 64
"""Characters: the lowest limit among the models' APIs."""
APPROVAL_TOOL = "client_requestApproval"
"""The tool by whose calls clients of OpenAI's format are asked for approval. No agent has it: only Assent itself calls it."""
RESERVED = f"is reserved, as {APPROVAL_TOOL} asks people for approval; choose another name."
_OTHER = re.compile(r"[^a-zA-Z0-9_-]")
_PUNCTUATION = re.compile(r"[^a-z0-9]")


def is_reserved(tool: str) -> bool:
    """True if a tool's name is APPROVAL_TOOL, or so similar that people may take it for that. Ignores case and punctuation."""
    return _PUNCTUATION.sub("", tool.lower()) == _PUNCTUATION.sub("", APPROVAL_TOOL.lower())


def full_name(server: str, tool: str) -> str:
    """Return the tool's name for the model. Other characters become `_`; a changed or cut name ends in a part of its hash."""
    name = f"mcp__{server}__{tool}"
    plain = _OTHER.sub("_", name)
    if plain == name and len(name) <= MAX_NAME:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{plain[: MAX_NAME - 9]}_{mark}"


def may_be_of(name: str, server: str) -> bool:
    """True if `full_name` may return this name for a tool of the server."""
    return name.startswith(_OTHER.sub("_", f"mcp__{server}__")[: MAX_NAME - 9])
