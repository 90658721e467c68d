"""An agent with sub-agents gives them tasks, each in a thread of its own, and gets their reports as messages."""

import json

import pytest
from rows.crew import SELF, Crew, create_agent, list_agents, roster, send, write
from rows.stage import Stage, call, say

from models.database.transactions import transaction
from models.policy.sub_agent_tools import sub_agent_tools
from models.pure.json.fitting import misfit
from models.session.tool_call.row import ToolCall
from models.workspace.agent import Agent


@pytest.fixture
def crew(stage: Stage) -> Crew:
    """A coordinator with two sub-agents, which has a message to read."""
    return Crew.begin(stage)


def test_a_task_begins_a_thread_at_once(stage: Stage, crew: Crew) -> None:
    [spawn] = crew.lead_replies(say("I delegate."), send("Reader", "Read it."))
    thread = crew.thread()
    assert (thread.name, thread.parent_id, thread.status) == ("Reader", crew.lead.id, "running")
    assert stage.get(ToolCall, spawn.id).status == "done"
    assert thread.id in stage.result(spawn), "the model can write to the thread again"
    assert crew.texts(crew.begin_turn()) == ["Read it."]
    assert crew.lead.status == "running", "the coordinator goes on without its sub-agent"
    stage.check(crew.session_id)


def test_an_agent_is_named_by_its_name_or_its_id(stage: Stage, crew: Crew) -> None:
    by_id = [agent["id"] for agent in json.loads(stage.result(crew.lead_replies(list_agents())[0]))["agents"]]
    crew.lead_replies(send("reader"), send(by_id[1]))
    assert [thread.name for thread in crew.threads] == ["Reader", "Writer"]


def test_the_list_says_what_each_thread_does(stage: Stage, crew: Crew) -> None:
    crew.lead_replies(send("Reader"), send("Writer"))
    crew.replies(call())
    [listed] = crew.lead_replies(list_agents())
    content = json.loads(stage.result(listed))
    assert [(agent["agent"], agent["description"]) for agent in content["agents"]] == [
        ("Reader", "The Reader."),
        ("Writer", "The Writer."),
    ]
    states = [(thread["agent"], thread["state"]) for thread in content["threads"]]
    assert states == [("Reader", "waits for a person or a client"), ("Writer", "works")]


def test_a_report_starts_the_next_turn_of_a_coordinator_that_rests(stage: Stage, crew: Crew) -> None:
    crew.lead_replies(send("Reader"))
    crew.lead_replies(say("I wait."))
    assert (crew.lead.status, stage.read(crew.session_id).status) == ("idle", "running")
    crew.replies(say("It says 42."))
    turn = stage.begin(crew.session_id)
    assert crew.texts(turn) == ["It says 42."]
    header = stage.history(crew.session_id)[-1]["content"][-2]["text"]
    assert "sub-agent Reader" in header
    assert crew.thread().id in header, "the model knows whose message it is"
    stage.reply(crew.session_id, say("The answer is 42."), turn=turn)
    assert stage.read(crew.session_id).status == "idle"
    stage.check(crew.session_id)


def test_a_report_waits_for_the_end_of_the_turn_and_of_its_calls(stage: Stage, crew: Crew) -> None:
    crew.lead_replies(send("Reader"))
    [asked] = crew.lead_replies(call())
    crew.replies(say("Done."))
    assert crew.lead.status == "waiting", "a report decides nothing"
    stage.confirm(crew.session_id, asked.id)
    stage.run_call(asked)
    assert crew.texts(stage.begin(crew.session_id)) == ["Done."]
    stage.check(crew.session_id)


def test_reports_that_wait_are_read_in_one_turn(stage: Stage, crew: Crew) -> None:
    crew.lead_replies(send("Reader"), send("Writer"))
    crew.lead_replies(say("I wait."))
    crew.replies(say("One."), number=0)
    crew.replies(say("Two."), number=1)
    assert crew.texts(stage.begin(crew.session_id)) == ["One.", "Two."]


def test_a_worker_reads_a_message_as_it_claims_the_turn(stage: Stage, crew: Crew) -> None:
    crew.lead_replies(send("Reader", "Read it."))
    assert stage.offered(crew.session_id, crew.thread().turn_id or "")[-1]["content"][-1]["text"] == "Read it."
    crew.lead_replies(say("I wait."))
    crew.replies(say("It says 42."))
    assert stage.offered(crew.session_id, crew.lead.turn_id or "")[-1]["content"][-1]["text"] == "It says 42."


def test_the_messages_stand_on_both_streams(stage: Stage, crew: Crew) -> None:
    crew.lead_replies(send("Reader", "Read it."))
    crew.replies(say("Done."))
    own, child = crew.lead.id, crew.thread().id
    text = [{"type": "text", "text": "Read it."}]
    report = [{"type": "text", "text": "Done."}]

    def messages(kind: str) -> list[tuple[str, dict[str, object]]]:
        return [(event.thread_id, event.body) for event in stage.events(crew.session_id, f"agent.thread_message_{kind}")]

    assert messages("sent") == [
        (own, {"content": text, "to_session_thread_id": child, "to_agent_name": "Reader"}),
        (child, {"content": report, "to_session_thread_id": own}),
    ]
    assert messages("received") == [
        (child, {"content": text, "from_session_thread_id": own}),
        (own, {"content": report, "from_session_thread_id": child, "from_agent_name": "Reader"}),
    ]
    [created] = stage.events(crew.session_id, "session.thread_created")
    assert (created.thread_id, created.body) == (own, {"session_thread_id": child, "agent_name": "Reader"})
    assert all(event.processed_at for event in stage.events(crew.session_id) if event.type.startswith("agent."))


