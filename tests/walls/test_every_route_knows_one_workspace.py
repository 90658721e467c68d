"""Every route answers another workspace's ids as if they did not exist, and changes nothing."""

from typing import Any

import psycopg
from doors.served import KEYLESS, MODEL, confirmation, message
from flask import Flask
from rows.stage import call
from walls.world import World
from werkzeug.routing import Rule

from api.door import pages
from models.database import ids

FOR_PEOPLE = {"POST /v1/delegations/<delegation_id>/accept", "POST /v1/organizations/users/<user_id>/confirm"}
"""Routes that find a key's rows, and refuse the key with 403."""


def bodies(world: World) -> dict[str, Any]:
    """The bodies of valid requests by route. Routes that are not here take an empty body."""
    return {
        "POST /v1/agents": {"name": "New", "model": MODEL},
        "POST /v1/agents/<agent_id>": {"version": 1, "name": "Renamed"},
        "POST /v1/environments": {"name": "New", "config": {"type": "self_hosted"}},
        "POST /v1/environments/<environment_id>": {"name": "Renamed"},
        "POST /v1/environments/<environment_id>/work/<work_id>": {"metadata": {"a": "b"}},
        "POST /v1/sessions": {"agent": world.ids["agent_id"], "environment_id": world.ids["environment_id"]},
        "POST /v1/sessions/<session_id>": {"title": "Renamed"},
        "POST /v1/sessions/<session_id>/events": {"events": [message(), confirmation(world.ids["tool_use_id"])]},
        "POST /v1/chat/completions": {
            "model": f"assent/{world.agent_id}",
            "messages": [{"role": "user", "content": "Go on."}],
            "metadata": {"session_id": world.session_id},
        },
        "POST /v1/sessions/<session_id>/messages": {"messages": [{"role": "user", "content": "Go on."}]},
        "POST /v1/approvals/<approval_id>/decision": {"result": "allow"},
        "POST /v1/approvals/<approval_id>/extend": {"seconds": 100_000},
        "POST /v1/approvals/<approval_id>/preview": {"scope": "session"},
        "POST /v1/approvals/decisions": {"decisions": [{"approval_id": world.ids["approval_id"], "result": "allow"}]},
        "POST /v1/delegations": {
            "from": f"user:{world.anna.person_id}",
            "to": f"user:{world.dora.person_id}",
            "ends_at": "2999-01-01T00:00:00Z",
        },
        "POST /v1/organizations/api_keys": {"name": "New"},
        "POST /v1/organizations/api_keys/<api_key_id>": {"name": "Renamed"},
        "POST /v1/organizations/api_keys/<api_key_id>/rotate": {"overlap_seconds": 60},
        "POST /v1/organizations/invites": {"email": f"{ids.new('new').lower()}@example.com"},
        "POST /v1/organizations/rbac_groups": {"name": "New"},
        "POST /v1/organizations/rbac_groups/<rbac_group_id>": {"name": "Renamed"},
        "POST /v1/organizations/rbac_groups/<rbac_group_id>/members": {"user_id": world.ids["user_id"]},
        "POST /v1/organizations/users/<user_id>": {"workspace_role": "viewer"},
        "POST /v1/organizations/users/<user_id>/erase": {"reason": "They asked for it."},
        "POST /v1/sessions/<session_id>/erase": {"reason": "They asked for it."},
        "POST /v1/channels": {"kind": "slack", "address": "C012AB3CD"},
        "POST /v1/channels/<channel_id>": {"name": "Renamed"},
        "POST /v1/webhooks": {"url": "https://example.com"},
        "POST /v1/webhooks/<webhook_id>": {"name": "Renamed"},
        "POST /v1/organizations/webhooks": {"url": "https://example.com"},
        "POST /v1/organizations/webhooks/<webhook_id>": {"name": "Renamed"},
        "POST /v1/provider_keys": {"provider": "anthropic", "key": "sk-other"},
        "POST /v1/spend_limits": spend_limit(world),
        "POST /v1/organizations/spend_limits": spend_limit(world),
        "POST /v1/policy": {"permission_policy": {"type": "always_deny"}},
        "POST /v1/audit/erase": {"chain": world.session_id},
        "POST /v1/legal_holds": {"session_id": world.session_id, "reason": "A case."},
        "POST /v1/policy/explain": {"session_id": world.session_id, "tool": "bash", "input": {"command": "true"}},
        "POST /v1/policy/simulate": {"rule": {"effect": "deny", "match": "bash"}, "agent_id": world.ids["agent_id"]},
    }


def spend_limit(world: World) -> dict[str, Any]:
    """A limit of this world's agent."""
    return {"amount": "100", "scope": {"type": "agent", "agent_id": world.ids["agent_id"]}}


def requests(app: Flask) -> list[tuple[str, Rule]]:
    """Every method of every route that takes a key. Pages take none."""
    return [
        (method, rule)
        for rule in app.url_map.iter_rules()
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
        if rule.rule not in KEYLESS and not pages.is_page(rule.endpoint)
    ]


def path(rule: Rule, world: World) -> str:
    """The route with this world's ids. A KeyError means that the world lacks a row that a new route names."""
    address = rule.rule
    for name in rule.arguments:
        address = address.replace(f"<{name}>", world.ids[name])
    return address


