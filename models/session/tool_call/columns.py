"""The columns of a tool call. `ToolCall` adds the verbs."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from models.database.columns import Mapped, mapped_column
from models.database.tables import Hex


class ToolCallColumns:
    """One call. The states are in `models.pure.states.TOOL_CALL`."""

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    session_id: Mapped[str]
    thread_id: Mapped[str]
    turn_id: Mapped[str] = mapped_column(sa.ForeignKey("turn.id"))
    position: Mapped[int]
    """Position among the calls of the turn, from 0. The model gets the results in this order."""
    provider_id: Mapped[str]
    name: Mapped[str]
    """The model's name for the tool."""
    kind: Mapped[str]
    """`builtin`: a built-in tool, run by our workers. `self_hosted`: a built-in tool, run by the client's own worker. `custom`: a
    tool that the client runs. `mcp`: a tool of one of the operator's toolsets, run by our workers, or of an MCP server.
    `agent`: a tool for sub-agents, which needs no worker."""
    server: Mapped[str | None]
    """The agent's name for the toolset or MCP server. Set for `mcp` calls, as are `address` and `tool`."""
    address: Mapped[str | None]
    """Its address, as in `models.workspace.toolset`."""
    tool: Mapped[str | None]
    """The tool's own name there."""
    queue: Mapped[str | None]
    """Queue of the workers that can run the call. None: `tools`."""
    workdir: Mapped[bool] = mapped_column(default=True, server_default=sa.true())
    """True if the tool works on the session's files, so that only workers with these files can run it."""
    input_sha256: Mapped[str] = mapped_column(Hex)
    """The hash of the input that may run, `CallInput.input`."""
    permission: Mapped[str]
    rule: Mapped[str]
    grants: Mapped[list[str] | None] = mapped_column(ARRAY(sa.Text))
    """Ids of the grants that allowed the call. The claim checks them again."""
    idempotent: Mapped[bool]
    cache: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """`Origin.cache`."""
    cached_from: Mapped[str | None]
    """Id of the earlier call whose result this call got. None if the tool ran."""
    announced: Mapped[bool] = mapped_column(default=False)
    """True once the call's event is emitted. The event of a `custom` call that people are asked about waits until it is allowed."""
    status: Mapped[str]
    fence: Mapped[int] = mapped_column(sa.BigInteger, default=0)
    attempt: Mapped[int] = mapped_column(default=0)
    lease_until: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    worker: Mapped[str | None]
    task: Mapped[str | None]
    answer_seconds: Mapped[float | None]
    """How long the client may take for the call."""
    answer_by: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """The client's deadline. Set when the client gets the call."""
    deadline_from: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """Start of that deadline. A halt that ends after this time moves the deadline."""
    due_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    hinted_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    held_back: Mapped[str | None]
    """Why a worker did not claim the queued call. Readiness reports it."""
    cancel_requested_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    is_error: Mapped[bool | None]
    """True if the result, a `CallResult`, is an error."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    settled_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
