"""Channels: a person's own, and those of the workspace."""

from typing import Any
from zoneinfo import available_timezones

from flask import request

from api.desk.shell.blueprint import action, page
from api.door.framed import FramedPage, query_value
from api.door.parsing import validated
from api.v1.channels.requests import ChannelCreate, ChannelUpdate
from api.v1.channels.routes import add, own
from models.database.rows import Db
from models.errors import Refusal
from models.notices.channel import SETTINGS, Channel
from models.notices.notification import Notification
from models.notices.services import SERVICES
from models.people.principal import PersonPrincipal
from models.people.slack_user import SlackUser
from models.settings import settings

_ZONES = sorted(available_timezones())
_MINE = ("Your channels", "/inbox/channels")
_OF_WORKSPACE = ("Workspace channels", "/inbox/workspace/channels")
_EMPTY = {"delay_seconds", "quiet_from", "quiet_until"}
"""Fields whose empty value in a form means null."""


@page("/inbox/channels", "channels", "own")
def my_channels(db: Db, person: PersonPrincipal, refusal: Refusal | None = None, **_path_ids: str) -> FramedPage:
    """Show the person's own channels, newest first."""
    rows = db.find(Channel, "WHERE person_id = %(person)s ORDER BY id DESC", person=person.person_id)
    default = db.first(Channel, "WHERE for_everyone AND state = 'enabled'") if not rows else None
    return _list(
        db,
        "settings/my_channels.html",
        rows,
        refusal,
        default=default,
        decides="approvals" in person.scopes,
        push_key=settings().push_public_key,
    )


@page("/inbox/workspace/channels", "workspace_channels", "admin")
def workspace_channels(db: Db, _: PersonPrincipal, refusal: Refusal | None = None, **_path_ids: str) -> FramedPage:
    """Show the workspace's channels, newest first."""
    rows = db.find(Channel, "WHERE person_id IS NULL ORDER BY id DESC")
    return _list(db, "settings/channels.html", rows, refusal)


@page("/inbox/channels/<channel_id>", "channels", "own")
def my_channel(db: Db, person: PersonPrincipal, refusal: Refusal | None = None, *, channel_id: str) -> FramedPage:
    """Show the settings of one of the person's own channels."""
    return _one(db, person, channel_id, refusal, up=_MINE)


@page("/inbox/workspace/channels/<channel_id>", "workspace_channels", "admin")
def workspace_channel(db: Db, person: PersonPrincipal, refusal: Refusal | None = None, *, channel_id: str) -> FramedPage:
    """Show the settings of one of the workspace's channels."""
    return _one(db, person, channel_id, refusal, up=_OF_WORKSPACE)


def _one(db: Db, person: PersonPrincipal, channel_id: str, refusal: Refusal | None, *, up: tuple[str, str]) -> FramedPage:
    row = own(db, person, channel_id)
    return FramedPage(
        "settings/channel.html",
        row=row,
        may_lead_elsewhere=row.kind != "push" and not row.for_everyone and not (row.kind == "mail" and row.person_id),
        values=_values(row),
        zones=_ZONES,
        own=row.person_id is not None,
        base=up[1],
        up=up,
        refusal=str(refusal or ""),
    )


def _values(row: Channel | None) -> dict[str, str]:
    """Return the settings as a form shows them: those that the request sends, else those of the channel."""
    columns = {name: getattr(row, name, None) for name in SETTINGS}
    texts = {name: "" if value is None else str(value) for name, value in columns.items()}
    return texts | {name: request.form[name] for name in SETTINGS if name in request.form}


def _list(db: Db, template: str, rows: list[Channel], refusal: Refusal | None, **values: Any) -> FramedPage:
    tests = Notification.last_tests(db, [row.id for row in rows])
    is_testing = any(test.ended_at is None for test in tests.values())
    return FramedPage(template, rows=rows, refusal=str(refusal or ""), tests=tests, is_testing=is_testing, **values)


