"""Long histories: before a request would pass its model's window, old results are cut, and then a summary replaces old turns.

A summary is a request of its own, an attempt of the turn that needs it. When it is stored, the turn is queued again, and builds its
request from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from models.audit.principal import system
from models.database.rows import Db
from models.flow.run.history import joined
from models.pure import folding
from models.pure.folding import Messages, Part
from models.pure.pricing.charges import Charge
from models.session.row import Session
from models.session.turn.fold import RESULTS, TURNS, Fold
from models.session.turn.row import Served, Turn
from models.session.turn.usage import TurnUsage


@dataclass(frozen=True)
class Folding:
    """The turns that a summary will replace."""

    through: int
    """The number of the last turn."""
    seq: int
    """The `Event.seq` of the last message that these turns read."""
    messages: Messages
    """The messages to summarize: an earlier summary, if there is one, and these turns."""


def fit(
    db: Db, session: Session, turn: Turn, parts: Sequence[Part], *, tokens: int, window: int
) -> tuple[Sequence[Part], Folding | None]:
    """Return the parts for a request of so many tokens, and the folding that must come before it, if it is too long.

    Long results of old turns are cut first, for good. If that makes enough room, nothing is folded.

    If the model refused a request as too long, its window is smaller than known: at most these tokens. Then old turns are folded in
    any case, because the turn has no second chance.
    """
    if turn.is_overlong:
        window = min(window, tokens)
    count = folding.leading(parts, tokens, window) if tokens > folding.limit(window) else 0
    if count == 0:
        return parts, None
    old, last = [folding.cut(part) for part in parts[:count]], parts[count - 1]
    if any(after is not before for after, before in zip(old, parts, strict=False)):
        shorter = [*old, *parts[count:]]
        db.insert(_fold(session, turn, RESULTS, last.number, last.seq))
        session.context_tokens = 0
        tokens = tokens * _tokens(shorter) // max(1, _tokens(parts))
        if tokens <= window // 2 and not turn.is_overlong:
            return shorter, None
        parts = shorter
    return parts, Folding(last.number, last.seq, joined(old))


def fold(
    db: Db, session: Session, turn: Turn, replaced: Folding, *, summary: dict[str, Any], charges: Sequence[Charge], served: Served
) -> None:
    """Store the summary of old turns and its charges, and queue the turn again. Raises Stale if another worker took the turn."""
    origin = {"summary": summary, "provider": served.provider, "model": served.model}
    db.insert(_fold(session, turn, TURNS, replaced.through, replaced.seq, **origin))
    session.context_tokens = 0
    TurnUsage.record(db, session, turn, charges)
    turn.end_span(db, session, charges[-1].usage, is_error=False)
    session.emit(db, "agent.thread_context_compacted", {})
    actor = system("turn.run", session.workspace_id)
    turn.note_switches(session, db, served, actor)
    session.note(actor, "turn.folded", turn.id, through=replaced.through, provider=served.provider, model=served.model)
    turn.fold(db, session)


def _tokens(parts: Sequence[Part]) -> int:
    return sum(folding.tokens_of(part.messages) for part in parts)


def _fold(session: Session, turn: Turn, kind: str, through: int, seq: int, **columns: Any) -> Fold:
    ids = {"session_id": session.id, "workspace_id": session.workspace_id, "turn_id": turn.id}
    return Fold(**ids, kind=kind, through=through, seq=seq, created_at=session.now, **columns)
