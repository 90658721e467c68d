"""Wherever people are asked about a call of a sub-agent, the question names the path to it: `Lead › Reader`."""

from typing import Any

import pytest
from outbox.notified import channel, fan_out, notifications
from rows.crew import Crew, send
from rows.stage import Stage, call, say

from api.chat import asking
from models.database.transactions import transaction
from models.notices import texts
from models.notices.notice import Notice
from models.session.approval import sentences
from models.session.approval.row import Approval
from models.session.event.tasks import tasks_of
from models.session.row import Session
from models.session.tool_call.row import ToolCall


@pytest.fixture
def crew(stage: Stage) -> Crew:
    """A coordinator with a thread of each sub-agent, in a session that chat words may decide."""
    crew = Crew.begin(stage, chat_approvals=True)
    crew.lead_replies(send("Reader", "Find the price."), send("Writer", "Write the offer."))
    return crew


def ask(crew: Crew, number: int, command: str = "ls") -> Approval:
    """Have a sub-agent ask about a command. Returns the approval."""
    crew.replies(call(command=command), number=number)
    return crew.stage.approvals(crew.session_id)[-1]


def listing(crew: Crew) -> str:
    """The text of the newest listing in the session's own conversation."""
    texts_of = [event.body["content"][0]["text"] for event in crew.stage.events(crew.session_id, "agent.message")]
    return str(texts_of[-1])


def status(crew: Crew, approval: Approval) -> str:
    return crew.stage.get(ToolCall, approval.tool_call_id).status


def test_a_headline_begins_with_the_path(crew: Crew) -> None:
    approval = ask(crew, 0)
    with transaction(crew.stage.workspace_id) as db:
        assert sentences.headline(approval, approval.path(db)) == "Lead › Reader wants to run a shell command"


def test_a_sub_agent_s_task_is_its_first_message(crew: Crew) -> None:
    rows = [ask(crew, 0), ask(crew, 1)]
    [own] = crew.lead_replies(call())
    [of_lead] = [row for row in crew.stage.approvals(crew.session_id) if row.tool_call_id == own.id]
    with transaction(crew.stage.workspace_id) as db:
        tasks = tasks_of(db, [(row.session_id, row.thread_id) for row in (*rows, of_lead)])
    assert tasks == {rows[0].thread_id: "Find the price.", rows[1].thread_id: "Write the offer."}


def test_a_notification_names_the_path_before_and_after_the_decision(stage: Stage, crew: Crew) -> None:
    room = channel(stage, kind="slack", address="C012AB3CD")
    approval = ask(crew, 1)
    fan_out(stage)
    [row] = notifications(stage)

    def notice(stage_of_approval: Any) -> Notice:
        with transaction(stage.workspace_id) as db:
            return texts.notice(db, row, room, db.get_one(Approval, approval.id), stage_of_approval)

    assert notice("requested").sentence == "Lead › Writer wants to run a shell command"
    assert notice("requested").agent == "Lead › Writer"
    stage.decide(approval, result="allow")
    assert notice("decided").sentence == "Lead › Writer wants to run a shell command"


def test_a_client_of_openai_s_format_is_asked_with_the_path(stage: Stage, crew: Crew) -> None:
    approval = ask(crew, 0)
    with transaction(stage.workspace_id) as db:
        session = db.get_one(Session, crew.session_id)
        [sentence] = asking.asks(db, stage.principal, session, "text").sentences
        [as_call] = asking.asks(db, stage.principal, session, "tools").calls
        assert asking.without_sentences(f"So far: {sentence}", asking.recognised(db, [sentence])) == "So far:"
    assert sentence == f"Waiting for approval: Lead › Reader: Run shell command: ls ({approval.id})"
    assert '"agent": "Lead › Reader"' in as_call.function.arguments


def test_the_conversation_lists_each_question_with_its_path(crew: Crew) -> None:
    crew.lead_replies(say("I wait."))
    ask(crew, 0, "ls")
    ask(crew, 1, "pwd")
    assert "Lead › Reader: Run shell command\n| ls\n\nLead › Writer: Run shell command\n| pwd" in listing(crew)


def test_a_chat_word_decides_a_sub_agent_s_call(stage: Stage, crew: Crew, clock: Any) -> None:
    crew.lead_replies(say("I wait."))
    first, second = ask(crew, 0), ask(crew, 1)
    clock.advance(2)
    stage.message(crew.session_id, "reject: not today")
    assert [status(crew, row) for row in (first, second)] == ["denied", "denied"]
    assert "not today" in stage.result(stage.get(ToolCall, first.tool_call_id))


def test_approve_all_gives_each_agent_a_grant_of_its_own(stage: Stage, crew: Crew, clock: Any) -> None:
    crew.lead_replies(say("I wait."))
    rows = [ask(crew, 0), ask(crew, 1)]
    for agent in ("Reader", "Writer"):
        assert f"by Lead › {agent}" in listing(crew)
    clock.advance(2)
    stage.message(crew.session_id, "approve all")
    assert [status(crew, row) for row in rows] == ["queued", "queued"]
    reaches = {event.body["reach"] for event in stage.events(crew.session_id, "grant.given")}
    assert reaches == {f"calls of the agent {agent}, version 1, in this session" for agent in ("Reader", "Writer")}


def test_approve_all_gives_no_grant_to_an_agent_that_asks_for_more_than_is_shown(stage: Stage, crew: Crew, clock: Any) -> None:
    crew.lead_replies(say("I wait."))
    rows = [ask(crew, 0), ask(crew, 1, f"echo {'x' * 600}")]
    clock.advance(2)
    stage.message(crew.session_id, "approve all")
    assert [status(crew, row) for row in rows] == ["queued", "asked"]
    [grant] = stage.events(crew.session_id, "grant.given")
    assert "Reader" in grant.body["reach"]