@page("/inbox/channels/new", "channels", "own")
def new_of_mine(db: Db, person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show the kinds of channels that a person may have, or the form of one kind."""
    kinds = {"mail": "Mail to my own address"} if settings().mail_from else {}
    if SlackUser.of_person(db, person.person_id):
        kinds["slack"] = "Slack, as a direct message"
    kinds["apprise"] = "Telegram, Discord, or another service"
    return _form(kinds, _like(db, person), refusal, own=True)


@page("/inbox/workspace/channels/new", "workspace_channels", "admin")
def new_of_workspace(db: Db, person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show the kinds of channels that a workspace may have, or the form of one kind."""
    kinds = {"mail": "Mail to an address"} if settings().mail_from else {}
    if settings().mail_from and not db.first(Channel, "WHERE for_everyone"):
        kinds["everyone"] = "Mail to each person who may decide and has no channel"
    kinds |= {"slack": "A Slack conversation", "apprise": "Telegram, PagerDuty, or another service"}
    kinds["operator"] = "A URL of the operator"
    return _form(kinds, _like(db, person), refusal, own=False)


def _like(db: Db, person: PersonPrincipal) -> Channel | None:
    """Return the channel whose settings the form of a new one begins with, if the address names one. Raises NotFound."""
    channel_id = query_value("like")
    return own(db, person, channel_id) if channel_id else None


def _form(kinds: dict[str, str], like: Channel | None, refusal: Refusal | None, *, own: bool) -> FramedPage:
    """Return the page of a new channel: the choice of its kind, and the fields of a kind that is chosen.

    `like`: the channel that has the settings to begin with.
    """
    up = _MINE if own else _OF_WORKSPACE
    kind = "everyone" if request.form.get("for_everyone") else request.form.get("kind") or query_value("kind") or ""
    return FramedPage(
        "settings/new_channel.html",
        kinds=kinds,
        kind=kind if kind in kinds else next(iter(kinds)) if len(kinds) == 1 else "",
        services=[(service.name, service.example) for service in SERVICES.values()],
        values=_values(like),
        zones=_ZONES,
        own=own,
        base=up[1],
        up=up,
        refusal=str(refusal or ""),
        form=request.form,
    )


@action("/inbox/channels", "own", section="channels", again=new_of_mine)
def add_mine(db: Db, person: PersonPrincipal) -> str:
    """Add a channel of the person's own."""
    add(db, person, person.person_id, validated(ChannelCreate, _fields("kind", "address", "url"), strict=False))
    return "/inbox/channels"


@action("/inbox/workspace/channels", "admin", section="workspace_channels", again=new_of_workspace)
def add_workspace_s(db: Db, person: PersonPrincipal) -> str:
    """Add a channel of the workspace."""
    for_everyone = request.form.get("for_everyone") == "on"
    add(
        db, person, None, validated(ChannelCreate, _fields("kind", "address", "url") | {"for_everyone": for_everyone}, strict=False)
    )
    return "/inbox/workspace/channels"


@action("/inbox/channels/<channel_id>", "own", section="channels", again=my_channel)
def change_mine(db: Db, person: PersonPrincipal, channel_id: str) -> str:
    """Change, enable, disable, test or remove one of the person's own channels."""
    _change(db, person, channel_id)
    return "/inbox/channels"


@action("/inbox/workspace/channels/<channel_id>", "admin", section="workspace_channels", again=workspace_channel)
def change_workspace_s(db: Db, person: PersonPrincipal, channel_id: str) -> str:
    """Change, enable, disable, test or remove one of the workspace's channels."""
    _change(db, person, channel_id)
    return "/inbox/workspace/channels"


def _change(db: Db, person: PersonPrincipal, channel_id: str) -> None:
    row = own(db, person, channel_id, lock=True)
    if request.form.get("remove"):
        row.delete(db, person)
    elif request.form.get("test"):
        Notification.test(db, row)
    else:
        row.change(db, person, validated(ChannelUpdate, _fields("state"), strict=False).changes())


def _fields(*more: str) -> dict[str, Any]:
    """Return the settings that the form sends, and the fields `more`, without those that the form does not have."""
    names = (*SETTINGS, *more)
    fields = {name: request.form[name].strip() for name in names if name in request.form}
    return {name: None if name in _EMPTY and not value else value for name, value in fields.items()}
