"""Routes of Slack users that decide for people."""

from typing import Literal, Self

from flask import Blueprint
from pydantic import Field

from api.door.paging import Order, Selection, page
from api.door.requests import Nothing, Paged
from api.door.responses import Page, ResponseModel, SlackUserId, Time, UserId
from api.door.routes import reads, writes
from models.audit.principal import Principal
from models.database.rows import Db
from models.people import slack_user
from models.people.person import Person

slack_users = Blueprint("slack_users", __name__, url_prefix="/v1/slack_users")

_NEWEST: Order[slack_user.SlackUser] = Order("slack_users", (slack_user.SlackUser.id,))


class SlackUser(ResponseModel):
    """A Slack user that decides for a person."""

    id: SlackUserId
    type: Literal["slack_user"]
    team_id: str = Field(examples=["T0ACME"])
    """The Slack workspace to which the Slack user belongs."""
    slack_id: str = Field(examples=["U0ANNA"])
    """Slack's id of the user."""
    name: str = Field(examples=["anna"])
    """The name that the Slack user had at the first click. The Slack user chooses it."""
    user_id: UserId
    """The person."""
    email: str = Field(examples=["anna@example.com"])
    """The person's e-mail address."""
    linked_at: Time

    @classmethod
    def of(cls, row: slack_user.SlackUser, email: str) -> Self:
        """Return a linked Slack user, with the person's address."""
        return cls.from_row(row, user_id=row.person_id, email=email)


class SlackUserDeleted(ResponseModel):
    """The Slack user decides for nobody any more."""

    id: SlackUserId
    type: Literal["slack_user_deleted"]


@slack_users.get("")
@reads(Paged, "admin", response=Page[SlackUser])
def index(db: Db, _principal: Principal, query: Paged) -> Page[SlackUser]:
    """List the Slack users that decide for a person, newest first."""
    linked = Selection(slack_user.SlackUser).where("person_id IS NOT NULL")
    rows, after = page(db, linked, _NEWEST, query.limit, query.page)
    people = [row.person_id for row in rows]
    emails = {person.id: person.email for person in db.find(Person, "WHERE id = ANY(%(ids)s)", ids=people)}
    return Page[SlackUser](data=[SlackUser.of(row, emails[str(row.person_id)]) for row in rows], next_page=after)


@slack_users.delete("/<slack_user_id>")
@writes(Nothing, "admin", once=True, response=SlackUserDeleted)
def delete(db: Db, principal: Principal, _body: Nothing, slack_user_id: str) -> SlackUserDeleted:
    """Have a Slack user decide for nobody any more.

    The Slack user can be linked again, by a click in Slack.
    """
    slack_user.SlackUser.unlink(db, slack_user_id, by=principal)
    return SlackUserDeleted(id=slack_user_id, type="slack_user_deleted")
