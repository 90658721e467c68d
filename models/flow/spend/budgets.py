"""Budgets: the most that a session may cost at list prices.

Before each request, what the session has cost and what the request's input may cost must be below the budget. So a session passes
its budget by no more than one reply. Then the run rests with `budget_reached`, and people are asked whether to raise the budget.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_UP, Decimal
from typing import Any

from models.audit.text import Text
from models.errors import Invalid
from models.flow.carry_on.next_step import BUDGET_REACHED as REACHED
from models.flow.carry_on.next_step import go_on, rest, wait, withdraw
from models.flow.judge.grants import session_policies
from models.flow.spend.pricing import price_of
from models.pure.pricing.charges import Charge
from models.pure.pricing.money import monetary
from models.pure.pricing.prices import dollars_of
from models.session.approval.kinds import budget
from models.session.approval.row import Approval
from models.session.event.of_session import SessionUpdated
from models.session.locked import Locked
from models.session.row import Session
from models.session.turn.row import Turn
from models.settings import providers
from models.workspace import roster

AGAIN_SECONDS = 2
"""Pause of a turn while other requests may still use up what a cap leaves."""
_CENT = Decimal("0.01")


def admits(locked: Locked, turn: Turn, charge: Charge) -> bool:
    """True if the budget allows the turn's next request, whose quote is `charge`.

    Requests of the session that are under way count with the most that they may cost.
    """
    session = locked.session
    if session.max_list_cost is None:
        return True
    if charge.price is None or session.usage.get("unpriced_requests"):
        return False
    return cost_with(locked, turn, charge) < session.max_list_cost


def cost_with(locked: Locked, turn: Turn, charge: Charge) -> Decimal:
    """Return what the session has cost, with the input of the turn's next request and the most that requests under way may cost."""
    quotes = locked.db.rows(_UNDER_WAY, session=locked.session.id, turn=turn.id)
    reserved = sum((Charge.of(quote).cost or Decimal(0) for (quote,) in quotes), Decimal(0))
    return locked.session.list_cost + reserved + charge.input_cost


_UNDER_WAY = "SELECT quote FROM turn WHERE session_id = %(session)s AND status = 'running' AND id <> %(turn)s AND quote IS NOT NULL"


@dataclass(frozen=True)
class BudgetQuestion:
    """A question to people at a cap: may the session spend `amount` more?"""

    tool: str
    """`budget.TOOL`, or `limits.TOOL`."""
    amount: Decimal
    rule: str
    prompt: str
    unit: str = "Cents by which the budget is raised."


def reach(locked: Locked, turn: Turn, charge: Charge) -> None:
    """End or delay a queued turn that the budget does not allow. People are asked to raise the budget, if that would help.

    The turn is delayed while only requests of other threads may still use up the budget.
    """
    session = locked.session
    measurable = charge.price is not None and not session.usage.get("unpriced_requests")
    if measurable and session.max_list_cost is not None and session.list_cost + charge.input_cost < session.max_list_cost:
        turn.postpone(locked.now + timedelta(seconds=AGAIN_SECONDS))
        return
    stop_at_cap(locked, turn, _question(locked.session, cost_with(locked, turn, charge)) if measurable else None)


def stop_at_cap(locked: Locked, turn: Turn, question: BudgetQuestion | None, **cap: Any) -> None:
    """End a queued turn that a cap does not allow. The run rests; people are asked, unless `question` is None.

    Threads of a session that reach a cap while people are asked about it wait for the same answer. `cap`: facts about the cap,
    for the audit.
    """
    session = locked.session
    turn.fail(locked, "budget_reached")
    locked.thread.turn_count -= 1  # it has not run
    locked.note("budget.reached", session.id, list_cost=session.usage.get("cost", "0"), turn=turn.id, **cap)
    locked.report_usage()
    if session.on_ask == "deny" or question is None:
        locked.thread.cap_approval_id = None
        rest(locked, REACHED)
        return
    locked.thread.cap_approval_id = _pending(locked, question.tool) or _ask(locked, question)
    wait(locked, REACHED)


def _pending(locked: Locked, tool: str) -> str | None:
    """Return the id of the question about this cap for which another thread of the session waits."""
    questions = [Approval.at_cap(locked.db, each.thread) for each in locked.each if each.thread.status == "waiting"]
    return next((each.id for each in questions if each and each.status == "pending" and each.tool == tool), None)


