"""The usage of each attempt at a turn is counted exactly once, however it ends, and all sums agree."""

from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from people import member
from rows.spending import COST, OPERATOR_PRICE, PRICED, USAGE
from rows.stage import QUOTE, Stage, say

from models.database.daily_usage import DAYS
from models.database.transactions import transaction
from models.flow.begin.sessions import delete
from models.flow.run.turns import correct_usage
from models.pure.pricing.prices import Price
from models.pure.pricing.usage import COUNTS, NOTHING, Usage
from models.session.turn.row import Turn
from models.session.turn.usage import TurnUsage
from workers.sweeps.watching import add_up_uses


def rows(stage: Stage, session: str) -> list[TurnUsage]:
    """The counted attempts of a session."""
    with transaction(stage.workspace_id) as db:
        return db.find(TurnUsage, "WHERE session_id = %(id)s ORDER BY at, attempt", id=session)


def check_sums(stage: Stage, *sessions: str) -> None:
    """Assert that the attempts, the days and the sessions have the same sums, before and after the sweep."""
    with transaction(stage.workspace_id) as db:
        counts = ", ".join(f"coalesce(sum({name}), 0)" for name in COUNTS)
        money = "coalesce(sum(cost), 0), coalesce(sum(cache_savings), 0)"
        kinds = "count(*), count(*) FILTER (WHERE estimated), count(*) FILTER (WHERE cost IS NULL)"
        days = "coalesce(sum(requests), 0), coalesce(sum(estimated_requests), 0), coalesce(sum(unpriced_requests), 0)"
        [attempts] = db.rows(f"SELECT {counts}, {money}, {kinds} FROM turn_usage")
        [daily] = db.rows(f"SELECT {counts}, {money}, {days} FROM {DAYS}")
    add_up_uses()
    with transaction(stage.workspace_id) as db:
        [summed] = db.rows(f"SELECT {counts}, {money}, {days} FROM daily_usage")
        assert not db.find(TurnUsage, "WHERE NOT summed")
    sums: dict[str, Any] = {}
    for session in sessions:
        for name, value in stage.read(session).usage.items():
            sums[name] = sums.get(name, 0) + Decimal(value)
    names = (*COUNTS, "cost", "cache_savings", "requests", "estimated_requests", "unpriced_requests")
    assert attempts == daily == summed == tuple(sums.get(name, 0) for name in names)


def test_a_reply_is_counted_with_its_price(stage: Stage) -> None:
    session = stage.session()
    stage.message(session)
    stage.reply(session, say("Hello."), charge=PRICED)
    [row] = rows(stage, session)
    assert (row.cost, row.estimated, row.model) == (COST, False, "claude-opus-5-5")
    assert row.price == OPERATOR_PRICE.as_json
    assert Price.of(row.price) == OPERATOR_PRICE
    used = stage.events(session, "session.usage")[-1].body["usage"]
    assert used["list_cost"] == {"amount": "4", "currency": "USD"}
    assert Decimal(used["exact_list_cost"]) == COST
    assert used["cache_creation"] == {"ephemeral_5m_input_tokens": 2_000, "ephemeral_1h_input_tokens": 1_000}
    check_sums(stage, session)


def test_an_unknown_price_is_null_and_the_sum_counts_unpriced_requests(stage: Stage) -> None:
    session = stage.session()
    stage.message(session)
    stage.reply(session, say("One."))
    used = stage.events(session, "session.usage")[-1].body["usage"]
    assert (used["list_cost"], used["exact_list_cost"], used["cache_savings"], used["unpriced_requests"]) == (None, None, None, 1)
    stage.message(session)
    stage.reply(session, say("Two."), charge=PRICED)
    used = stage.events(session, "session.usage")[-1].body["usage"]
    assert (Decimal(used["exact_list_cost"]), used["requests"], used["unpriced_requests"]) == (COST, 2, 1)
    assert rows(stage, session)[0].cost is None
    check_sums(stage, session)


