"""WHO MAY ASK: parse, authorise, one verb, one status code. `create_app` is what gunicorn serves."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask


def create_app() -> "Flask":
    """Return the API with every route. Imports happen here, so that importing a part of `api` stays fast."""
    from flask import Flask, Response, g

    import workers.enqueue  # noqa: F401 - publishes hints after each commit
    from api import (
        agents,
        api_keys,
        approvals,
        audit,
        channels,
        client,
        delegations,
        environments,
        errors,
        events,
        grants,
        halt,
        health,
        inbox,
        limits,
        metrics,
        people,
        policy,
        provider_keys,
        reference,
        sessions,
        signing_in,
        slack,
        spend_limits,
        threads,
        unsubscribe,
        usage,
        webhooks,
        work,
    )
    from api.chat.routes import chat
    from models.database import ids, roles
    from models.settings import settings

    roles.check_start("web")
    app = Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = settings().max_body_bytes
    app.url_map.merge_slashes = False  # no redirects: clients do not repeat a POST

    @app.before_request
    def number() -> None:
        g.request_id = ids.new("req")

    @app.after_request
    def name(response: Response) -> Response:
        response.headers["request-id"] = g.request_id
        return response

    errors.install(app)
    limits.install(app)
    client.install(app)
    app.register_blueprint(agents.agents)
    app.register_blueprint(environments.environments)
    app.register_blueprint(work.work)
    app.register_blueprint(sessions.sessions)
    app.register_blueprint(events.events)
    app.register_blueprint(chat)
    app.register_blueprint(threads.threads)
    app.register_blueprint(approvals.approvals)
    app.register_blueprint(audit.audit)
    app.register_blueprint(usage.usage)
    app.register_blueprint(grants.grants)
    app.register_blueprint(delegations.delegations)
    app.register_blueprint(halt.halt)
    app.register_blueprint(api_keys.api_keys)
    app.register_blueprint(people.users)
    app.register_blueprint(people.invites)
    app.register_blueprint(people.groups)
    app.register_blueprint(policy.policy)
    app.register_blueprint(provider_keys.provider_keys)
    for place, prefix in spend_limits.PREFIXES.items():
        app.register_blueprint(spend_limits.spend_limits, name=place, url_prefix=prefix)
    app.register_blueprint(webhooks.webhooks)
    app.register_blueprint(channels.channels)
    app.register_blueprint(slack.slack)
    app.register_blueprint(health.health)
    app.register_blueprint(metrics.metrics)
    app.register_blueprint(reference.reference)
    inbox.install(app)
    signing_in.install(app)
    unsubscribe.install(app)
    return app
