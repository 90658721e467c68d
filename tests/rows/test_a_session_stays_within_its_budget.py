"""A session exceeds its budget by no more than one reply. Then it waits, people are asked, and a raise lets it go on."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from rows.spending import COSTS_10, MODEL, QUOTE, REACHED, spent
from rows.stage import Stage, call, say

from models.errors import Invalid
from models.flow.begin import updates
from models.flow.run.turns import correct_usage
from models.flow.spend import budgets
from models.pure.pricing.usage import Usage
from models.session.turn.row import Turn


@pytest.fixture
def stage(stage: Stage) -> Stage:
    """A stage whose requests have a price."""
    stage.quote = QUOTE
    return stage


def update(stage: Stage, session: str, budget: str | None) -> None:
    dollars = Decimal(budget) if budget else None
    stage.locked(session, lambda locked: updates.update(locked, {"budget": dollars}))


def test_a_request_begins_only_below_the_budget(stage: Stage) -> None:
    session = spent(stage, "10.99")
    row = stage.read(session)
    assert (row.status, row.stop_reason) == ("waiting", REACHED)
    *_, usage, requested, idle = stage.events(session)
    assert (usage.type, requested.type, idle.type) == ("session.usage", "approval.requested", "session.status_idle")
    assert usage.body["budget"] == {"type": "limit", "max_list_cost": {"amount": "1099", "currency": "USD"}}
    assert idle.body == {"stop_reason": REACHED}
    stage.check(session)


def test_a_request_that_begins_below_the_budget_may_exceed_it(stage: Stage) -> None:
    session = stage.session(budget="11.01")
    for _ in range(2):
        stage.message(session)
        stage.reply(session, say("$10"), charge=COSTS_10)
    assert stage.read(session).list_cost == 20
    stage.message(session)
    assert stage.claim(session) is None


def test_a_request_under_way_counts_at_its_highest_possible_cost(stage: Stage) -> None:
    """So does an ended request, until its worker has reported the usage."""
    session = stage.session(budget="12")

    def admitted() -> bool:
        beside = Turn(id="turn_beside")
        return stage.locked(session, lambda locked: budgets.admits(locked, beside, QUOTE))

    assert admitted()
    stage.message(session)
    turn = stage.begin(session)
    assert not admitted(), "$11 are reserved, and the input costs $1"
    stage.send(session, {"type": "user.interrupt"})
    assert not admitted(), "nobody knows yet what the reply cost"
    report = replace(QUOTE, usage=Usage(1_000_000, 1_000_000))
    stage.worked(turn, lambda locked: correct_usage(locked, turn, [report]))
    assert admitted(), "it cost $2"


def test_an_allow_raises_the_budget_and_the_run_goes_on(stage: Stage) -> None:
    session = spent(stage)
    [approval] = stage.approvals(session)
    assert (approval.kind, approval.tool) == ("budget", "session.budget")
    [requested] = stage.events(session, "approval.requested")
    assert (approval.tool_call_id, requested.body["tool_use_id"]) == (None, None), "no call waits"
    assert approval.prompt == "Raise this session's budget from $10.00 to $20.00 (spent: $10.00)?"
    stage.decide(approval, result="allow")
    assert (stage.read(session).status, stage.read(session).max_list_cost) == ("running", 20)
    assert [block["text"] for message in stage.history(session) for block in message["content"]] == [
        "Do it.",
        "That was $10.",
        "Again.",
    ]
    stage.reply(session, say("Again."), charge=COSTS_10)
    assert stage.read(session).stop_reason == {"type": "end_turn"}
    assert not stage.events(session, "user.tool_confirmation"), "no client ever saw a call"
    stage.check(session)


@pytest.mark.parametrize(
    ("budget", "prompt"),
    [
        ("1.01", "Raise this session's budget from $1.01 to $20.00 (spent: $10.00)?"),
        ("0.50", "Raise this session's budget from $0.50 to $2.00 (spent: $0.00)?"),
    ],
)
def test_the_proposed_budget_lets_the_next_request_begin(stage: Stage, budget: str, prompt: str) -> None:
    stage.quote = QUOTE
    session = stage.session(budget=budget, model=MODEL)
    stage.message(session)
    if budget == "1.01":
        stage.reply(session, say("That was $10."), charge=COSTS_10)
        stage.message(session, "Again.")
    assert stage.claim(session) is None
    [approval] = stage.approvals(session)
    assert approval.prompt == prompt
    stage.decide(approval, result="allow")
    assert stage.claim(session) is not None


def test_a_person_may_allow_another_positive_amount(stage: Stage) -> None:
    session = spent(stage)
    [approval] = stage.approvals(session)
    for amount in ("0", "-5", "1.5", ""):
        with pytest.raises(Invalid, match="updated_input"):
            stage.decide(approval, result="allow", updated_input={"amount": amount, "currency": "USD"})
    with pytest.raises(Invalid, match="scope"):
        stage.decide(approval, result="allow", scope="always")
    stage.decide(approval, result="allow", updated_input={"amount": "250", "currency": "USD"})
    assert stage.read(session).max_list_cost == Decimal("12.5")


@pytest.mark.parametrize("end", ["deny", "expire"])
def test_after_a_denial_or_expiry_the_session_rests_until_the_budget_is_raised(stage: Stage, clock: Any, end: str) -> None:
    session = spent(stage)
    [approval] = stage.approvals(session)
    if end == "deny":
        stage.decide(approval, result="deny")
    else:
        clock.advance(86_401)
        stage.expire(session)
    row = stage.read(session)
    assert (row.status, row.stop_reason) == ("idle", REACHED)
    stage.check(session)
    update(stage, session, "30")
    assert stage.read(session).status == "running"
    stage.reply(session, say("Again."), charge=COSTS_10)
    stage.check(session)


@pytest.mark.parametrize("budget", ["30", None])
def test_raising_or_removing_the_budget_lets_the_run_go_on_and_withdraws_the_approval(stage: Stage, budget: str | None) -> None:
    session = spent(stage)
    update(stage, session, budget)
    assert [approval.status for approval in stage.approvals(session)] == ["cancelled"]
    stage.reply(session, say("Again."), charge=COSTS_10)
    assert stage.events(session, "session.updated")[-1].body["budget"] == stage.read(session).budget
    stage.check(session)


@pytest.mark.parametrize(("created", "budget", "code"), [(None, "5", "budget_create_only"), ("20", "10", "budget_not_raised")])
def test_a_budget_is_set_at_creation_and_cannot_go_below_the_cost(
    stage: Stage, created: str | None, budget: str, code: str
) -> None:
    session = stage.session(budget=created)
    stage.message(session)
    stage.reply(session, say("$10"), charge=COSTS_10)
    with pytest.raises(Invalid) as refused:
        update(stage, session, budget)
    assert refused.value.code == code


def test_a_removed_budget_cannot_come_back(stage: Stage) -> None:
    session = stage.session(budget="20")
    update(stage, session, None)
    with pytest.raises(Invalid) as refused:
        update(stage, session, "30")
    assert refused.value.code == "budget_create_only"


def test_a_model_without_a_price_cannot_be_budgeted(stage: Stage) -> None:
    session = stage.session(budget="20")
    with pytest.raises(Invalid) as refused:
        update(stage, session, "30")
    assert refused.value.code == "model_not_budgetable"
    stage.quote = replace(QUOTE, price=None)
    stage.message(session)
    assert stage.claim(session) is None
    assert (stage.read(session).status, stage.approvals(session)) == ("idle", []), "to raise it would not help"


def test_a_client_that_cannot_approve_is_not_asked(stage: Stage) -> None:
    session = spent(stage, on_ask="deny")
    assert (stage.read(session).status, stage.read(session).stop_reason, stage.approvals(session)) == ("idle", REACHED, [])


def test_an_interrupt_withdraws_the_approval(stage: Stage) -> None:
    session = spent(stage)
    stage.send(session, {"type": "user.interrupt"})
    assert (stage.read(session).status, stage.read(session).stop_reason["type"]) == ("idle", "end_turn")
    assert [approval.status for approval in stage.approvals(session)] == ["cancelled"]
    stage.check(session)


def test_results_are_kept_while_the_budget_is_reached(stage: Stage) -> None:
    session = stage.session(budget="10", bash="always_allow")
    stage.message(session)
    [run] = stage.reply(session, call(), charge=COSTS_10)
    stage.run_call(run, "the result")
    assert stage.claim(session) is None
    [approval] = stage.approvals(session)
    stage.decide(approval, result="allow")
    assert stage.history(session)[-1]["content"][0]["content"][0]["text"] == "the result"
    assert stage.thread(session).turn_count == 2, "a turn that did not run does not count"
    stage.reply(session, say("Done."), charge=COSTS_10)
    stage.check(session)
