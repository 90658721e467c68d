"""While a workspace is halted nothing begins, decisions are stored, and deadlines stand still."""

from typing import Any

from rows.stage import Stage, call, say

from models.audit.acts import Audit
from models.database.transactions import transaction
from models.flow.carry_on.hosted_work import offer_work
from models.flow.decide.deadlines import remind_due
from models.operate import due, queued, readiness
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn
from models.session.work import Work
from models.workspace.halt import Halt
from workers.sweeps import deadlines, resuming


def halt(stage: Stage, reason: str | None = "The refund tool pays twice.") -> Halt:
    with transaction(stage.workspace_id) as db:
        return Halt.start(db, stage.principal, reason)


def resume(stage: Stage) -> None:
    """End the halt, and run the sweep until no deadline is left to move."""
    with transaction(stage.workspace_id) as db:
        Halt.end(db, stage.principal)
    for _ in range(2):
        resuming.end_halts()
    assert due.ended_halts() == []


def waiting(stage: Stage, **more: Any) -> tuple[str, ToolCall]:
    session = stage.session(**more)
    return session, stage.propose(session)


def test_no_turn_and_no_call_begins(stage: Stage, clock: Any) -> None:
    session, tool_call = waiting(stage)
    other = stage.session()
    stage.message(other)
    halt(stage)
    stage.confirm(session, tool_call.id)
    assert stage.get(ToolCall, tool_call.id).status == "queued", "the decision is stored"
    assert stage.claim_call(tool_call) is None
    assert stage.claim(other) is None
    clock.advance(60)
    assert queued.hints(Turn) == []
    assert queued.hints(ToolCall) == []
    assert "the workspace is halted" in readiness.held_back(stage.workspace_id)[0]
    resume(stage)
    assert len(queued.hints(ToolCall)) == 1
    stage.run_call(tool_call)
    assert stage.claim(other)


def test_a_turn_that_runs_goes_on_and_its_calls_wait(stage: Stage) -> None:
    session = stage.session(bash="always_allow")
    stage.message(session)
    turn = stage.begin(session)
    halt(stage)
    [tool_call] = stage.reply(session, call(), turn=turn)
    assert tool_call.status == "queued"
    assert stage.claim_call(tool_call) is None


def test_a_halt_does_not_stop_another_workspace(stage: Stage) -> None:
    other = Stage()
    session, tool_call = waiting(other)
    halt(stage)
    other.confirm(session, tool_call.id)
    assert other.claim_call(tool_call)


def test_deadlines_and_reminders_move_by_the_length_of_the_halt(stage: Stage, clock: Any) -> None:
    session, _ = waiting(stage, approval={"timeout_seconds": 600, "remind_after_seconds": 300})
    [before] = stage.approvals(session)
    clock.advance(200)
    started = halt(stage).started_at
    clock.advance(1000)
    assert due.overdue_approvals() == []
    assert due.approvals_to_remind() == []
    assert (stage.expire(session), remind_due(stage.workspace_id, session)) == (0, 0)
    resume(stage)
    [after] = stage.approvals(session)
    length = stage.get(Halt, _halt_id(stage)).length
    assert length.total_seconds() >= 1000
    assert after.expires_at - before.expires_at == length
    assert after.remind_at
    assert before.remind_at
    assert after.remind_at - before.remind_at == length
    assert started < after.expires_at
    clock.advance(300)
    assert stage.expire(session) == 0
    clock.advance(200)
    assert stage.expire(session) == 1


def test_a_decision_during_the_halt_is_in_time(stage: Stage, clock: Any) -> None:
    session, tool_call = waiting(stage, approval={"timeout_seconds": 600})
    halt(stage)
    clock.advance(1000)
    stage.confirm(session, tool_call.id)
    assert stage.get(ToolCall, tool_call.id).status == "queued"


def test_an_approval_requested_during_the_halt_has_its_whole_time_afterwards(stage: Stage, clock: Any) -> None:
    session = stage.session(approval={"timeout_seconds": 600})
    stage.message(session)
    turn = stage.claim(session)
    halt(stage)
    clock.advance(500)
    stage.reply(session, call(), turn=turn)
    clock.advance(500)
    resume(stage)
    clock.advance(550)
    assert stage.expire(session) == 0
    clock.advance(100)
    assert stage.expire(session) == 1


