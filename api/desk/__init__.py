"""The desk: pages on which people find, decide and see what came of it. The server renders them; every action is a plain form.

    shell      the frame of each page: templates, styles, scripts, forms, the halt, the stream that tells open pages to look again
    inbox      the list of approvals: those that wait for me, or for anybody, and decided ones; decisions about several
    card       one approval with the evidence to judge it, and its decisions; `verbs` has the decision of each button
    sessions   the sessions, and a session's conversation
    agents     the agents, one agent with its tools and versions, the form that makes or changes one, and servers of tools
    policies   the rules in force, a call to try, a change to simulate, grants, and suggested rules
    search     one search for pages, actions, approvals, sessions, agents and people
    settings   people, keys, channels, webhooks, provider keys, usage
    insights   how often agents ask, how people decide, and what it costs
    system     whether everything runs, as far as a workspace may see it
    audit      the acts, their verification and their export
    help       the words of the pages
    push       notifications of a browser, and what installs Assent on a phone
    link       the page of a message's link, for a person who is not signed in

A page is declared by `shell.blueprint`, reads rows, and gives them to a template of its own folder, where its styles and scripts
are as well. `rendering` turns values into what templates print. `waiting_list` has the approvals that a person sees, in order.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask


def install(app: "Flask") -> None:
    """Serve the pages."""
    from api.desk.agents import agent, agents, editing, servers
    from api.desk.audit import audit
    from api.desk.card import always, card, deciding, edit
    from api.desk.help import words
    from api.desk.inbox import list as list_
    from api.desk.inbox import preferences, several, together, views
    from api.desk.insights import insights
    from api.desk.link.link import links
    from api.desk.policies import grants, policies, suggestions
    from api.desk.push import push
    from api.desk.search import search
    from api.desk.sessions import session, sessions, starting
    from api.desk.settings import approvers, channels, groups, index, keys, people, provider_keys, usage, webhooks
    from api.desk.shell import files, halt, home, live, template_language
    from api.desk.shell.blueprint import desk
    from api.desk.system import system

    modules = (
        *(list_, several, together, preferences, views),
        *(card, deciding, edit, always),
        *(sessions, session, starting, agents, agent, editing, servers),
        *(policies, grants, suggestions, audit, insights, system, push),
        *(keys, provider_keys, usage, people, groups, approvers, index, channels, webhooks),
        *(words, search, halt, home, live, files),
    )
    for module in modules:
        assert module, "its import adds its routes"
    template_language.install(app)
    app.register_blueprint(desk)
    app.register_blueprint(links)
