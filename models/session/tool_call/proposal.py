"""Proposals: calls that the model proposes, before policies and people have judged them."""

from dataclasses import asdict, dataclass
from typing import Any

from models.policy.asking import Asking
from models.pure.json.canonical import digest
from models.pure.masking import Echoes, Masked
from models.pure.policy import Verdict
from models.session.locked import Locked
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn

MAX_INPUT_BYTES = 1_000_000
"""The largest input of a call. It is stored, shown and hashed."""


@dataclass(frozen=True)
class Origin:
    """The toolset or MCP server that a tool comes from, and where and how the tool runs."""

    server: str
    """The agent's name for the toolset or server."""
    address: str
    """Its address, as in `models.workspace.toolset`."""
    tool: str
    """The tool's own name."""
    queue: str | None
    """Queue of the workers that can run the tool. None: the queue of all tools workers."""
    workdir: bool
    """True if the tool works on the session's files."""
    cache: dict[str, Any] | None
    """`{"seconds", "scope", "identity"}`: how long, and for whose calls, a result also serves equal calls. None: never."""


@dataclass(frozen=True)
class Proposal:
    """A call that the model proposes."""

    id: str
    """Id of the call and of its event."""
    provider_id: str
    """The model's own id of its `tool_use` block."""
    name: str
    kind: str
    """`builtin` (of the agent toolset), `custom` (of the client), `mcp` (of a toolset or an MCP server), or `agent` (about
    sub-agents)."""
    input: dict[str, Any]
    problem: str | None
    """Why the call can neither run nor be asked about, in the words that the model gets."""
    idempotent: bool
    asking: Asking | None
    """How people are asked about the call. None if it has a problem."""
    masked: Masked
    """The input with its secrets masked."""
    answer_seconds: float | None = None
    """How long the client may take for the call, if the client runs it."""
    origin: Origin | None = None
    """Set for `mcp` calls."""

    @property
    def shown(self) -> dict[str, Any] | None:
        """The input with its secrets masked; None if it has none."""
        return self.masked.arguments if self.masked.paths else None

    def call(self, locked: Locked, turn: Turn, position: int, verdict: Verdict, status: str) -> ToolCall:
        """Return the call's row in its first status, and insert its input. The caller inserts the row."""
        session = locked.session
        grants = [rule.id for rule in verdict.rules if rule.source == "grant"] or None
        call = ToolCall(
            id=self.id,
            workspace_id=session.workspace_id,
            session_id=session.id,
            thread_id=turn.thread_id,
            turn_id=turn.id,
            position=position,
            provider_id=self.provider_id,
            name=self.name,
            kind="self_hosted" if session.self_hosted and self.kind == "builtin" else self.kind,
            input_sha256=digest(self.input),
            permission=verdict.effect,
            rule=Echoes(self.masked.secrets, may_quote=True).text(verdict.rule),  # may quote the input
            grants=grants,
            idempotent=self.idempotent,
            **(asdict(self.origin) if self.origin else {}),
            answer_seconds=self.answer_seconds,
            status=status,
            due_at=locked.now,
            hinted_at=locked.now,
            created_at=locked.now,
        )
        call.put_input(
            locked.db,
            input=self.input,
            shown_input=self.shown,
            secrets=list(self.masked.secrets) or None,
            asking=self.asking.as_json if (grants or self.origin) and self.asking else None,
        )
        if status == "queued":
            call.hint_workers(locked)
        elif status == "with_client":
            call.begin_with_client(locked)
        return call