def test_two_halts_move_a_deadline_by_both(stage: Stage, clock: Any) -> None:
    session, _ = waiting(stage, approval={"timeout_seconds": 600})
    for _ in range(2):
        halt(stage)
        clock.advance(1000)
        with transaction(stage.workspace_id) as db:
            Halt.end(db, stage.principal)
    assert stage.expire(session) == 0, "a reader of the deadline moves it first, whether or not the sweep has run"
    clock.advance(590)
    assert stage.expire(session) == 0
    clock.advance(20)
    assert stage.expire(session) == 1


def test_a_client_s_call_is_given_to_it_when_the_halt_ends(stage: Stage) -> None:
    """Neither the event of the call nor the confirmation that a runner waits for is visible before."""
    session = stage.session(custom=("lookup?", "look"))
    stage.message(session)
    turn = stage.claim(session)
    halt(stage)
    asked, free = stage.reply(session, call("lookup", n=1), call("look", n=1), turn=turn)
    assert (asked.status, free.status) == ("asked", "held")
    stage.confirm(session, asked.id)
    assert stage.get(ToolCall, asked.id).status == "held"
    assert stage.events(session, "agent.custom_tool_use") == []
    resume(stage)
    assert {event.id for event in stage.events(session, "agent.custom_tool_use")} == {asked.id, free.id}
    assert stage.get(ToolCall, free.id).status == "with_client"
    assert stage.read(session).status == "waiting"
    results = [{"type": "user.custom_tool_result", "custom_tool_use_id": one.id, "content": [say("42")]} for one in (asked, free)]
    stage.send(session, *results)
    stage.reply(session, say("Done."))
    stage.check(session)


def test_a_self_hosted_runner_learns_of_a_decision_when_the_halt_ends(stage: Stage) -> None:
    session = stage.session(self_hosted=True)
    tool_call = stage.propose(session)
    halt(stage)
    sent = stage.confirm(session, tool_call.id)
    assert (sent.type, sent.body["result"], sent.processed_at) == ("user.tool_confirmation", "allow", None)
    assert stage.confirm(session, tool_call.id).id == sent.id, "the same decision again is a no-op"
    assert stage.events(session, "user.tool_confirmation") == []
    with transaction(stage.workspace_id) as db:
        environment_id = stage.read(session).environment_id
        assert offer_work(db, stage.principal, environment_id, "theirs", 60) is None
    resume(stage)
    [confirmed] = stage.events(session, "user.tool_confirmation")
    assert (confirmed.id, confirmed.body) == (sent.id, sent.body)
    with transaction(stage.workspace_id) as db:
        assert isinstance(offer_work(db, stage.principal, environment_id, "theirs", 60), Work)


def test_a_held_call_is_cancelled_with_its_run(stage: Stage) -> None:
    session = stage.session(custom=("look",))
    stage.message(session)
    turn = stage.claim(session)
    halt(stage)
    [free] = stage.reply(session, call("look", n=1), turn=turn)
    stage.send(session, {"type": "user.interrupt"})
    assert stage.get(ToolCall, free.id).status == "cancelled"
    resume(stage)
    stage.check(session)


def test_a_second_halt_is_a_no_op_and_start_and_end_are_audited(stage: Stage) -> None:
    first, again = halt(stage), halt(stage, "Another reason")
    assert (again.id, again.reason) == (first.id, first.reason)
    resume(stage)
    with transaction(stage.workspace_id) as db:
        assert Halt.end(db, stage.principal) is not None
        acts = db.find(Audit, "WHERE chain = %(chain)s AND subject_id = %(id)s ORDER BY seq", chain=stage.workspace_id, id=first.id)
    assert [act.action for act in acts] == ["workspace.halted", "workspace.resumed"]


def test_an_approval_of_a_halted_workspace_stays_pending(stage: Stage, clock: Any) -> None:
    session, tool_call = waiting(stage, approval={"timeout_seconds": 60, "on_timeout": "allow"})
    halt(stage)
    clock.advance(3600)
    deadlines.expire_approvals()
    assert stage.get(Approval, stage.approvals(session)[0].id).status == "pending"
    assert stage.get(ToolCall, tool_call.id).status == "asked"


def _halt_id(stage: Stage) -> str:
    with transaction(stage.workspace_id) as db:
        newest = Halt.newest(db)
        assert newest
        return newest.id


def test_a_halt_ends_though_the_clock_went_back_in_it(stage: Stage) -> None:
    waiting(stage)
    halt(stage)
    with transaction(stage.workspace_id) as db:
        Halt.end(db, stage.principal)
        db.write("UPDATE halt SET started_at = ended_at + interval '1 second'")
    for _ in range(3):
        resuming.end_halts()
    assert due.ended_halts() == []
