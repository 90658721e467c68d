"""The steps of the deliver process, and short ways to make and read channels."""

from typing import Any

from people import Somebody
from rows.stage import Stage
from rows.tasks import work

from models.database.transactions import transaction
from models.notices.channel import Channel, NewChannel
from models.notices.notification import Notification
from models.outbox.approval_change import ApprovalChange
from workers import notifying

OPERATOR = {"kind": "operator", "address": "ops"}
"""A channel by the operator's URL `ops`, which the fixture `ops` serves."""


def channel(stage: Stage, who: Somebody | None = None, **settings: Any) -> Channel:
    """A channel of a person or, without one, of the workspace: by the operator's URL unless it says otherwise."""
    with transaction(stage.workspace_id) as db:
        person_id = who.person_id if who else None
        return Channel.create(db, stage.principal, NewChannel(person_id=person_id, **(OPERATOR | settings)))


def mail_channel(stage: Stage, who: Somebody, **settings: Any) -> Channel:
    """A person's channel by mail."""
    return channel(stage, who, kind="mail", address=who.email, **settings)


def channels(stage: Stage) -> list[Channel]:
    """The workspace's channels, oldest first."""
    with transaction(stage.workspace_id) as db:
        return db.find(Channel, "ORDER BY created_at, id")


def changes(stage: Stage) -> list[ApprovalChange]:
    """Changes that no worker has fanned out."""
    with transaction(stage.workspace_id) as db:
        return db.find(ApprovalChange, "ORDER BY seq")


def notifications(stage: Stage) -> list[Notification]:
    """The workspace's notifications, oldest first."""
    with transaction(stage.workspace_id) as db:
        return db.find(Notification, "ORDER BY created_at, id")


def fan_out(stage: Stage) -> None:
    """Do what a worker does with a hint of each change."""
    for change in changes(stage):
        work(notifying.fan_out, change.id, stage.workspace_id)


def notify(stage: Stage) -> None:
    """Fan out, then do what a worker does with a hint of each queued notification."""
    fan_out(stage)
    for row in notifications(stage):
        if row.status == "queued":
            work(notifying.notify, row.id, stage.workspace_id)
