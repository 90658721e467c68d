"""Proposals: what the model wants done, before anybody or any rule has said whether."""

from dataclasses import asdict, dataclass
from typing import Any

from models.database.rows import Db
from models.database.transactions import outbox
from models.policy.asking import Asking
from models.pure.canonical import digest
from models.pure.masking import Echoes, Masked
from models.pure.policy import Verdict
from models.session.session import Session
from models.session.tool_call import ToolCall
from models.session.turn import Turn

MAX_INPUT_BYTES = 1_000_000
"""A call's input at most: it is stored, shown and hashed."""


@dataclass(frozen=True)
class Origin:
    """Whose tool a call is of, if it is one of a toolset or an MCP server; and what holds for where and how it runs."""

    server: str
    """The agent's name for it."""
    address: str
    """Where it is, as `models.workspace.toolset` has it."""
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
    masked: Masked
    """The input without its secrets."""
    answer_seconds: float | None = None
    """How long the client may take, if it runs it."""
    origin: Origin | None = None
    """Of `mcp` calls."""

    def call(self, db: Db, session: Session, turn: Turn, position: int, verdict: Verdict, status: str) -> ToolCall:
        """The call's row in its first status, to be inserted; its input is inserted already."""
        grants = [rule.id for rule in verdict.rules if rule.source == "grant"] or None
        call = ToolCall(
            id=self.id,
            workspace_id=session.workspace_id,
            session_id=session.id,
            turn_id=turn.id,
            position=position,
            provider_id=self.provider_id,
            name=self.name,
            kind="self_hosted" if session.self_hosted and self.kind == "builtin" else self.kind,
            input_sha256=digest(self.input),
            permission=verdict.effect,
            rule=Echoes(self.masked.hidden, quoted=True).text(verdict.rule),  # may quote the input
            grants=grants,
            idempotent=self.idempotent,
            **(asdict(self.origin) if self.origin else {}),
            answer_seconds=self.answer_seconds,
            status=status,
            due_at=session.now,
            hinted_at=session.now,
            created_at=session.now,
        )
        call.put_input(
            db,
            input=self.input,
            shown_input=self.masked.shown if self.masked.paths else None,
            secrets=list(self.masked.hidden) or None,
            asking=self.asking.kept if (grants or self.origin) and self.asking else None,
        )
        if status == "queued":
            outbox(db).hints.append(call.hint)
        elif status == "with_client":
            call.begin_with_client(db, session)
        return call
