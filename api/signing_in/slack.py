"""A person's Slack users: the page that links one, and their removal.

An unknown Slack user gets the link in Slack, by the reply to a click. Looking at the page changes nothing, because programs look
at links, too.
"""

from typing import Any

from flask import Response

from api.desk.shell import viewing
from api.door import pages
from api.door.pages import page
from api.signing_in.adding import ACCOUNT, check_can_add
from api.signing_in.blueprint import signing_in
from models.database.rows import Db
from models.database.transactions import transaction
from models.people.principal import PersonPrincipal
from models.people.slack_user import SlackUser
from models.workspace.row import Workspace

_LINK = f"{ACCOUNT}/slack/link/<secret>"


@signing_in.get(_LINK)
@page("approvals", ids=False)
def show_slack_link(person: PersonPrincipal, secret: str) -> Response:
    """Show which Slack user would decide for the person."""
    check_can_add(person)
    with transaction(person.workspace_id) as db:
        slack_user = SlackUser.of_link(db, secret)
        values = _about(db, person)
    return pages.html("slack.html", person, slack_user=slack_user, linked=False, **values)


@signing_in.post(_LINK)
@page("approvals", ids=False)
def use_slack_link(person: PersonPrincipal, secret: str) -> Response:
    """Use a one-time link up: the Slack user decides for the person from now on."""
    check_can_add(person)
    with transaction(person.workspace_id) as db:
        slack_user = SlackUser.link(db, secret, person)
        values = _about(db, person)
    return pages.html("slack.html", person, slack_user=slack_user, linked=True, **values)


@signing_in.post(f"{ACCOUNT}/slack/<slack_user_id>/remove")
@page("read or own")
def remove_slack_user(person: PersonPrincipal, slack_user_id: str) -> Response:
    """Remove one of the person's Slack users: the Slack user decides for the person no longer."""
    with transaction(person.workspace_id) as db:
        SlackUser.unlink(db, slack_user_id, by=person, person_id=person.person_id)
    return pages.see(ACCOUNT)


def _about(db: Db, person: PersonPrincipal) -> dict[str, Any]:
    """Return the page's values other than the Slack user."""
    return viewing.frame(db, person) | {"section": "account", "workspace": db.get_one(Workspace, person.workspace_id).name}
