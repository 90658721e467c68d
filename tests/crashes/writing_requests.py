"""A request for every route that writes, by the route's name, with the rows that it needs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from doors.served import key
from flask import Flask
from people import group, member
from rows.stage import Stage, call, say

from api.door import pages
from models.database.transactions import transaction
from models.outbox.delivery import Delivery
from models.outbox.endpoint import Endpoint, NewEndpoint
from models.session.approval.row import Approval
from models.session.work import Work
from models.workspace.api_key import ApiKey, NewKey
from models.workspace.environment import Environment, NewEnvironment

NAMED = {"name": "Another", "description": "Other than before", "metadata": {"k": "v"}}


@dataclass(frozen=True)
class RequestParts:
    """The ids in a request's path, and its body."""

    ids: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)


def of_agent(**body: Any) -> Callable[[Stage], RequestParts]:
    """A request about an agent."""

    def prepare(stage: Stage) -> RequestParts:
        return RequestParts({"agent_id": stage.read(stage.session()).agent_id}, body)

    return prepare


def of_environment(**body: Any) -> Callable[[Stage], RequestParts]:
    """A request about an environment without sessions, for which a worker has a key."""

    def prepare(stage: Stage) -> RequestParts:
        with transaction(stage.workspace_id) as db:
            environment_id = Environment.create(db, stage.principal, NewEnvironment("Theirs", self_hosted=True)).id
            ApiKey.create(db, NewKey("Worker's", environment_id=environment_id))
        return RequestParts({"environment_id": environment_id}, body)

    return prepare


def new_session(stage: Stage) -> RequestParts:
    """A request for a session of an existing agent."""
    with transaction(stage.workspace_id) as db:
        environment_id = db.value("SELECT id FROM environment")
    agent = {"type": "agent_with_overrides", "id": stage.read(stage.session()).agent_id, "system": "Be brief."}
    return RequestParts({}, {"agent": agent, "environment_id": environment_id, "title": "A", "max_turns": 3})


def of_session(**body: Any) -> Callable[[Stage], RequestParts]:
    """A request about a session that waits for a person."""

    def prepare(stage: Stage) -> RequestParts:
        return RequestParts({"session_id": open_question(stage).session_id}, body)

    return prepare


def of_thread(stage: Stage) -> RequestParts:
    """A request about the thread of such a session."""
    thread = stage.thread(open_question(stage).session_id)
    return RequestParts({"session_id": thread.session_id, "thread_id": thread.id})


def message(stage: Stage) -> RequestParts:
    """A message to a session whose turn is running."""
    session_id = stage.session()
    stage.message(session_id)
    stage.claim(session_id)
    return RequestParts({"session_id": session_id}, {"events": [{"type": "user.message", "content": [say("And this.")]}]})


def of_approval(**body: Any) -> Callable[[Stage], RequestParts]:
    """A request about an open question."""

    def prepare(stage: Stage) -> RequestParts:
        return RequestParts({"approval_id": open_question(stage).id}, body)

    return prepare


def decisions(stage: Stage) -> RequestParts:
    """A request about two questions of two sessions."""
    one, other = open_question(stage), open_question(stage)
    bodies = [{"approval_id": one.id, "result": "allow"}, {"approval_id": other.id, "result": "deny", "deny_message": "No."}]
    return RequestParts({}, {"decisions": bodies})


def of_grant(stage: Stage) -> RequestParts:
    """A request about a grant."""
    stage.decide(open_question(stage), result="allow", scope="always")
    with transaction(stage.workspace_id) as db:
        return RequestParts({"grant_id": db.value("SELECT id FROM approval_grant")})


def of_key(**body: Any) -> Callable[[Stage], RequestParts]:
    """A request about an API key that nobody uses."""

    def prepare(stage: Stage) -> RequestParts:
        with transaction(stage.workspace_id) as db:
            return RequestParts({"api_key_id": ApiKey.create(db, NewKey("Spare"))[0].id}, body)

    return prepare


def of_work(stage: Stage) -> RequestParts:
    """A request about work that waits for a worker."""
    session_id = stage.session(self_hosted=True, bash="always_allow")
    stage.message(session_id)
    stage.reply(session_id, call())
    with transaction(stage.workspace_id) as db:
        work = db.find(Work)[0]
    return RequestParts({"environment_id": work.environment_id, "work_id": work.id}, {"metadata": {"k": "v"}})


def of_acts(stage: Stage) -> RequestParts:
    """A request about the texts in a session's audit acts."""
    stage.decide(open_question(stage), result="deny", deny_message="No.")
    return RequestParts({}, {"principal": stage.principal.id})


def explained(stage: Stage) -> RequestParts:
    """A request to explain a call that nobody makes."""
    return RequestParts({}, {"session_id": stage.session(), "tool": "bash", "input": {"command": "true"}})


def open_question(stage: Stage) -> Approval:
    """The first of two questions about calls of client tools. Whatever the decision, no worker goes on with the session."""
    session_id = stage.session(custom=("lookup?", "other?"))
    stage.message(session_id)
    stage.reply(session_id, call("lookup", n=1), call("other", n=2))
    return stage.approvals(session_id)[0]