def test_a_sub_agent_keeps_its_history(stage: Stage, crew: Crew) -> None:
    crew.lead_replies(send("Reader", "Read it."))
    crew.replies(say("It says 42."))
    child = crew.thread()
    crew.lead_replies(write(child.id, "Twice?"))
    crew.replies(say("84."))
    texts = [block["text"] for message in stage.history_of(crew.session_id, child.id) for block in message["content"]]
    assert [text for text in texts if not text.startswith("Message from")] == ["Read it.", "It says 42.", "Twice?", "84."]
    assert crew.texts(stage.begin(crew.session_id)) == ["84."]


def test_an_agent_can_be_its_own_sub_agent(stage: Stage) -> None:
    agent = create_agent(stage, "Lead", multiagent=roster(SELF))
    session_id = stage.session(of_agent=agent)
    crew = Crew(stage, session_id)
    stage.message(session_id)
    stage.change_agent(session_id, lambda body: body.update(system="Be brief."))
    crew.lead_replies(send("Lead"))
    own, copy = stage.locked(session_id, lambda locked: [each.agent for each in locked.each])
    assert copy == {**own, "multiagent": None}, "with the session's overrides, and without sub-agents of its own"


def test_a_sub_agent_s_version_never_changes(stage: Stage, crew: Crew) -> None:
    crew.lead_replies(send("Reader"))
    before = stage.locked(crew.session_id, lambda locked: locked.each[1].agent)
    with transaction(stage.workspace_id) as db:
        Agent.find(db, crew.thread().agent_id).update(db, stage.principal, {"system": "New."})
    crew.lead_replies(send("Reader"))
    agents = stage.locked(crew.session_id, lambda locked: [each.agent for each in locked.each[1:]])
    assert agents == [before, before]


def test_a_sub_agent_has_no_sub_agents(stage: Stage, crew: Crew) -> None:
    crew.lead_replies(send("Reader"))
    [spawn] = crew.replies(send("Writer"))
    assert stage.get(ToolCall, spawn.id).status == "refused"
    assert "There is no tool named 'send_to_agent'" in stage.result(spawn)
    assert len(crew.threads) == 1


def test_a_sub_agent_has_no_tool_of_its_coordinator(stage: Stage) -> None:
    private = {"type": "custom", "name": "delete_all", "description": "d", "input_schema": {"type": "object"}}
    reader = create_agent(stage, "Reader")
    session_id = stage.session(of_agent=create_agent(stage, "Lead", tools=[private], multiagent=roster(reader)))
    crew = Crew(stage, session_id)
    stage.message(session_id)
    crew.lead_replies(send("Reader"))
    [private_call] = crew.replies(call("delete_all"))
    assert "There is no tool named 'delete_all'" in stage.result(private_call)
    assert stage.get(ToolCall, private_call.id).status == "refused"
    stage.check(session_id)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"message": "Hi."}, "send either agent or session_thread_id"),
        ({"agent": "Reader", "session_thread_id": "sthr_x", "message": "Hi."}, "send either agent or session_thread_id"),
        ({"agent": "Nobody", "message": "Hi."}, "none of your agents: Reader, Writer"),
        ({"session_thread_id": "sthr_x", "message": "Hi."}, "you began no thread 'sthr_x'"),
        ({"agent": "Reader", "message": " \n "}, "message: holds only white space"),
        ({"agent": {"name": "A", "description": "B", "system": "C"}, "message": "Hi."}, "does not fit the tool's schema"),
    ],
)
def test_a_message_to_nobody_is_an_error_for_the_model(stage: Stage, crew: Crew, arguments: dict[str, object], why: str) -> None:
    [failed] = crew.lead_replies(call("send_to_agent", **arguments))
    assert why in stage.result(failed)
    assert stage.get(ToolCall, failed.id).is_error
    assert crew.threads == []
    assert stage.claim(crew.session_id), "the coordinator goes on"


def test_an_archived_thread_takes_no_more_messages(stage: Stage, crew: Crew) -> None:
    crew.lead_replies(send("Reader"))
    crew.replies(say("Done."))
    stage.archive_thread(crew.session_id, crew.thread().id)
    [failed] = crew.lead_replies(write(crew.thread().id))
    assert "is archived" in stage.result(failed)
    stage.check(crew.session_id)


@pytest.mark.parametrize("inline", [False, True], ids=["roster", "inline"])
def test_a_model_may_send_either_agent_or_thread_as_null(*, inline: bool) -> None:
    inline_agents = {"type": "enabled" if inline else "disabled"}
    sub_agents = {"type": "enabled", "inline_agents": inline_agents, "predefined_agents": [{"type": "self"}]}
    schema = sub_agent_tools({"multiagent": {"type": "multiagent_20261001", "subagents": sub_agents}})[1]["input_schema"]
    assert misfit(schema, {"agent": "Reader", "session_thread_id": None, "message": "Hi."}) is None
    assert misfit(schema, {"agent": None, "session_thread_id": "sthr_x", "message": "Hi."}) is None
