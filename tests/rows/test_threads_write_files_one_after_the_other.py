"""All threads of a session share its files. Calls of different threads that write them run one after the other."""

from typing import Any

import pytest
from rows.crew import Crew, create_agent, roster, send
from rows.stage import Stage, call, say

from models.session.tool_call.row import ToolCall

ALLOW = {"type": "always_allow"}


def edit(old: str) -> dict[str, Any]:
    """A call that edits a file."""
    return call("edit", file_path="notes.md", old_string=old, new_string="new")


@pytest.fixture
def crew(stage: Stage) -> Crew:
    """A coordinator that rests, and two sub-agents that may write."""
    names = ("read", "write", "edit")
    configs = [
        {"type": name, "name": name, "enabled": True, "permission_policy": ALLOW, "policy_from": "tool", "approval": None}
        for name in names
    ]
    tools = [
        {"type": "agent_toolset_20260401", "default_config": {"enabled": True, "permission_policy": ALLOW}, "configs": configs}
    ]
    agent = create_agent(stage, "Lead", multiagent=roster(create_agent(stage, "Writer", tools=tools)), tools=tools)
    crew = Crew(stage, stage.session(of_agent=agent))
    stage.message(crew.session_id)
    crew.lead_replies(send("Writer"), send("Writer"))
    crew.lead_replies(say("I wait."))
    return crew


def test_the_second_call_begins_when_the_first_has_ended(stage: Stage, crew: Crew) -> None:
    [first], [second] = crew.replies(edit("a"), number=0), crew.replies(edit("b"), number=1)
    held = stage.begin_call(first)
    assert stage.claim_call(second) is None
    assert stage.get(ToolCall, second.id).status == "queued"
    stage.finish_call(held)
    assert stage.begin_call(second), "without a wait for a sweep"
    stage.check(crew.session_id)


def test_the_second_call_is_judged_on_what_the_first_one_left(stage: Stage, crew: Crew) -> None:
    [first], [second] = crew.replies(edit("a"), number=0), crew.replies(edit("b"), number=1)
    held = stage.begin_call(first)
    assert stage.claim_call(second, links={"notes.md": "notes.md"}) is None
    stage.finish_call(held)
    assert stage.claim_call(second, links={"notes.md": ".git/hooks/pre-commit"}) is None
    assert stage.get(ToolCall, second.id).status == "asked", "the first call has made a link of the file"


def test_it_begins_also_if_the_first_call_s_worker_is_lost(stage: Stage, crew: Crew, clock: Any) -> None:
    [first], [second] = crew.replies(edit("a"), number=0), crew.replies(edit("b"), number=1)
    held = stage.begin_call(first)
    assert stage.claim_call(second) is None
    stage.lose(held, clock)
    assert stage.get(ToolCall, first.id).status == "unknown"
    assert stage.begin_call(second)


def test_calls_of_one_thread_and_calls_that_do_not_write_wait_for_none(stage: Stage, crew: Crew) -> None:
    own, also = crew.replies(edit("a"), edit("b"), number=0)
    [reading] = crew.replies(call("read", file_path="notes.md"), number=1)
    for each in (own, also, reading):
        assert stage.begin_call(each)