def test_a_failed_attempt_is_counted_if_a_model_began_to_answer(stage: Stage, clock: Any) -> None:
    session = stage.session()
    stage.message(session)
    stage.fail(stage.begin(session))
    assert rows(stage, session) == [], "a refused request costs nothing"
    clock.advance(61)
    stage.fail(stage.begin(session), charges=[QUOTE.for_early_end(USAGE)])
    clock.advance(61)
    stage.reply(session, say("At last."), charge=PRICED)
    assert [(row.attempt, row.estimated, row.input_tokens) for row in rows(stage, session)] == [(2, True, 1_000), (3, False, 1_000)]
    check_sums(stage, session)


def test_a_lost_attempt_is_counted_at_its_highest_possible_cost(stage: Stage, clock: Any) -> None:
    session = stage.session()
    stage.message(session)
    turn = stage.begin(session)
    stage.lose(turn, clock)
    [row] = rows(stage, session)
    assert (row.estimated, row.input_tokens, row.output_tokens) == (True, QUOTE.usage.input_tokens, QUOTE.usage.output_tokens)
    stage.rescue(turn)
    assert len(rows(stage, session)) == 1, "a second rescue counts nothing"
    check_sums(stage, session)


def test_the_worker_of_an_ended_attempt_replaces_the_estimate_once(stage: Stage) -> None:
    session = stage.session()
    stage.message(session)
    turn = stage.begin(session)
    stage.send(session, {"type": "user.interrupt"})
    assert [row.estimated for row in rows(stage, session)] == [True]
    events = len(stage.events(session))
    for charge in (PRICED, QUOTE):
        stage.worked(turn, lambda locked, charge=charge: correct_usage(locked, turn, [charge]))
    [row] = rows(stage, session)
    assert (row.estimated, row.cost, row.model) == (False, COST, "claude-opus-5-5")
    assert len(stage.events(session)) == events, "nothing follows the end of the run"
    check_sums(stage, session)


def test_the_usage_of_a_deleted_session_stays_counted(stage: Stage) -> None:
    session = stage.session()
    stage.message(session)
    stage.reply(session, say("Hello."), charge=PRICED)
    stage.locked(session, delete)
    assert [row.cost for row in rows(stage, session)] == [COST]


def test_unreported_counts_are_taken_from_the_estimate() -> None:
    assert QUOTE.for_early_end(None) == QUOTE
    assert QUOTE.for_early_end(NOTHING).usage == Usage(QUOTE.usage.input_tokens, 0)
    assert QUOTE.for_early_end(Usage(7, 3)).usage == Usage(7, 3)


STEPS = st.lists(st.sampled_from(["reply", "fail", "fail free", "lose", "interrupt", "late report"]), max_size=12)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_all_sums_agree_after_any_endings(clean_database: object, clock: Any, steps: list[str]) -> None:
    stage = Stage()
    sessions = [stage.session(), stage.session()]
    turns: dict[str, Turn] = {}
    for number, step in enumerate(steps):
        session = sessions[number % 2]
        if stage.read(session).status == "idle":
            stage.message(session)
        clock.advance(61)
        if step == "late report":
            if session in turns:
                late = turns[session]
                stage.worked(late, lambda locked, late=late: correct_usage(locked, late, [PRICED, QUOTE]))
            continue
        turn = turns[session] = stage.begin(session)
        if step == "reply":
            stage.reply(session, say("."), turn=turn, charge=PRICED)
        elif step == "interrupt":
            stage.send(session, {"type": "user.interrupt"})
        elif step == "lose":
            clock.advance(61)
            stage.rescue(turn)
        else:
            stage.fail(turn, charges=[QUOTE.for_early_end(USAGE)] * 2 if step == "fail" else [])
    check_sums(stage, *sessions)


def test_each_request_of_a_late_attempt_is_paid_by_who_asked_for_it(stage: Stage) -> None:
    stage.quote = QUOTE
    anna, ben = member(stage), member(stage)
    session = stage.session()
    stage.send(session, {"type": "user.message", "content": [say("a")], "on_behalf_of": f"user:{anna.person_id}"})
    turn = stage.begin(session)
    stage.send(session, {"type": "user.interrupt"})
    stage.send(session, {"type": "user.message", "content": [say("b")], "on_behalf_of": f"user:{ben.person_id}"})
    stage.locked(session, lambda locked: correct_usage(locked, turn, [PRICED, PRICED]))
    assert [row.person_id for row in rows(stage, session)] == [anna.person_id] * 2