def of_webhook(stage: Stage) -> RequestParts:
    """A request about an endpoint."""
    with transaction(stage.workspace_id) as db:
        endpoint, _ = Endpoint.create(
            db, stage.principal, NewEndpoint(url="https://example.com", enabled_events=["agent.archived"])
        )
        return RequestParts({"webhook_id": endpoint.id})


def of_delivery(stage: Stage) -> RequestParts:
    """A request about a failed delivery."""
    webhook_id = of_webhook(stage).ids["webhook_id"]
    with transaction(stage.workspace_id) as db:
        delivery = Delivery.test(db, Endpoint.find(db, webhook_id), "agent.archived")
        db.move(delivery, "running", fence=1)
        db.move(delivery, "failed", ended_at=delivery.created_at)
    return RequestParts({"webhook_id": webhook_id, "delivery_id": delivery.id})


def of_group(stage: Stage) -> RequestParts:
    """A request that adds a person to an empty group."""
    return RequestParts({"rbac_group_id": group(stage)}, {"user_id": member(stage, "approver", email="new@example.com").person_id})


def only(**body: Any) -> Callable[[Stage], RequestParts]:
    """A request about the workspace itself."""
    return lambda _stage: RequestParts({}, body)


REQUESTS: dict[str, Callable[[Stage], RequestParts]] = {
    "agents.create": only(name="A", model="stand-in", tools=[{"type": "agent_toolset_20260401"}]),
    "agents.update": of_agent(**NAMED),
    "agents.archive": of_agent(),
    "environments.create": only(**NAMED, config={"type": "self_hosted"}),
    "environments.update": of_environment(**NAMED),
    "environments.archive": of_environment(),
    "environments.delete": of_environment(),
    "sessions.create": new_session,
    "sessions.update": of_session(title="B", metadata={"k": "v"}),
    "sessions.archive": of_session(),
    "sessions.delete": of_session(),
    "threads.archive": of_thread,
    "events.send": message,
    "approvals.decide": of_approval(result="allow"),
    "approvals.decide no": of_approval(result="deny", deny_message="No."),
    "approvals.decide for good": of_approval(result="allow", scope="always", max_uses=3),
    "approvals.decide_several": decisions,
    "approvals.extend": of_approval(seconds=7 * 24 * 3600),
    "approvals.preview": of_approval(scope="session"),
    "grants.revoke": of_grant,
    "api_keys.create": only(name="Another", scopes=["read"]),
    "api_keys.update": of_key(name="Another", status="inactive"),
    "api_keys.rotate": of_key(overlap_seconds=60),
    "policy.update": only(permission_policy={"type": "always_deny"}),
    "policy.explain": explained,
    "policy.simulate": only(permission_policy={"type": "always_deny"}, days=1),
    "work.update": of_work,
    "audit.erase": of_acts,
    "channels.create": only(kind="slack", address="C012AB3CD"),
    "webhooks.create": only(url="https://example.com/hook"),
    "webhooks.regenerate": of_webhook,
    "webhooks.redeliver": of_delivery,
    "halt.start": only(),
    "invites.create": only(email="anna@example.com", workspace_role="approver"),
    "groups.add": of_group,
}

SAME_DOOR = {
    *("channels.update", "channels.delete", "channels.test"),
    *("provider_keys.create", "provider_keys.delete"),
    *("spend_limits.create", "spend_limits.delete", "organization_spend_limits.create", "organization_spend_limits.delete"),
    *("webhooks.update", "webhooks.delete", "webhooks.test", "webhooks.redeliver_range"),
    *("halt.end", "delegations.give", "delegations.accept", "delegations.end", "invites.delete"),
    *("groups.create", "groups.update", "groups.delete", "groups.take_out"),
    *("users.update", "users.renew", "users.remove", "users.sign_out", "users.confirm_person"),
    *("slack_users.delete", "legal_holds.create", "legal_holds.release", "personal_data.erase_person", "sessions.erase"),
    *(
        f"organization_webhooks.{verb}"
        for verb in ("create", "update", "delete", "test", "regenerate", "redeliver", "redeliver_range")
    ),
    *("chat.complete", "chat.send"),
}
"""Routes with one verb each. They store their responses as the routes in REQUESTS do, so their crashes would show nothing new."""


def writing(app: Flask) -> dict[str, str]:
    """The method of each route of the API that may change something. Forms of pages carry no idempotency key."""
    rules = [rule for rule in app.url_map.iter_rules() if not pages.is_page(rule.endpoint)]
    methods = ((rule.endpoint, (rule.methods or set()) - {"GET", "HEAD", "OPTIONS"}) for rule in rules)
    return {endpoint: method for endpoint, names in methods for method in names}


def request_for(app: Flask, stage: Stage, name: str, parts: RequestParts, **headers: str) -> dict[str, Any]:
    """The request as arguments of Flask's test client, with a key that may do everything in the workspace."""
    route = name.partition(" ")[0]
    method = writing(app)[route]
    path = app.url_map.bind("").build(route, parts.ids, method)
    return {"method": method, "path": path, "json": parts.body, "headers": {"x-api-key": key(stage)} | headers}
