"""A model setting or message that a provider cannot handle is a 400 that names the field. Other settings come back unchanged."""

from collections.abc import Callable
from typing import Any

import pytest
from anthropic.types.beta import BetaManagedAgentsAgent
from doors.served import key
from flask import Flask
from flask.testing import FlaskClient
from rows.stage import Stage

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}}
PDF_URL = {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}}
NOTES = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Buy milk."}}
HELLO = {"type": "text", "text": "Hello"}


@pytest.fixture
def client(flask_app: Flask, stage: Stage, write_registry: Callable[..., None]) -> FlaskClient:
    """A client of an API with three providers: `claude` can do everything, `blind` reads no images, `lazy` has no effort."""
    entries = [
        {"name": "claude", "kind": "anthropic", "models": ["claude-*"], "api_key_env": "CLAUDE_KEY"},
        {"name": "blind", "kind": "openai", "models": ["blind-*"], "abilities": {"images": False}},
        {"name": "lazy", "kind": "openai", "models": ["lazy-*"], "abilities": {"effort": False}},
    ]
    write_registry(*entries)
    client = flask_app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = key(stage)
    return client


@pytest.mark.parametrize(
    ("model", "stored"),
    [
        ("claude-1", {"id": "claude-1"}),
        ({"id": "claude-1", "speed": "standard"}, {"id": "claude-1"}),
        ({"id": "claude-1", "effort": "high"}, {"id": "claude-1", "effort": {"type": "high"}}),
        ({"id": "claude-1", "effort": {"type": "max"}}, {"id": "claude-1", "effort": {"type": "max"}}),
        ({"id": "claude-1", "fallbacks": ["lazy-2", "blind-1"]}, {"id": "claude-1", "fallbacks": ["lazy-2", "blind-1"]}),
        ({"id": "claude-1", "exclude_providers": ["lazy"]}, {"id": "claude-1", "exclude_providers": ["lazy"]}),
    ],
)
def test_a_model_comes_back_as_it_was_sent_and_the_sdk_reads_it(client: FlaskClient, model: Any, stored: Any) -> None:
    answer = client.post("/v1/agents", json={"name": "A", "model": model})
    assert (answer.status_code, answer.get_json()["model"]) == (200, stored)
    agent = BetaManagedAgentsAgent.model_validate(answer.get_json(), strict=False)
    assert agent.model.id == "claude-1"


@pytest.mark.parametrize(
    ("model", "fault"),
    [
        ("gpt-5.5", "model: id: no provider serves 'gpt-5.5'; those of this server serve claude-*, blind-*, lazy-*."),
        ({"id": "claude-1", "fallbacks": ["gpt-5.5"]}, "model: fallbacks: no provider serves 'gpt-5.5'"),
        ({"id": "lazy-1", "effort": "low"}, "model: effort: provider lazy cannot set the effort of 'lazy-1'; leave effort out."),
        ({"id": "claude-1", "effort": "low", "fallbacks": ["lazy-1"]}, "model: effort: provider lazy cannot set"),
        ({"id": "claude-1", "effort": "most"}, "model.effort"),
        ({"id": "claude-1", "fallbacks": ["lazy-1", "lazy-1"]}, "model.fallbacks: names 'lazy-1' twice"),
        ({"id": "claude-1", "exclude_providers": ["other"]}, "model.exclude_providers.0: there is no provider 'other'"),
        ({"id": "claude-1", "exclude_providers": ["claude"]}, "model: id: no provider serves 'claude-1'"),
        ({"id": "claude-1", "speed": "fast"}, "model.speed"),
        ({"id": "claude-1", "inference_geo": "eu"}, "model.inference_geo: is not supported"),
    ],
)
def test_an_unavailable_model_or_setting_is_refused_by_its_field(client: FlaskClient, model: Any, fault: str) -> None:
    answer = client.post("/v1/agents", json={"name": "A", "model": model})
    assert answer.status_code == 400
    assert answer.get_json()["error"]["message"].startswith(fault), answer.text


