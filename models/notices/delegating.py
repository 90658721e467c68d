"""Delegations that somebody else gives: their giver is notified, and accepts or refuses."""

from models.audit.principal import Principal
from models.database import clock
from models.database.rows import Db
from models.notices.channel import Channel
from models.notices.notification import Notification
from models.notices.recipients import give_default
from models.people.delegation import Delegation, Terms


def give(db: Db, principal: Principal, terms: Terms) -> Delegation:
    """Return a new delegation. If it waits for its giver, notify the giver by all of their channels.

    Raises the errors of `Delegation.give`.
    """
    row = Delegation.give(db, principal, terms)
    if row.accepted_at is None:
        give_default(db, clock.now(db))
        enabled = "WHERE person_id = %(person)s AND state = 'enabled' ORDER BY id"
        for channel in db.find(Channel, enabled, person=row.from_person_id):
            Notification.alone(db, channel, "delegation", row.id)
    return row
