"""However many workers get a hint, one claims the row, and every result is stored once."""

from functools import partial

from crashes.invariants import check_invariants
from races.races_together import of_kind, together
from rows.stage import Stage, call, say
from rows.tasks import claim_delivery

from models.database.rows import Stale
from models.database.transactions import transaction
from models.outbox.delivery import Delivery
from models.outbox.endpoint import Endpoint, NewEndpoint
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn


def test_a_turn_is_claimed_by_one_of_twenty(stage: Stage) -> None:
    session_id = stage.session()
    stage.message(session_id)
    outcomes = together(*[partial(stage.claim, session_id)] * 20)
    (turn,) = of_kind(outcomes, Turn)
    assert outcomes.count(None) == 19
    assert (turn.fence, turn.attempt) == (1, 1)
    check_invariants(stage.workspace_id, session_id)


def test_a_call_is_claimed_by_one_of_twenty(stage: Stage) -> None:
    session_id = stage.session(bash="always_allow")
    stage.message(session_id)
    (tool_call,) = stage.reply(session_id, call())
    outcomes = together(*[partial(stage.claim_call, tool_call)] * 20)
    (held,) = of_kind(outcomes, ToolCall)
    assert outcomes.count(None) == 19
    assert (held.fence, held.attempt) == (1, 1)
    assert len(check_invariants(stage.workspace_id, session_id).attempts) == 1


def test_a_delivery_is_claimed_by_one_of_eight(stage: Stage) -> None:
    with transaction(stage.workspace_id) as db:
        endpoint = NewEndpoint(url="https://hooks.example.com/assent", enabled_events=["session.created"])
        Endpoint.create(db, stage.principal, endpoint)
    stage.session()
    with transaction(stage.workspace_id) as db:
        [delivery] = db.find(Delivery)

    def claim() -> Delivery | None:
        with transaction(stage.workspace_id) as db:
            return claim_delivery(db, delivery.id)

    outcomes = together(*[claim] * 8)
    (held,) = of_kind(outcomes, Delivery)
    assert outcomes.count(None) == 7
    assert (held.fence, held.attempt) == (1, 1)


def test_a_checkpoint_is_kept_once(stage: Stage) -> None:
    """As after an error at the commit, when the worker stores the reply again."""
    session_id = stage.session()
    stage.message(session_id)
    turn = stage.claim(session_id)
    outcomes = together(*[partial(stage.reply, session_id, say("Done."), turn=turn)] * 5)
    assert len(of_kind(outcomes, Stale)) == 4
    assert len(check_invariants(stage.workspace_id, session_id).of("agent.message")) == 1


def test_a_result_is_kept_once(stage: Stage) -> None:
    session_id = stage.session(bash="always_allow")
    stage.message(session_id)
    (tool_call,) = stage.reply(session_id, call())
    held = stage.claim_call(tool_call)
    outcomes = together(*[partial(stage.finish_call, held)] * 5)
    assert len(of_kind(outcomes, Stale)) == 4
    assert len(check_invariants(stage.workspace_id, session_id).of("agent.tool_result")) == 1


def test_a_worker_whose_lease_ended_writes_nothing(stage: Stage, clock: object) -> None:
    """Its late reply meets the reply of the next worker."""
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


def test_a_call_whose_lease_ended_is_taken_back_once(stage: Stage, clock: object) -> None:
    """By one of several sweeps, or not at all if the worker reports first."""
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
