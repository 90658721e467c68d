"""A grant of a session covers the agent that asked, at its version; one that another agent defined, in its thread alone."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows.crew import Crew, create_agent, roster, send
from rows.stage import Stage, call

from models.database import ids
from models.database.transactions import transaction
from models.errors import Forbidden, Invalid
from models.flow.judge.grants import release_waiting
from models.session.approval.grant import Grant
from models.session.approval.reach import COVERS_AGENT, COVERS_SESSION, Reach, values_of
from models.session.approval.row import Approval
from models.session.thread.row import Thread
from models.session.tool_call.row import ToolCall
from models.workspace.agent import Agent

SCOUT = {"name": "Scout", "description": "Looks ahead.", "system": "Look ahead."}


@pytest.fixture
def crew(stage: Stage) -> Crew:
    """A coordinator that may define agents itself. All agents must ask."""
    return Crew.begin(stage, inline=True)


def spawn(crew: Crew, *agents: Any) -> None:
    """Begin a thread for each of these agents."""
    crew.lead_replies(*(send(agent) for agent in agents))


def asks(crew: Crew, number: int) -> bool:
    """True if people are asked about the next call of a sub-agent."""
    return crew.replies(call(), number=number)[0].status == "asked"


def lead_asks(crew: Crew) -> bool:
    """True if people are asked about the next call of the coordinator."""
    return crew.lead_replies(call())[0].status == "asked"


def grant_for(crew: Crew, number: int, **grant: Any) -> Grant:
    """Have a sub-agent ask, and allow its call with a grant for the session, which is returned."""
    [tool_call] = crew.replies(call(), number=number)
    crew.stage.confirm(crew.session_id, tool_call.id, scope="session", **grant)
    with transaction(crew.stage.workspace_id) as db:
        return db.find(Grant, "WHERE session_id = %(session)s", session=crew.session_id)[-1]


def test_the_agent_is_not_asked_again_in_any_of_its_threads(crew: Crew) -> None:
    spawn(crew, "Reader", "Reader")
    grant = grant_for(crew, 0)
    assert not asks(crew, 1)
    assert grant.reach == "calls of the agent Reader, version 1, in this session"
    crew.stage.check(crew.session_id)


def test_other_agents_are_asked_the_coordinator_too(crew: Crew) -> None:
    spawn(crew, "Reader", "Writer")
    grant_for(crew, 0)
    assert asks(crew, 1)
    assert lead_asks(crew)


def test_a_grant_to_the_coordinator_is_none_to_its_sub_agents(stage: Stage, crew: Crew) -> None:
    spawn(crew, "Reader")
    [tool_call] = crew.lead_replies(call())
    stage.confirm(crew.session_id, tool_call.id, scope="session")
    assert asks(crew, 0)


def test_another_version_of_the_agent_is_asked(stage: Stage) -> None:
    reader = create_agent(stage, "Reader")
    with transaction(stage.workspace_id) as db:
        Agent.lock(db, reader).update(db, stage.principal, {"name": "New reader"})
    newer = {"type": "agent", "id": reader, "version": 2}
    lead = create_agent(stage, "Lead", multiagent=roster(reader, newer))
    crew = Crew(stage, stage.session(of_agent=lead))
    stage.message(crew.session_id)
    spawn(crew, "Reader", "New reader")
    grant_for(crew, 0)
    assert asks(crew, 1)


def test_with_sub_agents_a_grant_covers_every_thread(stage: Stage, crew: Crew) -> None:
    spawn(crew, "Reader", "Writer", SCOUT)
    waiting = [crew.replies(call(), number=number)[0] for number in (1, 2)]
    grant = grant_for(crew, 0, include_sub_agents=True)
    assert grant.reach == "calls of every agent in this session, with all sub-agents"
    assert release_waiting(stage.workspace_id, crew.session_id) == 2
    assert [stage.get(ToolCall, tool_call.id).status for tool_call in waiting] == ["queued", "queued"]
    assert not lead_asks(crew)
    [event] = stage.events(crew.session_id, "grant.given")
    assert (event.body["include_sub_agents"], event.body["reach"]) == (True, grant.reach)
    assert stage.events(crew.session_id, "user.tool_confirmation")[0].body["include_sub_agents"] is True
    stage.check(crew.session_id)


@pytest.mark.parametrize("decision", [{"scope": "always"}, {}], ids=["always", "once"])
def test_sub_agents_are_included_in_a_grant_of_the_session_alone(stage: Stage, crew: Crew, decision: Any) -> None:
    [tool_call] = crew.lead_replies(call())
    with pytest.raises(Invalid, match="include_sub_agents"):
        stage.confirm(crew.session_id, tool_call.id, include_sub_agents=True, **decision)


def test_a_second_inline_agent_of_the_same_name_is_asked_again(crew: Crew) -> None:
    spawn(crew, SCOUT, SCOUT, "Reader")
    grant = grant_for(crew, 0)
    assert grant.reach == "calls of the sub-agent Scout in this thread alone"
    assert asks(crew, 1)
    assert asks(crew, 2)
    assert lead_asks(crew), "its agent's id is the coordinator's"


def test_an_inline_agent_is_not_asked_again_in_its_thread(stage: Stage, crew: Crew) -> None:
    spawn(crew, SCOUT)
    grant_for(crew, 0)
    [tool_call] = stage.locked(crew.session_id, lambda locked: locked.on(locked.threads[1]).changes.calls[crew.thread().id])
    stage.run_call(tool_call)
    assert not asks(crew, 0)


@pytest.mark.parametrize("scope", ["session", "always"])
def test_no_grant_of_a_coordinator_covers_an_agent_that_it_defined(stage: Stage, crew: Crew, scope: str) -> None:
    spawn(crew, SCOUT)
    [tool_call] = crew.lead_replies(call())
    stage.confirm(crew.session_id, tool_call.id, scope=scope)
    assert asks(crew, 0)


def test_an_inline_agent_gets_no_grant_for_all_sessions(stage: Stage, crew: Crew) -> None:
    spawn(crew, SCOUT)
    [tool_call] = crew.replies(call())
    [approval] = stage.approvals(crew.session_id)
    assert not approval.offer.has("always")
    with pytest.raises(
        Forbidden, match="does not offer to allow always: the rules for agents that their coordinator defines leave it out"
    ):
        stage.confirm(crew.session_id, tool_call.id, scope="always")
    assert stage.get(Approval, approval.id).status == "pending"


def test_a_grant_of_a_sub_agent_for_all_sessions_is_its_own(stage: Stage, crew: Crew) -> None:
    spawn(crew, "Reader")
    [tool_call] = crew.replies(call())
    stage.confirm(crew.session_id, tool_call.id, scope="always")
    assert stage.propose(stage.session(of_agent=crew.thread().agent_id)).status == "queued"
    assert lead_asks(crew)


REACHES = st.builds(
    Reach,
    st.sampled_from(["agent", "thread", "session"]),
    st.sampled_from([None, "sesn_1", "sesn_2"]),
    st.sampled_from(["agent_1", "agent_2"]),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([None, "sthr_1", "sthr_2"]),
)
THREADS = st.builds(
    Thread,
    session_id=st.sampled_from(["sesn_1", "sesn_2"]),
    id=st.sampled_from(["sthr_1", "sthr_2"]),
    agent_id=st.sampled_from(["agent_1", "agent_2"]),
    agent_version=st.sampled_from([1, 2]),
    inline=st.booleans(),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(reaches=st.lists(REACHES, min_size=1, max_size=20), thread=THREADS)
def test_sql_and_python_agree_on_every_thread(stage: Stage, reaches: list[Reach], thread: Thread) -> None:
    columns = "reach_kind, session_id, agent_id, agent_version, thread_id"
    rows = [(*vars(reach).values(), ids.new("grnt")) for reach in reaches]
    with transaction(stage.workspace_id) as db:
        values = {f"v{n}_{m}": value for n, row in enumerate(rows) for m, value in enumerate(row)}
        lines = ", ".join(
            f"(%(v{n}_0)s::text, %(v{n}_1)s::text, %(v{n}_2)s::text, %(v{n}_3)s::int, %(v{n}_4)s::text, %(v{n}_5)s::text)"
            for n in range(len(rows))
        )
        query = f"SELECT id FROM (VALUES {lines}) g ({columns}, id) WHERE ({COVERS_SESSION}) OR ({COVERS_AGENT})"
        covered = {grant_id for (grant_id,) in db.rows(query, **values, **values_of(thread))}
    assert covered == {row[-1] for reach, row in zip(reaches, rows, strict=True) if reach.covers(thread)}
