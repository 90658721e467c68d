"""Spend limits of a workspace, an agent or a person: may a turn's next request begin?

A claim locks the limits that apply, and then reads their running sums: the cost of their periods and the most that requests under
way may cost. So all of them together pass a limit by no more than one reply. At a limit, people are asked whether this session may
spend more.
"""

from collections.abc import Sequence
from datetime import timedelta
from decimal import ROUND_UP, Decimal
from typing import Any

from models.audit.principal import Principal, system
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Invalid, NotFound
from models.flow.spend import budgets
from models.people.member import Member
from models.pure.pricing.charges import Charge
from models.pure.pricing.prices import dollars_of
from models.session.approval.kinds import budget
from models.session.approval.row import Approval
from models.session.locked import Locked, try_lock
from models.session.spending import standing as spend_standing
from models.session.spending.standing import Standing
from models.session.turn.row import Turn
from models.workspace.agent import Agent
from models.workspace.spend_limit import SpendLimit

TOOL = "session.spend_limit"
"""What people are asked for. No tool can have this name."""
BATCH = 500
"""Most sessions that one query returns to resume."""
_SHARE = Decimal("0.1")
"""Share of the limit that a question proposes to spend in addition."""


def hold_back(locked: Locked, turn: Turn, charge: Charge, standings: Sequence[Standing]) -> bool:
    """End or delay a queued turn that a limit does not allow. Returns False if it may begin.

    `charge` is its request's quote, `standings` are the limits that apply, locked (`spend_standing.lock_limits`).
    """
    standings = [standing for standing in standings if standing.limit.amount is not None]
    if not standings:
        return False
    if charge.price is None or (unpriced := budgets.unpriced_model(locked)) is not None:
        model = charge.model if charge.price is None else unpriced
        budgets.stop_at_cap(locked, turn, None, limit=standings[0].limit.id, unpriced=model)
        return True
    more = locked.session.spend_limits_from
    if more is not None and locked.session.list_cost + charge.input_cost < more:
        waits = budgets.cost_with(locked, turn, charge) >= more
    else:
        for standing in standings:
            if not standing.allows(charge.input_cost):
                turn.quote = charge.as_json  # the sweep queues the turn again when the limits leave room for its input
                budgets.stop_at_cap(locked, turn, _question(standing, charge), limit=standing.limit.id)
                return True
        waits = not all(standing.allows(standing.reserved + charge.input_cost) for standing in standings)
    if waits:  # for the requests that are under way
        turn.postpone(locked.now + timedelta(seconds=budgets.AGAIN_SECONDS))
    return waits


def let_spend(locked: Locked, approval: Approval, amount: dict[str, Any]) -> None:
    """Let the session spend in addition the amount that a person allowed. The limit stays, and counts this spend."""
    session = locked.session
    session.spend_limits_from = session.list_cost + dollars_of(amount["amount"])
    locked.note("spend_limit.passed", session.id, approval=approval.id, amount=amount["amount"])


def set_limit(db: Db, by: Principal, scope: tuple[str, str], period: str, amount: Decimal | None) -> SpendLimit:
    """Set a limit (`SpendLimit.put`). Raises Invalid unless the scope names an agent or active member, or this workspace."""
    kind, scope_id = scope
    try:
        if kind == "agent":
            Agent.find(db, scope_id)
        elif kind == "user":
            Member.find(db, scope_id)
        elif scope_id != db.workspace_id:
            raise NotFound("workspace", scope_id)
    except NotFound as missing:
        raise Invalid(f"scope.{kind}_id", str(missing)) from None
    limit, is_new = SpendLimit.put(db, by, scope, period, amount)
    if is_new:
        spend_standing.start(db, limit)
    return limit


def sessions_to_resume(workspace_id: str, after: str = "") -> list[str]:
    """Return the next sessions of a workspace with a question at a limit that has room again: raised, deleted, or in a new period.

    At most BATCH, in the order of their ids, those behind the id `after`.
    """
    with transaction(workspace_id) as db:
        return spend_standing.with_room(db, f"approval.{budget.KIND.sql}", TOOL, after, BATCH)


def resume_at_limit(workspace_id: str, session_id: str) -> None:
    """Withdraw a session's question at a limit and go on, in a transaction of its own. The next claim checks the limits again."""
    with transaction(workspace_id) as db:
        locked = try_lock(db, session_id, system("sweep.resume_at_limits", workspace_id))
        if locked and any(_asks(each) for each in locked.each):
            budgets.resume(locked, "The spend limits have room again.", TOOL)


def _asks(locked: Locked) -> bool:
    """True if the thread waits for people at a limit."""
    approval = Approval.at_cap(locked.db, locked.thread)
    return approval is not None and approval.tool == TOOL and approval.status == "pending"


def _question(standing: Standing, charge: Charge) -> budgets.BudgetQuestion:
    limit = standing.limit
    assert limit.amount is not None, "a limit without an amount allows everything"
    cent = Decimal("0.01")
    most = max(limit.amount * _SHARE, charge.cost or Decimal(0), cent).quantize(cent, rounding=ROUND_UP)
    whose = {"workspace": "the workspace's", "agent": "the agent's", "user": "the person's"}[limit.scope_type]
    reached = f"{whose} {limit.period} limit of ${limit.amount:.2f} is reached"
    prompt = f"Let this session spend ${most:.2f} more? {reached[0].upper()}{reached[1:]}: ${standing.spent:.2f} are spent."
    return budgets.BudgetQuestion(TOOL, most, reached, prompt, "Cents that this session may spend beyond the limit.")