def replace(locked: Locked, budget: Decimal | None) -> bool:
    """Replace or remove the budget. `resume` then goes on. Returns False if nothing changes. Raises Invalid."""
    session = locked.session
    if budget == session.max_list_cost:
        return False
    if session.max_list_cost is None:
        raise Invalid("budget", "can only be set when the session is created.", code="budget_create_only")
    if budget is not None:
        if budget <= session.list_cost:
            spent = monetary(session.list_cost)["amount"]
            message = f"max_list_cost: must be above what the session has cost, {spent} cents; or remove the budget with null."
            raise Invalid("budget", message, code="budget_not_raised")
        check_budgetable(locked)
    session.max_list_cost = budget
    return True


def check_budgetable(locked: Locked) -> None:
    """Raise Invalid unless every model that may reply, also as a sub-agent, has a price."""
    agent = locked.session.configured(locked.db)
    for body in (agent, *roster.bodies(locked.db, agent)):
        if (name := _unpriced(locked, body["model"])) is not None:
            raise Invalid(
                "budget",
                f"{name} has no price, so that its cost cannot be measured; leave the budget out, or configure a price.",
                code="model_not_budgetable",
            )


def unpriced_model(locked: Locked) -> str | None:
    """Return the first model that may reply in the thread at hand and has no known price: its agent's, or a fallback. None: each
    has a price."""
    return _unpriced(locked, locked.agent["model"])


def _unpriced(locked: Locked, model: Mapping[str, Any]) -> str | None:
    defaults = locked.policies.get("model") or {}
    excluded = providers.excluded(model, defaults)
    own = model.get("fallbacks")
    for name in (model["id"], *((defaults.get("fallbacks") or []) if own is None else own)):
        entry = providers.serving(name, excluded)
        if entry is not None and price_of(entry.name, name, locked.now) is None:
            return str(name)
    return None


def raise_by(locked: Locked, approval: Approval, amount: dict[str, Any]) -> None:
    """Raise the budget by the amount that a person allowed."""
    session = locked.session
    assert session.max_list_cost is not None, "the question is withdrawn with the budget"
    session.max_list_cost += dollars_of(amount["amount"])
    locked.tell(SessionUpdated(type="session.updated", budget=session.budget))
    locked.note("budget.raised", session.id, approval=approval.id, amount=amount["amount"])


def resume(locked: Locked, why: str = "The budget was changed.", tool: str = budget.TOOL) -> None:
    """Continue the runs that rest at a cap, after the cap changed by other means than its approval. Withdraws that approval.

    `tool` is that of the cap's question. A run that waits for the question of another cap goes on waiting.
    """
    for each in locked.each:
        question = Approval.at_cap(locked.db, each.thread)
        is_of_cap = question is None or question.tool == tool
        if each.thread.stop_reason == REACHED and each.thread.status in {"idle", "waiting"} and is_of_cap:
            withdraw(each, why)
            go_on(each)


def _question(session: Session, due: Decimal) -> BudgetQuestion:
    """Return the question whether to raise the budget to twice what it is or was spent, so that the next request fits."""
    most, spent = session.max_list_cost, session.list_cost
    assert most is not None, "there is a budget"
    proposed = 2 * max(most, spent)
    if proposed <= due:
        proposed = 2 * due
    proposed = proposed.quantize(_CENT, rounding=ROUND_UP)
    prompt = f"Raise this session's budget from ${most:.2f} to ${proposed:.2f} ({budget.spent_in_words(spent)})?"
    return BudgetQuestion(budget.TOOL, proposed - most, f"the budget of ${most} is reached", prompt)


def _ask(locked: Locked, question: BudgetQuestion) -> str:
    """Ask people. Returns the approval's id."""
    asking = session_policies(locked).asking_beyond_tools(question.prompt, _schema(question.unit))
    about = {"kind": budget.KIND.name, "tool": question.tool, "rule": question.rule}
    approval = Approval.ask_beyond_calls(locked, asking, monetary(question.amount), **about)
    approval.put(locked)
    locked.note("budget.asked", approval.id, rule=Text(question.rule))
    return approval.id


def _schema(unit: str) -> dict[str, Any]:
    """Return the schema of the amount that people may change."""
    return {
        "type": "object",
        "properties": {
            "amount": {"type": "string", "pattern": "^[1-9][0-9]{0,11}$", "description": unit},
            "currency": {"type": "string", "enum": ["USD"]},
        },
        "required": ["amount", "currency"],
        "additionalProperties": False,
    }
