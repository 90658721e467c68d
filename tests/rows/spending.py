"""Charges of known cost, and the steps of tests about budgets and shared limits."""

from decimal import Decimal
from typing import Any

from rows.stage import Stage, say

from models.database.transactions import transaction
from models.flow.spend import limits
from models.pure.pricing.charges import Charge
from models.pure.pricing.prices import Price
from models.pure.pricing.usage import Usage
from models.workspace.spend_limit import SpendLimit

PRICE = Price.configured({"input": "1", "output": "1"})
COSTS_10 = Charge("anthropic", "m", PRICE, Usage(output_tokens=10_000_000))
QUOTE = Charge("anthropic", "m", PRICE, Usage(1_000_000, 10_000_000), estimated=True)
"""An input of $1, and a reply of at most $10."""
REACHED = {"type": "budget_reached"}
MODEL = "claude-opus-5-5"
OPERATOR_PRICE = Price("operator", *(Decimal(price) for price in ("4", "20", "0.2", "5", "8")))
USAGE = Usage(1_000, 500, 20_000, 3_000, 1_000, web_fetch_requests=2)
COST = Decimal("0.004") + Decimal("0.01") + Decimal("0.004") + Decimal("0.01") + Decimal("0.008")
PRICED = Charge("anthropic", "claude-opus-5-5", OPERATOR_PRICE, USAGE)


def spent(stage: Stage, budget: str = "10", **more: Any) -> str:
    """A session that has reached its budget, with a message that waits for an answer."""
    session = stage.session(budget=budget, model=MODEL, **more)
    stage.message(session)
    stage.reply(session, say("That was $10."), charge=COSTS_10)
    stage.message(session, "Again.")
    assert stage.claim(session) is None
    return session


def limit(stage: Stage, amount: str | None, scope: tuple[str, str] | None = None, period: str = "monthly") -> SpendLimit:
    """Set a shared limit of `amount` dollars, None for no limit; for the whole workspace by default."""
    dollars = Decimal(amount) if amount else None
    with transaction(stage.workspace_id) as db:
        return limits.set_limit(db, stage.principal, scope or ("workspace", stage.workspace_id), period, dollars)


def begin(stage: Stage, **more: Any) -> str:
    """A session with a message that waits for an answer."""
    session = stage.session(model=MODEL, **more)
    stage.message(session)
    return session


def spend_10(stage: Stage, **more: Any) -> str:
    """A session that has cost $10."""
    session = begin(stage, **more)
    stage.reply(session, say("That was $10."), charge=COSTS_10)
    return session
