"""Proposals: what the model wants done, before anybody or any rule has said whether."""

from dataclasses import dataclass
from typing import Any

from models.ruling import Asking

MAX_INPUT_BYTES = 1_000_000
"""A call's input at most: it is stored, shown and hashed."""


@dataclass(frozen=True)
class Origin:
    """Whose tool a call is of, if it is one of a toolset or an MCP server; and what holds for where and how it runs."""

    server: str
    """The agent's name for it."""
    address: str
    """Where it is, as `models.toolset` has it."""
    tool: str
    """The tool's own name."""
    queue: str | None
    """Of the workers that can run it; None: of all tools workers."""
    workdir: bool
    """Whether it works on the session's files."""
    cache: dict[str, Any] | None
    """`{"seconds", "scope", "identity"}`: for how long its result answers the same call of the same tool again, and whose."""


@dataclass(frozen=True)
class Proposal:
    """A call as the model wants it, judged before anybody is asked."""

    id: str
    """Ours: the id of the event to come."""
    provider_id: str
    """The model's own id of its `tool_use` block."""
    name: str
    kind: str
    """`builtin` (of the agent toolset), `custom` (of the client's own), or `mcp` (of a toolset or an MCP server)."""
    input: dict[str, Any]
    problem: str | None
    """Why it cannot be asked or run at all, in the words that the model gets."""
    idempotent: bool
    asking: Asking | None
    """How people are asked about it; None for what has a problem."""
    answer_seconds: float | None = None
    """How long the client may take, if it runs it."""
    origin: Origin | None = None
    """Of `mcp` calls."""
