"""Long histories: before a request would pass its model's window, old results are cut, and then a summary replaces old turns.

A summary is a request of its own, an attempt of the turn that needs it. When it is stored, the turn is queued again, and builds its
request from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from models.flow.run.history import joined
from models.pure import folding as rules
from models.pure.folding import Messages, Part
from models.pure.pricing.charges import Charge
from models.session.locked import Locked
from models.session.turn.events import ContextCompacted
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


def fit(locked: Locked, turn: Turn, parts: Sequence[Part], *, tokens: int, window: int) -> tuple[Sequence[Part], Folding | None]:
    """Return the parts for a request of so many tokens, and the folding that must come before it, if it is too long.

    Long results of old turns are cut first, for good. If that makes enough room, nothing is folded.

    If the model refused a request as too long, its window is smaller than known: at most these tokens. Then old turns are folded in
    any case, because the turn has no second chance.
    """
    if turn.is_overlong:
        window = min(window, tokens)
    count = rules.leading(parts, tokens, window) if tokens > rules.limit(window) else 0
    if count == 0:
        return parts, None
    old, last = [rules.cut(part) for part in parts[:count]], parts[count - 1]
    if any(after is not before for after, before in zip(old, parts, strict=False)):
        shorter = [*old, *parts[count:]]
        locked.db.insert(_fold(locked, turn, RESULTS, last.number, last.seq))
        locked.thread.context_tokens = 0
        tokens = tokens * _tokens(shorter) // max(1, _tokens(parts))
        if tokens <= window // 2 and not turn.is_overlong:
            return shorter, None
        parts = shorter
    return parts, Folding(last.number, last.seq, joined(old))


@dataclass(frozen=True)
class Summary:
    """A model's summary of old turns."""

    content: dict[str, Any]
    charges: Sequence[Charge]
    """The charges of the attempt's requests; the last one is the summary's."""
    served: Served
    """The model that wrote it."""


def fold(locked: Locked, turn: Turn, folding: Folding, summary: Summary) -> None:
    """Store the summary of old turns and its charges, and queue the turn again. Raises Stale if another worker took the turn."""
    locked = locked.at(turn)
    origin = {"provider": summary.served.provider, "model": summary.served.model}
    locked.db.insert(_fold(locked, turn, TURNS, folding.through, folding.seq, summary=summary.content, **origin))
    locked.thread.context_tokens = 0
    TurnUsage.record(locked, turn, summary.charges)
    turn.end_span(locked, summary.charges[-1].usage, is_error=False)
    locked.emit(ContextCompacted(type="agent.thread_context_compacted"))
    turn.note_switches(locked, summary.served)
    locked.note("turn.folded", turn.id, through=folding.through, **origin)
    turn.fold(locked)


def _tokens(parts: Sequence[Part]) -> int:
    return sum(rules.tokens_of(part.messages) for part in parts)


def _fold(locked: Locked, turn: Turn, kind: str, through: int, seq: int, **columns: Any) -> Fold:
    ids = {"session_id": turn.session_id, "thread_id": turn.thread_id, "workspace_id": turn.workspace_id, "turn_id": turn.id}
    return Fold(**ids, kind=kind, through=through, seq=seq, created_at=locked.now, **columns)
