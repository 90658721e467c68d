"""All threads of a session spend from one budget. Those that reach it wait for one answer of people."""

from decimal import Decimal

import pytest
from rows.crew import Crew, create_agent, roster, send
from rows.spending import COSTS_10, MODEL, PRICE, QUOTE, REACHED, limit
from rows.stage import Stage, call, say

from models.database.transactions import transaction
from models.errors import Invalid
from models.flow.begin import updates
from models.flow.run.turns import correct_usage
from models.flow.spend import budgets
from models.pure.pricing.charges import Charge
from models.pure.pricing.usage import Usage
from models.session.approval.row import Approval
from models.session.thread.row import Thread
from workers.sweeps import resuming

FREE = Charge("anthropic", "m", PRICE, Usage())


@pytest.fixture
def crew(stage: Stage) -> Crew:
    """A coordinator that rests and has spent $10 of $10.50, while both of its sub-agents have a turn to take."""
    stage.quote = QUOTE
    crew = Crew.begin(stage, budget="30", model=MODEL)
    stage.reply(crew.session_id, send("Reader"), send("Writer"), charge=FREE)
    stage.reply(crew.session_id, say("I wait."), charge=COSTS_10)
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE session SET max_list_cost = 10.5 WHERE id = %(id)s", id=crew.session_id)
    return crew


def claim(crew: Crew, number: int) -> object:
    """Claim the turn of a sub-agent."""
    return crew.stage.claim_turn(crew.session_id, crew.thread(number).turn_id or "")


def states(crew: Crew) -> list[str]:
    """The statuses of all threads, the coordinator's first."""
    return [thread.status for thread in (crew.lead, *crew.threads)]


def question(crew: Crew) -> Approval:
    """The only question to people."""
    [approval] = crew.stage.approvals(crew.session_id)
    return approval


def test_threads_that_reach_the_budget_ask_once(stage: Stage, crew: Crew) -> None:
    assert [claim(crew, number) for number in (0, 1)] == [None, None]
    assert states(crew) == ["idle", "waiting", "waiting"]
    assert question(crew).tool == "session.budget"
    assert stage.read(crew.session_id).stop_reason == REACHED
    stage.check(crew.session_id)
    stage.decide(question(crew), result="allow")
    assert states(crew) == ["idle", "running", "running"], "both go on"
    assert claim(crew, 0)
    stage.check(crew.session_id)


def test_a_denial_ends_the_runs_of_all_that_waited(stage: Stage, crew: Crew) -> None:
    assert [claim(crew, number) for number in (0, 1)] == [None, None]
    stage.decide(question(crew), result="deny")
    assert states(crew) == ["idle"] * 3, "a report starts no turn that would reach the budget again"
    assert stage.read(crew.session_id).stop_reason == REACHED
    stage.check(crew.session_id)
    stage.locked(crew.session_id, lambda locked: updates.update(locked, {"budget": Decimal(100)}))
    assert states(crew) == ["idle", "running", "running"], "a raised budget resumes both"
    stage.check(crew.session_id)


def test_a_coordinator_that_waits_too_is_not_asked_again_after_a_denial(stage: Stage) -> None:
    """The reports of its sub-agents start no run that would reach the budget again."""
    stage.quote = QUOTE
    crew = Crew.begin(stage, budget="30", model=MODEL)
    stage.reply(crew.session_id, send("Reader"), charge=COSTS_10)
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE session SET max_list_cost = 10.5 WHERE id = %(id)s", id=crew.session_id)
    assert [claim(crew, 0), stage.claim(crew.session_id)] == [None, None]
    assert states(crew) == ["waiting", "waiting"]
    stage.decide(question(crew), result="deny")
    assert states(crew) == ["idle", "idle"]
    assert question(crew).status == "denied", "nobody is asked again"
    assert stage.read(crew.session_id).stop_reason == REACHED
    stage.check(crew.session_id)
    stage.locked(crew.session_id, lambda locked: updates.update(locked, {"budget": Decimal(100)}))
    assert states(crew) == ["running", "running"]
    stage.check(crew.session_id)


def test_a_passed_deadline_ends_the_runs_of_all_that_waited(stage: Stage, crew: Crew, clock: object) -> None:
    assert [claim(crew, number) for number in (0, 1)] == [None, None]
    clock.advance(90_000)  # type: ignore[attr-defined]
    assert stage.expire(crew.session_id) == 1
    assert states(crew) == ["idle"] * 3
    stage.check(crew.session_id)


