"""Proposals: what the model wants done, before anybody or any rule has said whether."""

from dataclasses import dataclass
from typing import Any

from models.ruling import Asking

MAX_INPUT_BYTES = 1_000_000
"""A call's input at most: it is stored, shown and hashed."""


@dataclass(frozen=True)
class Proposal:
    """A call as the model wants it, judged before anybody is asked."""

    id: str
    """Ours: the id of the event to come."""
    provider_id: str
    """The model's own id of its `tool_use` block."""
    name: str
    kind: str
    """`builtin` (of the toolset) or `custom` (of the client's own)."""
    input: dict[str, Any]
    problem: str | None
    """Why it cannot be asked or run at all, in the words that the model gets."""
    idempotent: bool
    asking: Asking | None
    """How people are asked about it; None for what has a problem."""
