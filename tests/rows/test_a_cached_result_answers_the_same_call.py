"""R29: a tool may declare its result cacheable; the same call is then not run twice, and is judged all the same."""

from typing import Any

import pytest
from rows.stage import Stage, call, entry, say

from models.session.tool_call import ToolCall
from models.workspace import toolset

LOOK = "mcp__shop__look"


def _session(stage: Stage, policy: str = "always_allow") -> str:
    return stage.session(servers={"shop": "assent:orders"}, shop=policy)


def _look(stage: Stage, session: str, n: int = 1) -> ToolCall:
    stage.message(session)
    [found] = stage.reply(session, call(LOOK, n=n))
    return found


def _cached(stage: Stage, found: ToolCall) -> bool:
    """Whether a worker that would run it finds that it need not."""
    held = stage.claim_call(found)
    if held:
        stage.finish_call(held, f"seen by {found.id}", structured={"by": found.id})
    stage.reply(found.session_id, say("Done."))
    stage.check(found.session_id)
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


def test_it_holds_for_its_time_only(stage: Stage, clock: Any) -> None:
    session = _session(stage)
    assert not _cached(stage, _look(stage, session))
    clock.advance(61)
    assert not _cached(stage, _look(stage, session))


def test_a_result_that_was_cached_is_not_made_younger_by_it(stage: Stage, clock: Any) -> None:
    session = _session(stage)
    assert not _cached(stage, _look(stage, session))
    clock.advance(40)
    assert _cached(stage, _look(stage, session))
    clock.advance(40)
    assert not _cached(stage, _look(stage, session))


def test_it_stays_in_its_session_unless_its_tool_says_otherwise(stage: Stage) -> None:
    assert not _cached(stage, _look(stage, _session(stage)))
    assert not _cached(stage, _look(stage, _session(stage)))
    toolset.announce({"orders": [entry("look", cache={"seconds": 60, "scope": "workspace"})]})
    assert not _cached(stage, _look(stage, _session(stage)))
    assert _cached(stage, _look(stage, _session(stage)))


def test_it_never_leaves_its_workspace(stage: Stage) -> None:
    toolset.announce({"orders": [entry("look", cache={"seconds": 60, "scope": "workspace"})]})
    assert not _cached(stage, _look(stage, _session(stage)))
    other = Stage()
    assert not _cached(other, _look(other, _session(other)))


def test_an_error_is_not_kept(stage: Stage) -> None:
    session = _session(stage)
    stage.run_call(_look(stage, session), "no", is_error=True)
    stage.reply(session, say("Done."))
    assert not _cached(stage, _look(stage, session))


def test_a_changed_tool_does_not_answer_by_what_it_was(stage: Stage) -> None:
    session = _session(stage)
    assert not _cached(stage, _look(stage, session))
    toolset.announce({"orders": [entry("look", description="otherwise", cache={"seconds": 60, "scope": "session"})]})
    assert not _cached(stage, _look(stage, session))


def test_the_policy_is_asked_all_the_same(stage: Stage) -> None:
    """A cached result is given only where the call would have run."""
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


def test_what_a_person_said_became_of_a_call_is_no_result_of_the_tool(stage: Stage, clock: Any) -> None:
    session = _session(stage)
    held = stage.claim_call(_look(stage, session))
    assert held
    clock.advance(55)
    stage.rescue(held)
    stage.decide(stage.approvals(session)[-1], outcome="happened", content=(say("I think so."),))
    stage.reply(session, say("Done."))
    assert not _cached(stage, _look(stage, session))


def test_what_depends_on_a_person_s_answers_is_asked_anew(stage: Stage) -> None:
    session = _session(stage)
    first = _look(stage, session)
    held = stage.claim_call(first)
    assert held
    stage.finish_call(held, "", question={"requests": {"who": {"message": "Whose?", "schema": {}}}, "state": None})
    stage.decide(stage.approvals(session)[-1], result="allow", answers={"who": {"action": "accept", "content": {}}})
    stage.run_call(first, "theirs")
    stage.reply(session, say("Done."))
    assert not _cached(stage, _look(stage, session))


def test_a_long_result_stays_where_it_can_be_read(stage: Stage) -> None:
    """Its call's own session has the rest of it; another one runs the call itself."""
    toolset.announce({"orders": [entry("look", cache={"seconds": 60, "scope": "workspace"})]})
    session = _session(stage)
    held = stage.claim_call(_look(stage, session))
    assert held
    stage.finish_call(held, "its ends", whole=b"all of it")
    stage.reply(session, say("Done."))
    assert _cached(stage, _look(stage, session))
    assert not _cached(stage, _look(stage, _session(stage)))


def test_what_has_begun_once_is_run_again_and_not_answered_by_another_call(stage: Stage, clock: Any) -> None:
    """I3: nobody knows what its first attempt did; its tool does, by its key."""
    cache = {"seconds": 600, "scope": "session"}
    toolset.announce({"orders": [entry("look", idempotent=True, cache=cache)]})
    session = _session(stage)
    stage.message(session)
    first, second = stage.reply(session, call(LOOK, n=1), call(LOOK, n=1))
    held = stage.claim_call(first)
    assert held
    stage.run_call(second)
    clock.advance(60)
    stage.rescue(held)
    assert stage.claim_call(first)


def test_of_several_results_the_newest_answers(stage: Stage, clock: Any) -> None:
    session = _session(stage)
    stage.message(session)
    both = [stage.claim_call(found) for found in stage.reply(session, call(LOOK, n=1), call(LOOK, n=1))]
    for held in both:
        assert held
        stage.finish_call(held, f"seen by {held.id}")
        clock.advance(1)
    [third] = stage.reply(session, call(LOOK, n=1))
    assert stage.claim_call(third) is None
    assert stage.result(third) == f"seen by {both[1].id if both[1] else None}"