def test_another_workspace_s_ids_are_unknown_and_its_rows_stay(
    app: Flask, theirs: World, ours: World, admin: "psycopg.Connection[Any]"
) -> None:
    before = theirs.rows(admin)
    everything = requests(app)
    assert len(everything) > 30
    for method, rule in everything:
        name = f"{method} {rule.rule}"
        body = bodies(theirs).get(name, {}) if method == "POST" else None
        answer = ours.ask(method, path(rule, theirs), body)
        if rule.arguments:
            assert answer.status_code == 404, f"{name}: {answer.status_code} {answer.text}"
        elif any(known in str(body) for known in theirs.ids.values()):
            assert answer.status_code in {400, 404}, f"{name}: {answer.status_code} {answer.text}"
        else:
            assert answer.status_code == 200, f"{name}: {answer.text}"
            assert not any(known in answer.text for known in theirs.ids.values()), f"{name} shows another workspace's ids"
        assert theirs.rows(admin) == before, f"{name} changed something"
        answer.close()


def test_the_same_requests_succeed_in_their_own_workspace(app: Flask, theirs: World) -> None:
    """So the test above gets its 404s for the right reason.

    A later request may need a row that an earlier one archived or deleted. Such a request is sent again in a new world.
    """
    world = theirs
    for method, rule in requests(app):
        if not _is_good(method, rule, world):
            world = World(app)
            assert _is_good(method, rule, world), f"give {method} {rule.rule} a good body here"


def _is_good(method: str, rule: Rule, world: World) -> bool:
    body = bodies(world).get(f"{method} {rule.rule}", {}) if method == "POST" else None
    response = world.ask(method, path(rule, world), body)
    response.close()
    expected = {403} if f"{method} {rule.rule}" in FOR_PEOPLE else {200, 409, 412}
    return response.status_code in expected


def allow(approval_id: str) -> dict[str, Any]:
    """One of several decisions."""
    return {"approval_id": approval_id, "result": "allow"}


def mixed(ours: World, theirs: World) -> list[tuple[str, dict[str, Any]]]:
    """Requests to our own rows with ids of the other workspace."""
    events = f"/v1/sessions/{ours.session_id}/events"
    return [
        ("/v1/approvals/decisions", {"decisions": [allow(ours.ids["approval_id"]), allow(theirs.ids["approval_id"])]}),
        ("/v1/sessions", {"agent": ours.ids["agent_id"], "environment_id": theirs.ids["environment_id"]}),
        ("/v1/sessions", {"agent": theirs.ids["agent_id"], "environment_id": ours.ids["environment_id"]}),
        ("/v1/sessions", {"agent": {"type": "agent", "id": theirs.ids["agent_id"]}, "environment_id": ours.built_in()}),
        (events, {"events": [confirmation(theirs.ids["tool_use_id"])]}),
        (events, {"events": [{"type": "user.custom_tool_result", "custom_tool_use_id": theirs.ids["tool_use_id"]}]}),
        (f"/v1/environments/{ours.ids['environment_id']}/work/{theirs.ids['work_id']}/ack", {}),
        (f"/v1/environments/{theirs.ids['environment_id']}/work/{ours.ids['work_id']}/ack", {}),
        (f"/v1/organizations/rbac_groups/{ours.ids['rbac_group_id']}/members", {"user_id": theirs.ids["user_id"]}),
        ("/v1/organizations/invites", {"email": "new@example.com", "rbac_group_ids": [theirs.ids["rbac_group_id"]]}),
        (f"/v1/sessions/{ours.session_id}/threads/{theirs.ids['thread_id']}/archive", {}),
    ]


def test_another_workspace_s_ids_in_a_body_or_beside_ours_are_unknown(
    theirs: World, ours: World, admin: "psycopg.Connection[Any]"
) -> None:
    before = theirs.rows(admin)
    for at, body in mixed(ours, theirs):
        answer = ours.ask("POST", at, body)
        assert answer.status_code in {400, 404}, f"{at} {body}: {answer.status_code} {answer.text}"
    assert theirs.rows(admin) == before


def test_an_idempotency_key_belongs_to_one_workspace(theirs: World, ours: World) -> None:
    """The same key and body in two workspaces are two requests."""
    body = {"name": "Kept", "model": MODEL}
    first, again = (theirs.ask("POST", "/v1/agents", body, **{"idempotency-key": "k"}) for _ in range(2))
    other = ours.ask("POST", "/v1/agents", body, **{"idempotency-key": "k"})
    assert first.get_json()["id"] == again.get_json()["id"] != other.get_json()["id"]


def test_another_workspace_s_cursor_shows_nothing_of_it(theirs: World, ours: World) -> None:
    theirs.stage.message(theirs.resting_id)
    theirs.stage.reply(theirs.resting_id, call(), call())
    for listed in ("agents", "environments", "sessions", "approvals", "grants"):
        page = theirs.ask("GET", f"/v1/{listed}?limit=1").get_json()["next_page"]
        assert page, f"there is more than one of {listed}"
        answer = ours.ask("GET", f"/v1/{listed}?limit=100&page={page}")
        known = {row["id"] for row in theirs.ask("GET", f"/v1/{listed}?limit=100").get_json()["data"]}
        assert answer.status_code in {200, 400}, f"{listed}: {answer.text}"
        assert not any(row in answer.text for row in known), listed
