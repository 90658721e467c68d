"""WHO MAY ASK: parse, authorise, one verb, one status code. `create_app` is what gunicorn serves."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Blueprint, Flask


def create_app() -> "Flask":
    """Return the API with every route. Imports happen here, so that importing a part of `api` stays fast."""
    from flask import Flask

    import workers.enqueue  # noqa: F401 - publishes hints after each commit
    from api import client, errors, inbox, limits, parsing, signing_in
    from api.routes import spend_limits, webhooks
    from models.database import roles
    from models.settings import settings

    roles.check_start("web")
    app = Flask(__name__, static_folder=None)
    app.request_class = parsing.Request
    app.config["MAX_CONTENT_LENGTH"] = settings().max_body_bytes
    app.url_map.merge_slashes = False  # no redirects: clients do not repeat a POST
    _number_requests(app)
    errors.install(app)
    limits.install(app)
    client.install(app)
    for blueprint in _blueprints():
        app.register_blueprint(blueprint)
    for place, prefix in spend_limits.PREFIXES.items():
        app.register_blueprint(spend_limits.spend_limits, name=place, url_prefix=prefix)
    for place, prefix in webhooks.PREFIXES.items():
        app.register_blueprint(webhooks.webhooks, name=place, url_prefix=prefix)
    inbox.install(app)
    signing_in.install(app)
    return app


def _number_requests(app: "Flask") -> None:
    """Give each request an id, which its response names."""
    from flask import Response, g

    from models.database import ids

    @app.before_request
    def number() -> None:
        g.request_id = ids.new("req")

    @app.after_request
    def name(response: Response) -> Response:
        response.headers["request-id"] = g.request_id
        return response


def _blueprints() -> "tuple[Blueprint, ...]":
    """Return the API's routes, in the order of the reference."""
    from api.chat.routes import chat
    from api.reference.routes import reference
    from api.routes.agents import agents
    from api.routes.api_keys import api_keys
    from api.routes.approvals import approvals
    from api.routes.audit import audit
    from api.routes.channels import channels
    from api.routes.delegations import delegations
    from api.routes.environments import environments
    from api.routes.events import events
    from api.routes.grants import grants
    from api.routes.halt import halt
    from api.routes.health import health
    from api.routes.metrics import metrics
    from api.routes.people import groups, invites, users
    from api.routes.policy import policy
    from api.routes.provider_keys import provider_keys
    from api.routes.sessions import sessions
    from api.routes.slack import slack
    from api.routes.threads import threads
    from api.routes.unsubscribe import unsubscribing
    from api.routes.usage import usage
    from api.routes.work import work

    conversations = (agents, environments, work, sessions, events, chat, threads, approvals)
    control = (audit, usage, grants, delegations, halt, api_keys, users, invites, groups, policy, provider_keys)
    return *conversations, *control, channels, slack, health, metrics, reference, unsubscribing
