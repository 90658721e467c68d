"""Routes of channels, the destinations of notifications about approvals."""

from flask import Blueprint

from api.door.errors import Denied
from api.door.paging import Order, Selection, listed
from api.door.requests import NoQuery, Nothing
from api.door.responses import Page
from api.door.routes import reads, writes
from api.v1.channels import responses
from api.v1.channels.requests import ChannelCreate, ChannelList, ChannelUpdate
from models.audit.principal import Principal
from models.database.rows import Db
from models.errors import Invalid, NotFound
from models.notices.channel import Channel
from models.notices.new_channel import Destination, add_of_workspace, add_own
from models.notices.notification import Notification
from models.people.principal import PersonPrincipal

channels = Blueprint("channels", __name__, url_prefix="/v1/channels")

SCOPE = "admin or own"
NEWEST: Order[Channel] = Order("channels", (Channel.id,))


@channels.get("")
@reads(ChannelList, SCOPE, response=Page[responses.Channel])
def index(db: Db, principal: Principal, query: ChannelList) -> Page[responses.Channel]:
    """List the channels of the person who is signed in, or of the workspace, newest first."""
    person_id = _owner(principal, query.owner)
    own = Selection(Channel).where("person_id IS NOT DISTINCT FROM %(person)s", person=person_id)
    return listed(db, own, NEWEST, query, responses.Channel.of)


@channels.post("")
@writes(ChannelCreate, SCOPE, response=responses.Channel)
def create(db: Db, principal: Principal, body: ChannelCreate) -> responses.Channel:
    """Create a channel of the person who is signed in, or of the workspace."""
    return responses.Channel.of(add(db, principal, _owner(principal, body.owner), body))


@channels.get("/<channel_id>")
@reads(NoQuery, SCOPE, response=responses.Channel)
def show(db: Db, principal: Principal, _query: NoQuery, channel_id: str) -> responses.Channel:
    """Get a channel."""
    return responses.Channel.of(own(db, principal, channel_id))


@channels.post("/<channel_id>")
@writes(ChannelUpdate, SCOPE, once=True, response=responses.Channel)
def update(db: Db, principal: Principal, body: ChannelUpdate, channel_id: str) -> responses.Channel:
    """Update a channel, or disable and enable it."""
    row = own(db, principal, channel_id, lock=True)
    row.change(db, principal, body.changes())
    return responses.Channel.of(row)


@channels.post("/<channel_id>/test")
@writes(Nothing, SCOPE, response=responses.ChannelTest)
def test(db: Db, principal: Principal, _body: Nothing, channel_id: str) -> responses.ChannelTest:
    """Send a test message to a channel, also in quiet hours."""
    return responses.ChannelTest.from_row(Notification.test(db, own(db, principal, channel_id, lock=True)))


@channels.get("/<channel_id>/test")
@reads(NoQuery, SCOPE, response=responses.ChannelTest)
def last_test(db: Db, principal: Principal, _query: NoQuery, channel_id: str) -> responses.ChannelTest:
    """Get the result of a channel's last test."""
    row = Notification.last_tests(db, [own(db, principal, channel_id).id]).get(channel_id)
    if row is None:
        raise NotFound("test of the channel", channel_id)
    return responses.ChannelTest.from_row(row)


@channels.delete("/<channel_id>")
@writes(Nothing, SCOPE, once=True, response=responses.ChannelDeleted)
def delete(db: Db, principal: Principal, _body: Nothing, channel_id: str) -> responses.ChannelDeleted:
    """Delete a channel with its notifications.

    With the workspace's default, the channels that follow the default are deleted as well.
    """
    own(db, principal, channel_id, lock=True).delete(db, principal)
    return responses.ChannelDeleted(id=channel_id, type="channel_deleted")


def add(db: Db, principal: Principal, person_id: str | None, body: ChannelCreate) -> Channel:
    """Add a channel of a person or, if `person_id` is None, of the workspace. Raises Invalid."""
    to = Destination(body.kind, body.address, body.url)
    if person_id is None:
        return add_of_workspace(db, principal, to, body.options, for_everyone=body.for_everyone)
    if body.for_everyone:
        raise Invalid("for_everyone", "is for a channel of the workspace; leave it out.")
    return add_own(db, person_id, principal, to, body.options)


def own(db: Db, principal: Principal, channel_id: str, *, lock: bool = False) -> Channel:
    """Return a channel that the principal may manage: a person's own or, for admins, the workspace's. Raises NotFound."""
    row = Channel.find(db, channel_id, lock=lock)
    if row.person_id == principal.id or (row.person_id is None and "admin" in principal.scopes):
        return row
    raise NotFound("channel", channel_id)


def _owner(principal: Principal, named: str | None) -> str | None:
    """Return the id of the person whose channels the request names, None for the workspace. Raises Invalid, Denied."""
    is_person = isinstance(principal, PersonPrincipal)
    if named == "me" and not is_person:
        raise Invalid("owner", "an API key is not a person: leave it out, or use workspace.")
    if named == "workspace" and "admin" not in principal.scopes:
        raise Denied(403, "owner: the workspace's channels need the scope 'admin'; leave it out for your own.")
    return principal.id if is_person and named != "workspace" else None
