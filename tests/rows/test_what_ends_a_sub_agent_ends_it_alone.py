"""What ends the run of a sub-agent ends neither its siblings nor its coordinator, which gets a report that says why."""

from typing import Any

import pytest
from rows.crew import Crew, create_agent, roster, send, write
from rows.stage import USAGE, Stage, call, confirmation, say

from models.database.transactions import transaction
from models.errors import Conflict
from models.flow.begin.sessions import archive, delete
from models.flow.run.turns import correct_usage
from models.pure.pricing.charges import Charge
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall
from models.workspace.halt import Halt


@pytest.fixture
def crew(stage: Stage) -> Crew:
    """A coordinator that rests, while both of its sub-agents have a turn to take."""
    crew = Crew.begin(stage)
    crew.lead_replies(send("Reader"), send("Writer"))
    crew.lead_replies(say("I wait."))
    return crew


def ends(crew: Crew, clock: Any, *, on_timeout: str = "deny") -> ToolCall:
    """Have the first sub-agent's call wait for people until its deadline has passed."""
    [waiting] = crew.replies(call())
    with transaction(crew.stage.workspace_id) as db:
        for approval in db.find(Approval, "WHERE session_id = %(id)s", id=crew.session_id):
            approval.on_timeout = on_timeout
    clock.advance(90_000)
    assert crew.stage.expire(crew.session_id) == 1
    return waiting


def reports(crew: Crew) -> list[str]:
    """The texts that the coordinator's next turn reads."""
    turn = crew.stage.claim(crew.session_id)
    return crew.texts(turn) if turn else []


def test_a_denied_call_ends_nothing(stage: Stage, crew: Crew) -> None:
    [waiting] = crew.replies(call())
    stage.confirm(crew.session_id, waiting.id, "deny")
    assert [thread.status for thread in (crew.lead, *crew.threads)] == ["idle", "running", "running"]
    crew.replies(say("I was denied."))
    assert reports(crew) == ["I was denied."]
    stage.check(crew.session_id)


def test_a_passed_deadline_is_never_a_person_s_denial(stage: Stage, crew: Crew, clock: Any) -> None:
    waiting = ends(crew, clock)
    assert "This is not a refusal" in stage.result(waiting)
    assert [thread.status for thread in (crew.lead, *crew.threads)] == ["idle", "running", "running"]
    stage.check(crew.session_id)


def test_a_deadline_that_ends_the_run_ends_one_run(stage: Stage, crew: Crew, clock: Any) -> None:
    ends(crew, clock, on_timeout="end_run")
    assert [thread.status for thread in (crew.lead, *crew.threads)] == ["running", "idle", "running"]
    [report] = reports(crew)
    assert "ended early: it was ended: Nobody decided in time." in report
    assert "denied" not in report
    stage.check(crew.session_id)


def test_a_person_who_denies_and_ends_the_run_ends_one_run(stage: Stage, crew: Crew) -> None:
    [waiting] = crew.replies(say("I delete it."), call())
    stage.confirm(crew.session_id, waiting.id, "deny", interrupt=True, deny_message="Not this one.")
    assert [thread.status for thread in (crew.lead, *crew.threads)] == ["running", "idle", "running"]
    [report] = reports(crew)
    assert "it was ended: Not this one." in report
    assert report.endswith("I delete it.")
    stage.check(crew.session_id)


def test_turns_are_counted_for_each_thread_and_message(stage: Stage) -> None:
    crew = Crew.begin(stage, max_turns=2)
    crew.lead_replies(send("Reader"))
    crew.lead_replies(say("I wait."))
    for _ in range(2):
        crew.replies(call())
        for waiting in crew.asked():
            stage.confirm(crew.session_id, waiting.id)
            stage.run_call(waiting)
    assert crew.thread().status == "idle"
    [report] = reports(crew)
    assert "The run reached its limit of 2 turns for one message." in report
    stage.reply(crew.session_id, write(crew.thread().id), turn=crew.lead_turn())
    assert crew.begin_turn().count == 1, "the limit begins again with each message"
    stage.check(crew.session_id)


def test_a_sub_agent_has_the_turns_of_its_own_agent(stage: Stage) -> None:
    reader = create_agent(stage, "Reader", max_turns=1)
    session_id = stage.session(of_agent=create_agent(stage, "Lead", multiagent=roster(reader)), max_turns=9)
    crew = Crew(stage, session_id)
    stage.message(session_id)
    crew.lead_replies(send("Reader"))
    [refused] = crew.replies(call())
    assert stage.get(ToolCall, refused.id).status == "refused"
    assert crew.thread().status == "idle"


