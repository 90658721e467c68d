"""WHO MAY ASK: parse, authorise, one verb, one status code. `create_app` is what gunicorn serves."""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Blueprint, Flask


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""The methods with a value of their own in the metrics."""


def create_app() -> "Flask":
    """Return the API with every route. Imports happen here, so that importing a part of `api` stays fast."""
    from flask import Flask

    import workers.enqueue  # noqa: F401 - publishes hints after each commit
    from api import desk, signing_in
    from api.door import client, errors, limits, parsing
    from api.v1.spending.spend_limits import routes as spend_limits
    from api.v1.webhooks import routes as webhooks
    from models.database import roles
    from models.settings import settings

    roles.check_start("web")
    app = Flask(__name__, static_folder=None)
    app.request_class = parsing.Request
    app.config["MAX_CONTENT_LENGTH"] = settings().max_body_bytes
    app.url_map.merge_slashes = False  # no redirects: clients do not repeat a POST
    _number_requests(app)
    _measure_requests(app)
    errors.install(app)
    limits.install(app)
    client.install(app)
    for blueprint in _blueprints():
        app.register_blueprint(blueprint)
    for place, prefix in spend_limits.PREFIXES.items():
        app.register_blueprint(spend_limits.spend_limits, name=place, url_prefix=prefix)
    for place, prefix in webhooks.PREFIXES.items():
        app.register_blueprint(webhooks.webhooks, name=place, url_prefix=prefix)
    desk.install(app)
    signing_in.install(app)
    return app


def _number_requests(app: "Flask") -> None:
    """Give each request an id, which its response names, and keep its trace for what it causes."""
    from flask import Response, g, request

    from models.database import ids, trace

    @app.before_request
    def number() -> None:
        g.request_id = ids.new("req")
        traceparent = request.headers.get("traceparent")
        trace.cause.set(trace.Place.of(traceparent) if traceparent else None)

    @app.after_request
    def name(response: Response) -> Response:
        response.headers["request-id"] = g.request_id
        return response


def _measure_requests(app: "Flask") -> None:
    """Measure how long each response takes until it begins, if durations are measured."""
    from flask import Response, g, request

    from models.operate.metrics import durations

    @app.before_request
    def begin() -> None:
        if durations.is_on():
            g.began = time.monotonic()

    @app.after_request
    def end(response: Response) -> Response:
        if (began := g.pop("began", None)) is not None:
            route = request.url_rule.rule if request.url_rule else "none"
            method = request.method if request.method in _METHODS else "_OTHER"
            durations.observe(durations.REQUESTS, time.monotonic() - began, method, route, str(response.status_code))
        return response


def _blueprints() -> "tuple[Blueprint, ...]":
    """Return the API's routes, in the order of the reference."""
    from api.chat.routes import chat
    from api.reference.routes import reference
    from api.v1.agents.routes import agents
    from api.v1.api_keys import api_keys
    from api.v1.approvals.routes import approvals
    from api.v1.audit.routes import audit
    from api.v1.channels.routes import channels
    from api.v1.channels.slack.routes import slack
    from api.v1.channels.slack.users import slack_users
    from api.v1.channels.unsubscribe import unsubscribing
    from api.v1.environments.routes import environments
    from api.v1.environments.work.routes import work
    from api.v1.events.routes import events
    from api.v1.grants import grants
    from api.v1.halt import halt
    from api.v1.health.metrics import metrics
    from api.v1.health.routes import health
    from api.v1.insights.routes import insights
    from api.v1.legal_holds import legal_holds
    from api.v1.people.delegations import delegations
    from api.v1.people.groups import groups
    from api.v1.people.invites import invites
    from api.v1.people.personal_data import personal_data
    from api.v1.people.users import users
    from api.v1.policy.routes import policy
    from api.v1.provider_keys import provider_keys
    from api.v1.sessions.routes import sessions
    from api.v1.sessions.threads import threads
    from api.v1.spending.usage import usage

    conversations = (agents, environments, work, sessions, events, chat, threads, approvals)
    control = (audit, usage, insights, grants, delegations, halt, legal_holds, api_keys, policy, provider_keys)
    people = (users, personal_data, invites, groups)
    return *conversations, *control, *people, channels, slack_users, slack, health, metrics, reference, unsubscribing
