"""The inbox: pages on which people decide. The server renders them, and every action is a plain form.

    list      the waiting list: approvals that wait for me, or for anybody, and decided ones
    card      one approval with the evidence to judge it
    deciding  the decisions; `verbs` has the decision of each button
    edit      the page on which a call's input is edited
    always    the page on which a grant is given for calls like one call
    link      the page of a message's link, for a person who is not signed in
    session   a session's conversation
    grants  people  keys  provider_keys  usage  webhooks  audit  halt

A page is declared by `blueprint`, reads rows, and gives them to a template. `rendering/` turns values into what templates print.
`live` is the stream that tells open pages to look again.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask


def install(app: "Flask") -> None:
    """Serve the pages."""
    from api.inbox import (
        always,
        audit,
        card,
        channels,
        deciding,
        edit,
        files,
        grants,
        halt,
        keys,
        live,
        people,
        provider_keys,
        session,
        template_language,
        usage,
        webhooks,
    )
    from api.inbox import list as list_
    from api.inbox.blueprint import inbox
    from api.inbox.link import links

    lists = (list_, session, grants, keys, provider_keys, usage, people, channels, webhooks, audit)
    for module in (*lists, card, deciding, edit, always, halt, live, files):
        assert module, "its import adds its routes"
    template_language.install(app)
    app.register_blueprint(inbox)
    app.register_blueprint(links)