def test_a_model_that_fails_or_refuses_ends_one_run(stage: Stage, crew: Crew) -> None:
    stage.fail(crew.begin_turn(0), retryable=False)
    stage.reply(crew.session_id, say("No."), stop_reason="refusal", turn=crew.begin_turn(1))
    first, second = reports(crew)
    assert "ended early: Overloaded" in first
    assert "the model refused to go on" in second
    stage.check(crew.session_id)


def test_an_interrupt_of_one_thread_is_reported(stage: Stage, crew: Crew) -> None:
    crew.replies(call())
    stage.send(crew.session_id, {"type": "user.interrupt", "session_thread_id": crew.thread().id})
    assert [thread.status for thread in (crew.lead, *crew.threads)] == ["running", "idle", "running"]
    assert "somebody ended it" in reports(crew)[0]
    stage.check(crew.session_id)


def test_an_interrupt_of_all_leaves_nothing_running(stage: Stage, crew: Crew) -> None:
    """Also though the coordinator rested, and gets a report of each sub-agent."""
    [waiting] = crew.replies(call())
    crew.begin_turn(1)
    stage.send(crew.session_id, {"type": "user.interrupt"})
    assert [thread.status for thread in (crew.lead, *crew.threads)] == ["idle"] * 3
    assert stage.get(ToolCall, waiting.id).status == "cancelled"
    assert stage.read(crew.session_id).status == "idle"
    stage.check(crew.session_id)
    stage.message(crew.session_id, "What happened?")
    stage.reply(crew.session_id, say("They were stopped."))
    texts = [block["text"] for message in stage.history(crew.session_id) for block in message["content"] if "text" in block]
    assert sum("somebody ended it" in text for text in texts) == 2, "the next run knows both reports"
    stage.check(crew.session_id)


def test_a_call_that_runs_on_after_an_interrupt_of_all_wakes_nobody(stage: Stage, crew: Crew) -> None:
    [waiting] = crew.replies(call())
    stage.confirm(crew.session_id, waiting.id)
    held = stage.begin_call(waiting)
    stage.send(crew.session_id, {"type": "user.interrupt"})
    assert crew.thread().status == "stopping"
    stage.finish_call(held)
    assert [thread.status for thread in (crew.lead, *crew.threads)] == ["idle"] * 3
    stage.check(crew.session_id)


def test_an_interrupt_of_the_coordinator_leaves_its_sub_agents(stage: Stage, crew: Crew) -> None:
    crew.replies(say("One."))
    stage.begin(crew.session_id)
    stage.send(crew.session_id, {"type": "user.interrupt", "session_thread_id": crew.lead.id})
    assert [thread.status for thread in (crew.lead, *crew.threads)] == ["idle", "idle", "running"]
    crew.replies(say("Two."), number=1)
    assert crew.lead.status == "idle", "who was stopped is not started by a report"
    stage.message(crew.session_id, "And?")
    stage.reply(crew.session_id, say("Both."))
    texts = [block.get("text") for message in stage.history(crew.session_id) for block in message["content"]]
    assert [text for text in texts if text in {"One.", "Two.", "And?"}] == ["One.", "Two.", "And?"]
    stage.check(crew.session_id)


def test_a_session_is_archived_while_its_sub_agents_wait_for_people(stage: Stage, crew: Crew) -> None:
    first, second = [*crew.replies(call(), number=0), *crew.replies(call(), number=1)]
    assert stage.read(crew.session_id).status == "waiting"
    stage.locked(crew.session_id, archive)
    assert {thread.status for thread in (crew.lead, *crew.threads)} == {"terminated"}
    assert {approval.status for approval in stage.approvals(crew.session_id)} == {"cancelled"}
    with pytest.raises(Conflict):
        stage.confirm(crew.session_id, first.id)
    assert stage.get(ToolCall, second.id).status == "cancelled"
    stage.check(crew.session_id)


def test_a_session_is_deleted_while_its_sub_agents_wait_for_people(stage: Stage, crew: Crew) -> None:
    crew.replies(call(), number=0)
    with pytest.raises(Conflict, match="running"):
        stage.locked(crew.session_id, delete)
    crew.replies(call(), number=1)
    stage.locked(crew.session_id, delete)


def test_a_sub_agent_that_is_archived_while_it_waits_reports(stage: Stage, crew: Crew) -> None:
    crew.replies(call())
    stage.archive_thread(crew.session_id, crew.thread().id)
    assert [thread.status for thread in (crew.lead, *crew.threads)] == ["running", "terminated", "running"]
    assert "somebody ended it" in reports(crew)[0]
    stage.check(crew.session_id)


