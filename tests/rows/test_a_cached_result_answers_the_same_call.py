"""The same call of a tool with cacheable results runs once. Policies judge each call all the same."""

from typing import Any

import pytest
from rows.stage import Stage, call, entry, say

from models.session.tool_call.row import ToolCall
from models.workspace import toolset

LOOK = "mcp__shop__look"


def _session(stage: Stage, policy: str = "always_allow") -> str:
    return stage.session(servers={"shop": "assent:orders"}, shop=policy)


def _look(stage: Stage, session: str, n: int = 1) -> ToolCall:
    return stage.propose(session, call(LOOK, n=n))


def _cached(stage: Stage, tool_call: ToolCall) -> bool:
    """Settle a call. Returns whether a cached result answered it."""
    held = stage.claim_call(tool_call)
    if held:
        stage.finish_call(held, f"seen by {tool_call.id}", structured={"by": tool_call.id})
    stage.reply(tool_call.session_id, say("Done."))
    stage.check(tool_call.session_id)
    return held is None


@pytest.fixture(autouse=True)
def announced(clean_database: object) -> None:
    """A tool whose results hold for a minute, within a session."""
    toolset.announce({"orders": [entry("look", cache={"seconds": 60, "scope": "session"})]})


def test_the_same_call_gets_the_same_result_which_says_so(stage: Stage) -> None:
    session = _session(stage)
    first = _look(stage, session)
    assert not _cached(stage, first)
    second = _look(stage, session)
    assert _cached(stage, second)
    assert stage.result(second) == f"seen by {first.id}"
    event = stage.events(session, "agent.mcp_tool_result")[-1]
    assert event.body["cached"]["tool_use_id"] == first.id
    assert event.body["structured_content"] == {"by": first.id}
    assert stage.get(ToolCall, second.id).attempt == 0


def test_another_input_is_another_call(stage: Stage) -> None:
    session = _session(stage)
    assert not _cached(stage, _look(stage, session, 1))
    assert not _cached(stage, _look(stage, session, 2))


def test_a_result_is_cached_for_its_time_only(stage: Stage, clock: Any) -> None:
    session = _session(stage)
    assert not _cached(stage, _look(stage, session))
    clock.advance(61)
    assert not _cached(stage, _look(stage, session))


def test_using_a_cached_result_does_not_extend_its_time(stage: Stage, clock: Any) -> None:
    session = _session(stage)
    assert not _cached(stage, _look(stage, session))
    clock.advance(40)
    assert _cached(stage, _look(stage, session))
    clock.advance(40)
    assert not _cached(stage, _look(stage, session))


def test_a_cached_result_stays_in_its_session_unless_its_tool_shares_it_in_the_workspace(stage: Stage) -> None:
    assert not _cached(stage, _look(stage, _session(stage)))
    assert not _cached(stage, _look(stage, _session(stage)))
    toolset.announce({"orders": [entry("look", cache={"seconds": 60, "scope": "workspace"})]})
    assert not _cached(stage, _look(stage, _session(stage)))
    assert _cached(stage, _look(stage, _session(stage)))


def test_a_cached_result_never_leaves_its_workspace(stage: Stage) -> None:
    toolset.announce({"orders": [entry("look", cache={"seconds": 60, "scope": "workspace"})]})
    assert not _cached(stage, _look(stage, _session(stage)))
    other = Stage()
    assert not _cached(other, _look(other, _session(other)))


def test_an_error_is_not_cached(stage: Stage) -> None:
    session = _session(stage)
    stage.run_call(_look(stage, session), "no", is_error=True)
    stage.reply(session, say("Done."))
    assert not _cached(stage, _look(stage, session))


def test_a_result_of_a_tool_that_has_changed_since_is_not_used(stage: Stage) -> None:
    session = _session(stage)
    assert not _cached(stage, _look(stage, session))
    toolset.announce({"orders": [entry("look", description="otherwise", cache={"seconds": 60, "scope": "session"})]})
    assert not _cached(stage, _look(stage, session))


def test_policies_judge_a_call_with_a_cached_result(stage: Stage) -> None:
    session = _session(stage, "always_ask")
    first = _look(stage, session)
    stage.confirm(session, first.id)
    assert not _cached(stage, first)
    second = _look(stage, session)
    assert second.status == "asked"
    assert stage.claim_call(second) is None
    assert stage.get(ToolCall, second.id).status == "asked"
    stage.confirm(session, second.id)
    assert _cached(stage, second)


def test_a_person_s_account_of_a_lost_call_is_not_cached(stage: Stage, clock: Any) -> None:
    session = _session(stage)
    held = stage.begin_call(_look(stage, session))
    clock.advance(55)
    stage.rescue(held)
    stage.decide(stage.approvals(session)[-1], outcome="happened", content=(say("I think so."),))
    stage.reply(session, say("Done."))
    assert not _cached(stage, _look(stage, session))


def test_a_result_that_depends_on_a_person_s_answers_is_not_cached(stage: Stage) -> None:
    session = _session(stage)
    first = _look(stage, session)
    held = stage.begin_call(first)
    stage.finish_call(held, "", question={"requests": {"who": {"message": "Whose?", "schema": {}}}, "state": None})
    stage.decide(stage.approvals(session)[-1], result="allow", answers={"who": {"action": "accept", "content": {}}})
    stage.run_call(first, "theirs")
    stage.reply(session, say("Done."))
    assert not _cached(stage, _look(stage, session))


def test_a_long_result_stays_in_the_session_that_can_read_all_of_it(stage: Stage) -> None:
    toolset.announce({"orders": [entry("look", cache={"seconds": 60, "scope": "workspace"})]})
    session = _session(stage)
    stage.finish_call(stage.begin_call(_look(stage, session)), "its ends", whole=b"all of it")
    stage.reply(session, say("Done."))
    assert _cached(stage, _look(stage, session))
    assert not _cached(stage, _look(stage, _session(stage)))


def test_a_lost_call_runs_again_under_its_key_instead_of_taking_another_call_s_result(stage: Stage, clock: Any) -> None:
    """Only the tool knows, by the key, what the first attempt did."""
    cache = {"seconds": 600, "scope": "session"}
    toolset.announce({"orders": [entry("look", idempotent=True, cache=cache)]})
    session = _session(stage)
    stage.message(session)
    first, second = stage.reply(session, call(LOOK, n=1), call(LOOK, n=1))
    held = stage.begin_call(first)
    stage.run_call(second)
    stage.lose(held, clock)
    assert stage.claim_call(first)


def test_of_several_results_the_newest_answers(stage: Stage, clock: Any) -> None:
    session = _session(stage)
    stage.message(session)
    both = [stage.begin_call(tool_call) for tool_call in stage.reply(session, call(LOOK, n=1), call(LOOK, n=1))]
    for held in both:
        stage.finish_call(held, f"seen by {held.id}")
        clock.advance(1)
    [third] = stage.reply(session, call(LOOK, n=1))
    assert stage.claim_call(third) is None
    assert stage.result(third) == f"seen by {both[1].id}"
