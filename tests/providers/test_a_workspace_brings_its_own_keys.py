"""A workspace's own key for a provider is stored encrypted, shown to nobody, and used instead of the operator's key."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from doors.served import key
from flask import Flask
from rows.stage import Stage

from models.audit.acts import Audit
from models.database.encryption import new_keys
from models.database.transactions import transaction
from models.session.turn.row import Turn
from models.settings import settings
from models.workspace.provider_key import ProviderKey
from workers import turn as task


@pytest.fixture
def sent(refusing: Callable[[str], tuple[str, list[dict[str, Any]]]], write_registry: Callable[..., None]) -> list[dict[str, Any]]:
    """The requests to the provider `local`, whose operator's key is `the-operator-s`."""
    address, bodies = refusing("nothing")
    entry = {"name": "local", "kind": "openai", "base_url": f"{address}/v1", "models": ["*"], "api_key_env": "LOCAL_KEY"}
    private, public = new_keys()
    keys = {"LOCAL_KEY": "the-operator-s", "ASSENT_TURNS_PUBLIC_KEY": public, "ASSENT_TURNS_PRIVATE_KEYS": private}
    write_registry(entry, **keys)
    return bodies


def keys(requests: list[dict[str, Any]]) -> list[str]:
    """Return the key of each request."""
    return [request["header"] for request in requests]


def run(stage: Stage) -> Turn:
    """Run a turn of a new session. Returns the turn."""
    session_id = stage.session()
    stage.message(session_id)
    turn_id = stage.thread(session_id).turn_id or ""
    task.attempt(turn_id, session_id, stage.workspace_id)
    return stage.get(Turn, turn_id)


def test_it_takes_precedence_over_the_operator_s_in_its_workspace_alone(stage: Stage, sent: list[dict[str, Any]]) -> None:
    with transaction(stage.workspace_id) as db:
        ProviderKey.store(db, stage.principal, "local", "sk-workspace")
    assert run(stage).status == "done"
    assert run(Stage()).status == "done"
    assert keys(sent) == ["Bearer sk-workspace", "Bearer the-operator-s"]


def test_it_is_replaced_and_deleted(stage: Stage, sent: list[dict[str, Any]]) -> None:
    for secret in ("sk-first", "sk-second"):
        with transaction(stage.workspace_id) as db:
            row = ProviderKey.store(db, stage.principal, "local", secret)
    run(stage)
    with transaction(stage.workspace_id) as db:
        ProviderKey.remove(db, stage.principal, row.id)
    run(stage)
    assert keys(sent) == ["Bearer sk-second", "Bearer the-operator-s"]
    with transaction(stage.workspace_id) as db:
        acts = [act.action for act in db.find(Audit, "WHERE chain = %(chain)s ORDER BY seq", chain=stage.workspace_id)]
    assert [act for act in acts if act.startswith("provider_key")] == ["provider_key.stored"] * 2 + ["provider_key.deleted"]


def test_a_key_that_cannot_be_decrypted_ends_the_run_and_the_operator_s_key_is_not_used(
    stage: Stage, sent: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with transaction(stage.workspace_id) as db:
        ProviderKey.store(db, stage.principal, "local", "sk-workspace")
    monkeypatch.setenv("ASSENT_TURNS_PRIVATE_KEYS", new_keys()[0])
    settings.cache_clear()
    turn = run(stage)
    assert (turn.status, keys(sent)) == ("failed", [])
    [error] = stage.events(turn.session_id, "session.error")
    assert error.body["error"]["message"].startswith("The workspace's key for provider local cannot be used: ASSENT_TURNS_PRIVATE")


def test_admins_store_list_and_delete_keys_and_nobody_sees_them(flask_app: Flask, stage: Stage, sent: list[dict[str, Any]]) -> None:
    client, admin = flask_app.test_client(), {"x-api-key": key(stage)}
    stored = client.post("/v1/provider_keys", json={"provider": "local", "key": "sk-workspace-0123456789"}, headers=admin)
    assert stored.status_code == 200, stored.text
    listed = client.get("/v1/provider_keys", headers=admin)
    assert [(row["id"], row["provider"], row["hint"]) for row in listed.get_json()["data"]] == [
        (stored.get_json()["id"], "local", "6789")
    ]
    assert "sk-workspace" not in stored.text + listed.text
    with transaction(stage.workspace_id) as db:
        assert "sk-workspace" not in json.dumps(db.rows("SELECT to_jsonb(provider_key) FROM provider_key"), default=str)
    assert client.delete(f"/v1/provider_keys/{stored.get_json()['id']}", headers=admin).status_code == 200
    assert client.get("/v1/provider_keys", headers=admin).get_json()["data"] == []
    assert client.delete(f"/v1/provider_keys/{stored.get_json()['id']}", headers=admin).status_code == 404


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"provider": "nobody", "key": "k"}, 400, "provider: there is no provider 'nobody' on this server: use local."),
        ({"provider": "local", "key": ""}, 400, "key: "),
        ({"provider": "local", "key": "a b"}, 400, "key: "),
        ({"provider": "local"}, 400, "key: "),
    ],
)
def test_an_invalid_key_is_refused(
    flask_app: Flask, stage: Stage, sent: list[dict[str, Any]], body: dict[str, str], status: int, message: str
) -> None:
    answer = flask_app.test_client().post("/v1/provider_keys", json=body, headers={"x-api-key": key(stage)})
    assert (answer.status_code, answer.get_json()["error"]["message"].startswith(message)) == (status, True), answer.text


def test_without_an_encryption_key_no_key_is_stored(
    flask_app: Flask, stage: Stage, sent: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASSENT_TURNS_PUBLIC_KEY")
    settings.cache_clear()
    body = {"provider": "local", "key": "sk-workspace"}
    answer = flask_app.test_client().post("/v1/provider_keys", json=body, headers={"x-api-key": key(stage)})
    assert (answer.status_code, "ASSENT_TURNS_PUBLIC_KEY is not set" in answer.text) == (409, True)


def test_only_admins_manage_keys(flask_app: Flask, stage: Stage, sent: list[dict[str, Any]]) -> None:
    client, plain = flask_app.test_client(), {"x-api-key": key(stage, "agents", "sessions", "read")}
    assert client.post("/v1/provider_keys", json={"provider": "local", "key": "k"}, headers=plain).status_code == 403
    assert client.get("/v1/provider_keys", headers=plain).status_code == 403