def test_the_question_stays_for_the_thread_that_still_waits(stage: Stage, crew: Crew) -> None:
    assert [claim(crew, number) for number in (0, 1)] == [None, None]
    stage.send(crew.session_id, {"type": "user.interrupt", "session_thread_id": crew.thread(0).id})
    assert crew.thread(0).status == "idle"
    assert (question(crew).status, question(crew).thread_id) == ("pending", crew.thread(1).id)
    stage.check(crew.session_id)
    stage.send(crew.session_id, {"type": "user.interrupt", "session_thread_id": crew.thread(1).id})
    assert question(crew).status == "cancelled"


def test_what_a_person_must_decide_comes_before_the_budget(stage: Stage, crew: Crew) -> None:
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE session SET max_list_cost = 100 WHERE id = %(id)s", id=crew.session_id)
    [waiting] = stage.reply(crew.session_id, call(), turn=crew.begin_turn(0), charge=FREE)
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE session SET max_list_cost = 1 WHERE id = %(id)s", id=crew.session_id)
    assert claim(crew, 1) is None
    assert stage.read(crew.session_id).stop_reason == {"type": "requires_action", "event_ids": [waiting.id]}
    stage.check(crew.session_id)


def test_a_request_of_another_thread_delays_a_turn_and_asks_nobody(stage: Stage, crew: Crew) -> None:
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE session SET max_list_cost = 15 WHERE id = %(id)s", id=crew.session_id)
    first = crew.begin_turn(0)
    assert claim(crew, 1) is None
    assert stage.approvals(crew.session_id) == []
    assert crew.thread(1).status == "running"
    stage.locked(crew.session_id, lambda locked: correct_usage(locked, first, []))
    stage.check(crew.session_id)


def test_threads_that_reach_a_shared_limit_ask_once(stage: Stage, crew: Crew) -> None:
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE session SET max_list_cost = NULL WHERE id = %(id)s", id=crew.session_id)
    limit(stage, "10.50")
    assert [claim(crew, number) for number in (0, 1)] == [None, None]
    assert question(crew).tool == "session.spend_limit"
    stage.decide(question(crew), result="allow")
    assert states(crew) == ["idle", "running", "running"]
    stage.check(crew.session_id)


def test_every_model_of_a_roster_needs_a_price(stage: Stage, crew: Crew) -> None:
    unpriced = create_agent(stage, "Cheap", model={"id": "stand-in"})
    lead = create_agent(stage, "Other", model={"id": MODEL}, multiagent=roster(unpriced))
    session_id = stage.session(of_agent=lead)
    with pytest.raises(Invalid, match="stand-in has no price"):
        stage.locked(session_id, budgets.check_budgetable)
    stage.locked(crew.session_id, budgets.check_budgetable)


def test_the_session_s_active_time_counts_overlapping_threads_once(stage: Stage, crew: Crew, clock: object) -> None:
    before = stage.read(crew.session_id)
    clock.advance(100)  # type: ignore[attr-defined]

    def seconds(thread: Thread) -> float:
        return thread.active_for(thread.updated_at)

    now = stage.locked(crew.session_id, lambda locked: locked.now)
    assert stage.read(crew.session_id).active_for(now) - before.active_for(before.updated_at) == pytest.approx(100, abs=5)
    assert sum(thread.active_for(now) - seconds(thread) for thread in crew.threads) == pytest.approx(200, abs=5)


def test_what_people_let_a_session_spend_beyond_a_limit_is_shared_as_well(stage: Stage, crew: Crew) -> None:
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE session SET max_list_cost = NULL WHERE id = %(id)s", id=crew.session_id)
    limit(stage, "10.50")
    assert (claim(crew, 0), claim(crew, 1)) == (None, None)
    stage.decide(question(crew), result="allow", updated_input={"amount": "300", "currency": "USD"})
    assert claim(crew, 0)
    assert claim(crew, 1) is None, "the first may use up the $3"


def test_room_in_a_limit_answers_no_question_about_the_budget(stage: Stage) -> None:
    stage.quote = QUOTE
    crew = Crew.begin(stage, budget="30", model=MODEL)
    stage.reply(crew.session_id, send("Reader"), send("Writer"), charge=FREE)
    stage.reply(crew.session_id, say("I wait."), charge=COSTS_10)
    limit(stage, "10.50")
    assert claim(crew, 0) is None
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE session SET max_list_cost = 10.5 WHERE id = %(id)s", id=crew.session_id)
    assert claim(crew, 1) is None
    [of_budget] = [each for each in stage.approvals(crew.session_id) if each.tool == "session.budget"]
    limit(stage, "1000")
    resuming.resume_at_limits()
    assert stage.get(Approval, of_budget.id).status == "pending"
