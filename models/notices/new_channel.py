"""New channels: who may have which kind, and where each of them leads."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from models.audit.principal import Principal
from models.database.rows import Db
from models.errors import Conflict, Invalid
from models.notices.channel import Channel, NewChannel
from models.notices.services import service_of
from models.people.person import Person, normalized
from models.people.principal import PersonPrincipal
from models.people.slack_user import SlackUser
from models.settings import settings

_CONVERSATION = re.compile(r"[CG][A-Z0-9]{5,30}")
_OPERATOR_NAME = re.compile(r"[a-z0-9_-]{1,40}")


@dataclass(frozen=True)
class Destination:
    """Where somebody wants a channel to lead."""

    kind: str
    address: str = ""
    url: str = ""
    """The secret address of a service, for the kind apprise."""


def add_own(db: Db, person_id: str, by: Principal, to: Destination, options: Mapping[str, Any]) -> Channel:
    """Give a person a channel: mail to their own address, their own Slack user, or a service. `options` are values of `SETTINGS`.

    Raises Invalid, Conflict; Forbidden for a service in a sign-in with a limit.
    """
    kind, address = to.kind, to.address
    if kind == "mail":
        address = _no_address(address, "mail goes to the person's own address") or db.get_one(Person, person_id).email
        _need_mail()
    elif kind == "slack":
        address = slack_address(db, person_id, address)
    elif kind == "push":
        raise Invalid("kind", "a browser is added on its own page, /inbox/channels, since its keys never leave it.")
    elif kind == "operator":
        raise Invalid("kind", "the operator's URLs are for channels of the workspace; use mail, slack or apprise.")
    elif isinstance(by, PersonPrincipal):
        by.check_unlimited()
    address, secret = _parts(replace(to, address=address))
    return Channel.create(db, by, NewChannel(person_id=person_id, kind=kind, address=address, secret=secret, **options))


def add_of_workspace(db: Db, by: Principal, to: Destination, options: Mapping[str, Any], *, for_everyone: bool = False) -> Channel:
    """Give the workspace a channel, or the default by mail for everyone without a channel. Raises Invalid, Conflict."""
    kind, address = to.kind, to.address
    if for_everyone and kind != "mail":
        raise Invalid("for_everyone", "the default is mail to each person's own address: use the kind mail.")
    if kind == "mail":
        _need_mail()
        address = _no_address(address, "the default goes to each person's own address") if for_everyone else _mail(address)
    elif kind == "slack" and not _CONVERSATION.fullmatch(address):
        raise Invalid(
            "address", "must be the id of a Slack conversation, such as C012AB3CD: it is shown in the conversation's details."
        )
    elif kind == "push":
        raise Invalid("kind", "a browser belongs to a person, who adds it at /inbox/channels.")
    elif kind == "operator" and not _OPERATOR_NAME.fullmatch(address):
        raise Invalid("address", "must be a name in the operator's ASSENT_NOTIFICATION_URLS, such as ops.")
    address, secret = _parts(replace(to, address=address))
    return Channel.create(db, by, NewChannel(for_everyone=for_everyone, kind=kind, address=address, secret=secret, **options))


def slack_address(db: Db, person_id: str, address: str = "") -> str:
    """Return the Slack user of a person's channel: the named one of the person's linked users, or the first. Raises Invalid."""
    linked = [row.slack_id for row in SlackUser.of_person(db, person_id)]
    if not linked:
        raise Invalid("kind", "no Slack user is linked to this person: click a button of Assent's in Slack, and follow the reply.")
    if address and address not in linked:
        raise Invalid("address", f"is not a Slack user of this person; use {' or '.join(linked)}, or leave it out.")
    return address or linked[0]


def _parts(to: Destination) -> tuple[str, str | None]:
    """Return the public and the secret part of where a channel leads. Raises Invalid."""
    if to.kind != "apprise":
        if to.url:
            raise Invalid("url", "is for the kind apprise; leave it out.")
        return to.address, None
    _no_address(to.address, "url says where a channel of the kind apprise leads")
    try:
        return service_of(to.url).name, to.url
    except ValueError as error:
        raise Invalid("url", str(error)) from None


def _no_address(address: str, reason: str) -> str:
    if address:
        raise Invalid("address", f"{reason}: leave it out.")
    return ""


def _mail(address: str) -> str:
    try:
        return normalized(address)
    except Invalid:
        raise Invalid("address", "must be an e-mail address such as ops@example.com.") from None


def _need_mail() -> None:
    if not settings().mail_from:
        raise Conflict("This installation sends no mail: the operator sets ASSENT_MAIL_FROM and ASSENT_SMTP_URL first.")