def session(client: FlaskClient, model: str) -> str:
    """Create a session with this model. Returns its id."""
    agent = client.post("/v1/agents", json={"name": "A", "model": model}).get_json()["id"]
    environment = client.get("/v1/environments").get_json()["data"][0]["id"]
    created = client.post("/v1/sessions", json={"agent": agent, "environment_id": environment})
    assert created.status_code == 200, created.text
    return str(created.get_json()["id"])


def send(client: FlaskClient, session_id: str, *content: Any) -> tuple[int, str]:
    """Send a message. Returns the status and the error's message."""
    events = [{"type": "user.message", "content": list(content)}]
    answer = client.post(f"/v1/sessions/{session_id}/events", json={"events": events})
    return answer.status_code, answer.get_json().get("error", {}).get("message", "")


def test_a_message_that_the_model_cannot_read_is_refused_by_its_block(client: FlaskClient) -> None:
    blind = session(client, "blind-1")
    expected = "events.0.content.1: provider blind cannot read image blocks; send its content as text."
    assert send(client, blind, HELLO, IMAGE) == (400, expected)
    assert send(client, blind, PDF)[1].startswith("events.0.content.0: provider blind cannot read document blocks")
    assert client.get(f"/v1/sessions/{blind}/events").get_json()["data"] == []
    assert send(client, blind, HELLO, NOTES)[0] == 200
    assert send(client, session(client, "lazy-1"), IMAGE)[0] == 200
    assert [send(client, session(client, "claude-1"), block)[0] for block in (IMAGE, PDF, PDF_URL)] == [200] * 3


def test_a_workspace_s_defaults_are_checked_stored_and_cleared(client: FlaskClient) -> None:
    model = {"fallbacks": ["lazy-1"], "exclude_providers": ["blind"]}
    assert client.post("/v1/policy", json={"model": model}).get_json()["model"] == model
    assert client.get("/v1/policy").get_json()["model"] == model
    assert send(client, session(client, "claude-1"), IMAGE)[0] == 200
    refused = client.post("/v1/policy", json={"model": {"fallbacks": ["gpt-5.5"]}})
    assert refused.get_json()["error"]["message"].startswith("model: fallbacks: no provider serves 'gpt-5.5'")
    assert client.post("/v1/policy", json={"model": None}).get_json()["model"] is None


def test_a_session_s_own_model_is_checked_too(client: FlaskClient) -> None:
    agent = client.post("/v1/agents", json={"name": "A", "model": "claude-1"}).get_json()["id"]
    environment = client.get("/v1/environments").get_json()["data"][0]["id"]
    overridden = {"type": "agent_with_overrides", "id": agent, "model": "gpt-5.5"}
    answer = client.post("/v1/sessions", json={"agent": overridden, "environment_id": environment})
    assert answer.status_code == 400
    assert "no provider serves 'gpt-5.5'" in answer.text


@pytest.mark.parametrize(
    "override", ["lazy-1", {"id": "lazy-1", "exclude_providers": []}, {"id": "blind-1", "fallbacks": ["lazy-1"]}]
)
def test_a_session_s_own_model_is_not_served_by_a_provider_that_the_agent_excludes(client: FlaskClient, override: Any) -> None:
    """Its key may run sessions alone. It chooses another model, and not where the texts go."""
    agent_id = client.post("/v1/agents", json={"name": "A", "model": {"id": "claude-1", "exclude_providers": ["lazy"]}}).get_json()[
        "id"
    ]
    environment_id = client.post("/v1/environments", json={"name": "E"}).get_json()["id"]
    agent = {"type": "agent_with_overrides", "id": agent_id, "model": override}
    answer = client.post("/v1/sessions", json={"agent": agent, "environment_id": environment_id})
    assert answer.status_code == 400, answer.text
    message = answer.get_json()["error"]["message"]
    assert message.startswith("agent.model.")
    assert "no provider serves 'lazy-1'; those of this server serve claude-*, blind-*." in message
    agent["model"] = {"id": "claude-2", "exclude_providers": ["blind"]}
    answer = client.post("/v1/sessions", json={"agent": agent, "environment_id": environment_id})
    assert answer.get_json()["agent"]["model"] == {"id": "claude-2", "exclude_providers": ["lazy", "blind"]}
