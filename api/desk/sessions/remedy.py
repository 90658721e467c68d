"""What helps a session that waits, failed, reached a limit or ran out of money. The page offers it beside the state.

A failed run goes on by a message, as it does for every client of the API: `Retry` sends `RETRY`, and so does `Go on` after a limit.
The history keeps what was done, so the model goes on where it stopped.
"""

from dataclasses import dataclass
from decimal import ROUND_UP, Decimal

from models.database.rows import Db
from models.people.principal import PersonPrincipal
from models.pure.text.relative_time import number_with_noun
from models.session.approval.row import Approval
from models.session.row import Session
from models.session.thread.row import Thread, own_id
from models.session.turn.row import Turn

RETRY = "Please go on."
"""The message that `Retry` and `Go on` send."""


@dataclass(frozen=True)
class Remedy:
    """What the page offers."""

    kind: str
    """`decide`, `wait`, `retry`, `go_on`, `raise`, `rewrite` or `limit`; empty if there is nothing to do."""
    words: str = ""
    target: str = ""
    """Of `decide`: the approval that has waited longest."""
    amount: str = ""
    """Of `raise`: a budget in dollars with which the run goes on."""


def remedy_of(db: Db, person: PersonPrincipal, session: Session, waiting: list[Approval]) -> Remedy:
    """Return what helps a session. `waiting`: its approvals that wait, the oldest first."""
    if waiting:
        return Remedy("decide", target=waiting[0].id)
    reason = session.stop_reason["type"] if session.stop_reason else ""
    if session.status == "rescheduling":
        return Remedy("wait", "The model failed, and the turn is tried again by itself.")
    limit = session.stop_reason.get("limit_reached", "") if session.stop_reason else ""
    if session.status != "idle" or (reason in {"", "end_turn"} and not limit) or "sessions" not in person.scopes:
        return Remedy("")
    if limit:
        return Remedy("go_on", _AT_LIMIT[limit].format(turns=number_with_noun(session.max_turns, "turn")))
    if reason in {"budget_reached", "refusal"}:
        refusal = "The model refused. Its refusal is not in the history: write another message."
        return _more_money(session) if reason == "budget_reached" else Remedy("rewrite", refusal)
    thread = db.get_one(Thread, session.id, own_id(session.id))
    turn = db.get(Turn, thread.turn_id) if thread.turn_id else None
    is_left_out = turn is not None and turn.stop_reason == "unacceptable"
    left_out = "The model cannot take the last message, and the history leaves it out: write another one."
    return Remedy("rewrite", left_out) if is_left_out else Remedy("retry")


_AT_LIMIT = {
    "max_turns": "The agent has used the {turns} that a message gives it, and has not finished.",
    "max_tokens": "The model's reply was longer than the model may write at once.",
    "context_window": "The conversation filled the model's context window.",
}
"""By the limit at which the run ended."""


def _more_money(session: Session) -> Remedy:
    if session.max_list_cost is None or session.list_cost < session.max_list_cost / 2:
        return Remedy("limit", "A spend limit is reached. An admin can raise it on the page of usage and limits.")
    amount = (2 * max(session.max_list_cost, session.list_cost)).quantize(Decimal("0.01"), rounding=ROUND_UP)
    return Remedy("raise", amount=str(amount))
