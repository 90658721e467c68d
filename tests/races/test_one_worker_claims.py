"""However often a message is doubled, one worker gets the row, and a second copy changes nothing."""

from functools import partial

from crashes.invariants import check_invariants
from races_together import of_kind, together
from rows.stage import Stage, call, say

from models.database.rows import Stale
from models.session.tool_call import ToolCall
from models.session.turn import Turn


def test_a_turn_is_claimed_by_one_of_twenty(stage: Stage) -> None:
    """The other nineteen find nothing."""
    session_id = stage.session()
    stage.message(session_id)
    outcomes = together(*[partial(stage.claim, session_id)] * 20)
    (turn,) = of_kind(outcomes, Turn)
    assert outcomes.count(None) == 19
    assert (turn.fence, turn.attempt) == (1, 1)
    check_invariants(stage.workspace_id, session_id)


def test_a_call_is_claimed_by_one_of_twenty(stage: Stage) -> None:
    """One attempt's row, one fence."""
    session_id = stage.session(bash="always_allow")
    stage.message(session_id)
    (tool_call,) = stage.reply(session_id, call())
    outcomes = together(*[partial(stage.claim_call, tool_call)] * 20)
    (held,) = of_kind(outcomes, ToolCall)
    assert outcomes.count(None) == 19
    assert (held.fence, held.attempt) == (1, 1)
    assert len(check_invariants(stage.workspace_id, session_id).attempts) == 1


def test_a_checkpoint_is_kept_once(stage: Stage) -> None:
    """A claim whose reply comes twice, as after an error out of COMMIT: the second is stale."""
    session_id = stage.session()
    stage.message(session_id)
    turn = stage.claim(session_id)
    outcomes = together(*[partial(stage.reply, session_id, say("Done."), turn=turn)] * 5)
    assert len(of_kind(outcomes, Stale)) == 4
    assert len(check_invariants(stage.workspace_id, session_id).of("agent.message")) == 1


def test_a_result_is_kept_once(stage: Stage) -> None:
    """The same for a tool's result."""
    session_id = stage.session(bash="always_allow")
    stage.message(session_id)
    (tool_call,) = stage.reply(session_id, call())
    held = stage.claim_call(tool_call)
    outcomes = together(*[partial(stage.finish_call, held)] * 5)
    assert len(of_kind(outcomes, Stale)) == 4
    assert len(check_invariants(stage.workspace_id, session_id).of("agent.tool_result")) == 1


def test_a_worker_that_was_taken_for_dead_writes_nothing(stage: Stage, clock: object) -> None:
    """It comes back with its reply while the rescue has the turn queued, claimed and answered again."""
    for _ in range(5):
        session_id = stage.session()
        stage.message(session_id)
        zombie = stage.claim(session_id)
        clock.advance(46)
        stage.rescue(zombie)
        second = stage.claim(session_id)
        late, kept = together(
            partial(stage.reply, session_id, say("Late."), turn=zombie),
            partial(stage.reply, session_id, say("Right."), turn=second),
        )
        assert isinstance(late, Stale)
        assert kept == []
        seen = check_invariants(stage.workspace_id, session_id)
        assert [e.body["content"] for e in seen.of("agent.message")] == [[say("Right.")]]


def test_a_lease_that_runs_out_is_taken_back_once(stage: Stage, clock: object) -> None:
    """Several beats rescue at once, and the worker reports at the same moment: one of them has it."""
    for _ in range(10):
        session_id = stage.session(bash="always_allow")
        stage.message(session_id)
        (tool_call,) = stage.reply(session_id, call())
        held = stage.claim_call(tool_call)
        clock.advance(46)
        *rescues, finished = together(*[partial(stage.rescue, held)] * 3, partial(stage.finish_call, held))
        assert not of_kind(rescues, Exception)
        seen = check_invariants(stage.workspace_id, session_id)
        assert seen.calls[0].status == ("unknown" if isinstance(finished, Stale) else "done")
        assert len(seen.approvals) == isinstance(finished, Stale)
