"""The strict SDK accepts the response of every route: each fits its types."""

from typing import Any

import anthropic
import pytest
from anthropic import Anthropic
from anthropic.types.beta import BetaManagedAgentsSession
from doors.served import MODEL
from rows.stage import Stage, call, say

TOOLSET: Any = {"type": "agent_toolset_20260401"}
CUSTOM: Any = {"type": "custom", "name": "look_up", "description": "d", "input_schema": {"type": "object", "properties": {}}}


def session(sdk: Anthropic, **more: Any) -> BetaManagedAgentsSession:
    """Create a session in the built-in environment."""
    agent = sdk.beta.agents.create(name="Agent", model=MODEL, tools=[TOOLSET, CUSTOM])
    environment = sdk.beta.environments.list().data[0]
    return sdk.beta.sessions.create(agent=agent.id, environment_id=environment.id, **more)


def test_it_manages_agents(sdk: Anthropic) -> None:
    policies: Any = [
        {"name": "bash", "permission_policy": {"type": "always_deny"}},
        {"name": "read", "permission_policy": {"type": "always_allow"}, "approval": {"timeout_seconds": 5}},
    ]
    tools: Any = [{**TOOLSET, "configs": policies}, {**CUSTOM, "permission_policy": {"type": "always_deny"}}]
    agent = sdk.beta.agents.create(
        name="A",
        model={"id": MODEL, "speed": "standard"},
        system="s",
        description="d",
        metadata={"k": "v"},
        tools=tools,
        mcp_servers=[],
        skills=[],
        extra_body={"max_turns": 3},
    )
    assert (agent.version, agent.execution_identity.type, agent.archived_at) == (1, "service_account", None)
    assert agent.to_dict()["max_turns"] == 3
    assert sdk.beta.agents.retrieve(agent.id, version=1) == agent
    changed = sdk.beta.agents.update(agent.id, version=1, name="B", tools=agent.to_dict()["tools"])  # type: ignore[arg-type]
    assert (changed.version, changed.tools) == (2, agent.tools)
    assert [v.version for v in sdk.beta.agents.versions.list(agent.id, limit=1)] == [2, 1]
    assert [a.id for a in sdk.beta.agents.list(created_at_gte=agent.created_at)] == [agent.id]
    assert sdk.beta.agents.archive(agent.id).archived_at
    assert [a.id for a in sdk.beta.agents.list(include_archived=True)] == [agent.id]


def test_it_manages_environments(sdk: Anthropic) -> None:
    [built_in] = sdk.beta.environments.list()
    assert (built_in.name, built_in.config.type) == ("default", "cloud")
    created = sdk.beta.environments.create(name="E", description="d", metadata={"k": "v"}, config={"type": "cloud"})
    assert sdk.beta.environments.retrieve(created.id) == created
    assert sdk.beta.environments.update(created.id, name="F", metadata={"k": None}).metadata == {}
    assert sdk.beta.environments.archive(created.id).archived_at
    assert sdk.beta.environments.delete(created.id).type == "environment_deleted"


def test_it_manages_sessions(sdk: Anthropic, stage: Stage) -> None:
    created = session(sdk, title="T", metadata={"k": "v"}, resources=[], vault_ids=[])
    assert (created.status, created.agent.version, created.title) == ("idle", 1, "T")
    again = sdk.beta.sessions.retrieve(created.id)
    assert again.model_copy(update={"stats": created.stats}) == created, "the statistics alone, which have ages, may differ"
    updated = sdk.beta.sessions.update(created.id, title="U", metadata={"k": None}, agent={"tools": [TOOLSET]})
    assert (updated.title, updated.metadata, len(updated.agent.tools)) == ("U", {}, 1)
    assert list(sdk.beta.sessions.resources.list(created.id)) == []
    agent = created.agent
    others = [
        sdk.beta.sessions.create(agent={"type": "agent", "id": agent.id, "version": 1}, environment_id=created.environment_id),
        sdk.beta.sessions.create(
            agent={"type": "agent_with_overrides", "id": agent.id, "model": "other", "tools": [], "system": None},
            environment_id=created.environment_id,
            initial_events=[{"type": "user.message", "content": [{"type": "text", "text": "Go."}]}],
        ),
    ]
    assert [s.id for s in sdk.beta.sessions.list(limit=1)] == [others[1].id, others[0].id, created.id]
    assert [s.id for s in sdk.beta.sessions.list(statuses=["running"], order="asc")] == [others[1].id]
    assert [s.id for s in sdk.beta.sessions.list(agent_id=agent.id, agent_version=1, created_at_gt=created.created_at)] == [
        others[1].id,
        others[0].id,
    ]
    stage.reply(others[1].id, say("Done."))
    used = sdk.beta.sessions.retrieve(others[1].id)
    assert (used.usage.input_tokens, used.usage.output_tokens) == (10, 5)
    assert sdk.beta.sessions.archive(created.id).status == "terminated"
    assert sdk.beta.sessions.delete(created.id).type == "session_deleted"


def test_it_sends_events(sdk: Anthropic, stage: Stage) -> None:
    created = session(sdk)
    image: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    document: Any = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}, "title": "t"}
    sent = sdk.beta.sessions.events.send(
        created.id, events=[{"type": "user.message", "content": [{"type": "text", "text": "Go."}, image, document]}]
    )
    assert sent.data
    [ours, theirs] = stage.reply(created.id, call(), call("look_up", n=1))
    link: Any = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    result: Any = {
        "type": "search_result",
        "source": "s",
        "title": "t",
        "content": [{"type": "text", "text": "x"}],
        "citations": {"enabled": False},
    }
    answered = sdk.beta.sessions.events.send(
        created.id,
        events=[
            {"type": "user.tool_confirmation", "tool_use_id": ours.id, "result": "deny", "deny_message": "No."},
            {"type": "user.custom_tool_result", "custom_tool_use_id": theirs.id, "content": [link, result], "is_error": False},
            {"type": "user.interrupt"},
        ],
    )
    assert [e.type for e in answered.data or []] == [
        "user.tool_confirmation",
        "user.custom_tool_result",
        "user.interrupt",
    ]
    assert list(sdk.beta.sessions.events.list(created.id, limit=2)) == list(sdk.beta.sessions.events.list(created.id))


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda sdk: sdk.beta.agents.retrieve("agent_none"), anthropic.NotFoundError),
        (lambda sdk: sdk.beta.agents.create(name="", model=MODEL), anthropic.BadRequestError),
        (lambda sdk: sdk.with_options(api_key="sk-none").beta.agents.list(), anthropic.AuthenticationError),
        (lambda sdk: sdk.beta.agents.list(workspace_id="wrkspc_other"), anthropic.PermissionDeniedError),
        (lambda sdk: sdk.beta.sessions.events.stream("sesn_none"), anthropic.NotFoundError),
    ],
)
def test_errors_are_the_sdk_s_own(sdk: Anthropic, act: Any, error: type[anthropic.APIStatusError]) -> None:
    with pytest.raises(error) as raised:
        act(sdk)
    assert raised.value.request_id
    assert raised.value.type


def test_a_final_conflict_is_not_retried(sdk: Anthropic) -> None:
    agent = sdk.beta.agents.create(name="A", model=MODEL)
    patient = sdk.with_options(max_retries=5)
    with pytest.raises(anthropic.ConflictError) as raised:
        patient.beta.agents.update(agent.id, name="B", version=7)
    assert raised.value.response.request.headers["x-stainless-retry-count"] == "0"
