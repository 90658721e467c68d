"""Every request that writes, by its route's name: what there must be before, and what is asked."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from doors.served import key
from flask import Flask
from people import group, member
from rows.stage import Stage, call, say

from api import pages
from models.database.transactions import transaction
from models.outbox.delivery import Delivery
from models.outbox.endpoint import Endpoint
from models.session.approval import Approval
from models.session.work import Work
from models.workspace.api_key import ApiKey
from models.workspace.environment import Environment

NAMED = {"name": "Another", "description": "Other than before", "metadata": {"k": "v"}}


@dataclass(frozen=True)
class Asked:
    """What is sent to a route: the ids in its path, and its body."""

    ids: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)


def of_agent(**body: Any) -> Callable[[Stage], Asked]:
    """About an agent."""

    def prepare(stage: Stage) -> Asked:
        return Asked({"agent_id": stage.read(stage.session()).agent_id}, body)

    return prepare


def of_environment(**body: Any) -> Callable[[Stage], Asked]:
    """About an environment that nobody uses and for which a worker has a key."""

    def prepare(stage: Stage) -> Asked:
        with transaction(stage.workspace_id) as db:
            environment_id = Environment.create(db, stage.principal, name="Theirs", self_hosted=True).id
            ApiKey.create(db, workspace_id=stage.workspace_id, name="Worker's", environment_id=environment_id)
        return Asked({"environment_id": environment_id}, body)

    return prepare


def new_session(stage: Stage) -> Asked:
    """A session of an agent that is there."""
    with transaction(stage.workspace_id) as db:
        environment_id = db.value("SELECT id FROM environment")
    agent = {"type": "agent_with_overrides", "id": stage.read(stage.session()).agent_id, "system": "Be brief."}
    return Asked({}, {"agent": agent, "environment_id": environment_id, "title": "A", "max_turns": 3})


def of_session(**body: Any) -> Callable[[Stage], Asked]:
    """About a session that waits for a person."""

    def prepare(stage: Stage) -> Asked:
        return Asked({"session_id": asked(stage).session_id}, body)

    return prepare


def of_thread(stage: Stage) -> Asked:
    """About that session's thread."""
    session = stage.read(asked(stage).session_id)
    return Asked({"session_id": session.id, "thread_id": session.thread_id})


def message(stage: Stage) -> Asked:
    """A message to a session whose turn goes on just now."""
    session_id = stage.session()
    stage.message(session_id)
    stage.claim(session_id)
    return Asked({"session_id": session_id}, {"events": [{"type": "user.message", "content": [say("And this.")]}]})


def of_approval(**body: Any) -> Callable[[Stage], Asked]:
    """About an open question."""

    def prepare(stage: Stage) -> Asked:
        return Asked({"approval_id": asked(stage).id}, body)

    return prepare


def decisions(stage: Stage) -> Asked:
    """About two questions of two sessions."""
    one, other = asked(stage), asked(stage)
    said = [{"approval_id": one.id, "result": "allow"}, {"approval_id": other.id, "result": "deny", "deny_message": "No."}]
    return Asked({}, {"decisions": said})


def of_grant(stage: Stage) -> Asked:
    """About a grant that allows."""
    stage.decide(asked(stage), result="allow", scope="always")
    with transaction(stage.workspace_id) as db:
        return Asked({"grant_id": db.value("SELECT id FROM approval_grant")})


def of_key(**body: Any) -> Callable[[Stage], Asked]:
    """About an API key that nobody uses."""

    def prepare(stage: Stage) -> Asked:
        with transaction(stage.workspace_id) as db:
            return Asked({"api_key_id": ApiKey.create(db, workspace_id=stage.workspace_id, name="Spare")[0].id}, body)

    return prepare


def of_work(stage: Stage) -> Asked:
    """About work that waits for a worker."""
    session_id = stage.session(self_hosted=True, bash="always_allow")
    stage.message(session_id)
    stage.reply(session_id, call())
    with transaction(stage.workspace_id) as db:
        work = db.find(Work)[0]
    return Asked({"environment_id": work.environment_id, "work_id": work.id}, {"metadata": {"k": "v"}})


def of_acts(stage: Stage) -> Asked:
    """About what was said in a session's acts."""
    stage.decide(asked(stage), result="deny", deny_message="No.")
    return Asked({}, {"principal": stage.principal.id})


def explained(stage: Stage) -> Asked:
    """About a call that nobody makes."""
    return Asked({}, {"session_id": stage.session(), "tool": "bash", "input": {"command": "true"}})


def asked(stage: Stage) -> Approval:
    """The first of two questions about calls that a client makes: whatever becomes of it, no worker of ours goes on from there."""
    session_id = stage.session(custom=("lookup?", "other?"))
    stage.message(session_id)
    stage.reply(session_id, call("lookup", n=1), call("other", n=2))
    return stage.approvals(session_id)[0]


def of_webhook(stage: Stage) -> Asked:
    """About an endpoint."""
    with transaction(stage.workspace_id) as db:
        endpoint, _ = Endpoint.create(
            db, stage.principal, url="https://example.com", enabled_events=["agent.archived"], name="", description=""
        )
        return Asked({"webhook_id": endpoint.id})


def of_delivery(stage: Stage) -> Asked:
    """About a delivery that has failed."""
    webhook_id = of_webhook(stage).ids["webhook_id"]
    with transaction(stage.workspace_id) as db:
        delivery = Delivery.test(db, Endpoint.find(db, webhook_id), "agent.archived")
        db.move(delivery, "running", fence=1)
        db.move(delivery, "failed", ended_at=delivery.created_at)
    return Asked({"webhook_id": webhook_id, "delivery_id": delivery.id})


def of_group(stage: Stage) -> Asked:
    """About a group without members, and somebody who joins it."""
    return Asked({"rbac_group_id": group(stage)}, {"user_id": member(stage, "approver", email="new@example.com").person_id})


def only(**body: Any) -> Callable[[Stage], Asked]:
    """About the workspace itself."""
    return lambda _stage: Asked({}, body)


REQUESTS: dict[str, Callable[[Stage], Asked]] = {
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
    *("halt.end", "delegations.give", "delegations.end", "invites.delete"),
    *("groups.create", "groups.update", "groups.delete", "groups.take_out"),
    *("users.update", "users.renew", "users.remove", "users.sign_out"),
    "chat.complete",
}
"""Routes whose effect is one verb, through the door that the routes in REQUESTS share: their deaths would show nothing new."""


def writing(app: Flask) -> dict[str, str]:
    """The methods of the API's routes that may change something, by their names. Forms of pages carry no idempotency key."""
    rules = [rule for rule in app.url_map.iter_rules() if not pages.is_page(rule.endpoint)]
    methods = ((rule.endpoint, (rule.methods or set()) - {"GET", "HEAD", "OPTIONS"}) for rule in rules)
    return {endpoint: method for endpoint, names in methods for method in names}


def spelled(app: Flask, stage: Stage, name: str, asked: Asked, **headers: str) -> dict[str, Any]:
    """The request, as Flask's test client takes it, with a key of the workspace's that may do everything."""
    route = name.partition(" ")[0]
    method = writing(app)[route]
    path = app.url_map.bind("").build(route, asked.ids, method)
    return {"method": method, "path": path, "json": asked.body, "headers": {"x-api-key": key(stage)} | headers}