def test_a_lock_reads_no_archived_thread_but_where_a_worker_comes_late(stage: Stage, crew: Crew) -> None:
    """A session may have any number of them."""
    turn = crew.begin_turn()
    stage.send(crew.session_id, {"type": "user.interrupt", "session_thread_id": crew.thread().id})
    stage.archive_thread(crew.session_id, crew.thread().id)
    stage.locked(crew.session_id, lambda locked: correct_usage(locked, turn, [Charge("anthropic", "stand-in", None, USAGE)]))
    assert crew.thread().usage["output_tokens"] == USAGE.output_tokens
    crew.replies(say("Done."), number=1)
    stage.archive_thread(crew.session_id, crew.thread(1).id)
    stage.archive_thread(crew.session_id, crew.thread(1).id)
    assert stage.locked(crew.session_id, lambda locked: [thread.id for thread in locked.threads]) == [crew.lead.id]
    stage.reply(crew.session_id, say("Both are archived."))
    said = stage.events(crew.session_id, "session.thread_status_idle")[-1].body["session_thread_id"]
    assert said == crew.lead.id, "the session's own thread still says what it becomes"
    stage.check(crew.session_id)


def test_a_halt_reaches_every_thread(stage: Stage, crew: Crew) -> None:
    with transaction(stage.workspace_id) as db:
        Halt.start(db, stage.principal, None)
    assert [stage.claim_turn(crew.session_id, thread.turn_id or "") for thread in crew.threads] == [None, None]


def test_seven_calls_that_wait_are_decided_in_any_order(stage: Stage) -> None:
    crew = Crew.begin(stage)
    crew.lead_replies(*(send("Reader", f"Do part {number}.") for number in range(7)))
    crew.lead_replies(say("I wait."))
    calls = [crew.replies(call(command=f"part {number}"), number=number)[0] for number in range(7)]
    event_ids = (stage.read(crew.session_id).stop_reason or {})["event_ids"]
    assert sorted(event_ids) == sorted(each.id for each in calls)
    for number in (3, 6, 0, 5, 1, 4, 2):
        stage.send(crew.session_id, confirmation(calls[number].id, "allow" if number % 2 else "deny"))
    for number, each in enumerate(calls):
        assert stage.get(ToolCall, each.id).status == ("queued" if number % 2 else "denied")
        assert each.thread_id == crew.thread(number).id
    stage.check(crew.session_id)


def test_twenty_five_sub_agents_that_fail_at_once_are_all_reported(stage: Stage) -> None:
    crew = Crew.begin(stage)
    crew.lead_replies(*(send("Reader") for _ in range(26)))
    crew.lead_replies(say("I wait."))
    assert len(crew.threads) == 25
    refusals = [event for event in stage.events(crew.session_id, "agent.tool_result") if event.body["is_error"]]
    assert "thread_limit_reached" in refusals[0].body["content"][0]["text"]
    for number in range(25):
        stage.fail(crew.begin_turn(number), retryable=False)
    texts = reports(crew)
    assert len(texts) == 25, "all of them are read in one turn"
    assert all("ended early: Overloaded" in text for text in texts)
    stage.check(crew.session_id)


def test_messages_to_sub_agents_are_bounded_for_each_message_of_the_user(stage: Stage, setting: Any) -> None:
    setting("max_agent_messages", "3")
    crew = Crew.begin(stage)
    calls = crew.lead_replies(*(send("Reader") for _ in range(4)))
    assert [stage.get(ToolCall, each.id).is_error for each in calls] == [False, False, False, True]
    assert "message_limit_reached: agents may send 3 messages" in stage.result(calls[3])
    stage.message(crew.session_id, "Go on.")
    [again] = crew.lead_replies(send("Reader"))
    assert not stage.get(ToolCall, again.id).is_error
    stage.check(crew.session_id)


def test_agents_that_wait_for_each_other_end(stage: Stage, crew: Crew) -> None:
    """No call waits for another agent, so an agent that wants to wait ends its turn."""
    crew.replies(say("I wait for the coordinator."), number=0)
    crew.replies(say("I wait, too."), number=1)
    assert reports(crew) == ["I wait for the coordinator.", "I wait, too."]
    stage.reply(crew.session_id, say("So do I."), turn=crew.lead_turn())
    assert stage.read(crew.session_id).status == "idle"
    assert stage.read(crew.session_id).stop_reason == {"type": "end_turn"}
    stage.check(crew.session_id)
