"""The steps of tests about long histories."""

from rows.stage import QUOTE, Stage, say

from models.database.transactions import transaction
from models.flow.run.folds import Folding, Summary
from models.flow.run.folds import fold as store
from models.flow.run.turns import queued_turn
from models.pure.pricing.charges import Charge
from models.pure.pricing.usage import Usage
from models.session.locked import Locked
from models.session.turn.fold import Fold
from models.session.turn.row import Served, Turn
from workers.offer import Offer

WINDOW = 4_000
"""In tokens: an input of at most 12,000 characters."""
UNREPORTED = Charge("anthropic", "stand-in", None, Usage())
"""A provider that counts nothing, so that lengths are estimated from the text."""
SUMMARY = {"type": "summary", "text": "They talked.", "provider_data": {"anthropic": {"compaction": {"type": "compaction"}}}}


def claim(stage: Stage, session_id: str) -> tuple[Turn | None, Offer]:
    """Claim the session's turn as a worker does. Returns the turn, if it may begin, and the request that it offers."""
    turn_id = stage.thread(session_id).turn_id or ""
    with transaction(stage.workspace_id) as db:
        queued = queued_turn(db, session_id, turn_id, *Offer.reads(session_id, turn_id))
        assert queued, "there is a turn to claim"
        request = Offer.of(queued)
        return queued.claim("worker", request.charge), request


def offer(stage: Stage, session_id: str) -> tuple[Turn, Offer]:
    """Claim the session's turn, which is free to claim."""
    turn, request = claim(stage, session_id)
    assert turn, "there is a turn to claim"
    return turn, request


def fold(stage: Stage, turn: Turn, folding: Folding, charge: Charge = QUOTE) -> None:
    """Store the summary that the model wrote."""
    served = Served("anthropic", "stand-in")

    def verb(locked: Locked) -> None:
        held = turn.as_held(locked.db)
        store(locked, held, folding, Summary(SUMMARY, [charge], served))

    stage.worked(turn, verb)


def talk(stage: Stage, session_id: str, *numbers: int, characters: int = 1_900, charge: Charge | None = None) -> None:
    """Add turns of these numbers, each with a message and a reply of about `characters` in all."""
    for number in numbers:
        stage.message(session_id, f"Message {number}: " + "m" * (characters // 2))
        stage.reply(session_id, say(f"Reply {number}: " + "r" * (characters // 2)), charge=charge or UNREPORTED)


def folds(stage: Stage, session_id: str) -> list[Fold]:
    """The session's folds, the oldest first."""
    return stage.locked(
        session_id, lambda locked: locked.db.find(Fold, "WHERE session_id = %(id)s ORDER BY through, kind", id=session_id)
    )
