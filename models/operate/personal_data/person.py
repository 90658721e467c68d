"""Erasing a person: what identifies the person goes, and what the person decided stays under an opaque id.

One transaction ends every way in, deletes the rows that identify the person, and renames the person's own row. A sweep then erases
the texts of the audit that are about the person, and deletes rows that a transaction inserted meanwhile.
"""

from datetime import datetime
from typing import Any

from models.audit import acts, erasing, legal_hold
from models.audit.principal import Principal
from models.audit.text import Text
from models.database import clock
from models.database.rows import Db
from models.errors import Invalid, NotFound
from models.outbox import removal
from models.people.group import Membership
from models.people.member import Member
from models.people.person import Person, lock_address


def erase(db: Db, person_id: str, reason: str, *, by: Principal) -> datetime:
    """Erase a person of the transaction's workspace, and return the time of the erasure. Idempotent.

    The person is deactivated first, with the same effect on approvals that wait. Raises NotFound; Invalid for the principal itself;
    Conflict for the last admin, and while the workspace is on a legal hold.
    """
    person = db.get(Person, person_id)
    if person is None:
        raise NotFound("user", person_id)
    if by.id == person_id:
        raise Invalid("user_id", "nobody can erase themselves: ask another admin.")
    # In the order of who makes or accepts an invitation: the address, the invitation, the member.
    lock_address(db, person.email)
    invitation_ids = [one for (one,) in db.rows(_INVITATIONS, email=person.email)]
    Member.refuse_last_admin(db, person_id)
    # A change of the address waits for everybody who inserts a row of the person. So wait before the workspace is locked.
    [person] = db.find(Person, "WHERE id = %(id)s FOR UPDATE", id=person_id)
    if person.erased_at is not None:
        return person.erased_at
    facts = {"texts_erased": _forget(db, person, invitation_ids, by), "reason": Text(reason)}
    acts.record(db, by, "person.erased", person_id, facts)
    legal_hold.refuse(db)
    now = clock.now(db)
    person.forget(db, now)
    removal.begin(db, "erased_person", person_id, by)
    return now


def _forget(db: Db, person: Person, invitation_ids: list[str], by: Principal) -> int:
    """Deactivate the person, and delete the rows that identify the person. Returns how many texts of the audit went with them.

    The address is known here and not to the sweep, so what only the address finds goes here.
    """
    if db.get(Member, db.workspace_id, person.id) is not None:
        Member.deactivate(db, person.id, by=by)
    for membership in db.find(Membership, "WHERE person_id = %(person)s ORDER BY group_id", person=person.id):
        membership.delete(db, by=by)
    db.save()
    delete_rows(db, person.id)
    db.write("DELETE FROM stored_response WHERE about = ANY(%(ids)s)", ids=invitation_ids)
    db.write("DELETE FROM invitation WHERE email = %(email)s", email=person.email)
    db.write(_MAIL_TO, email=person.email)
    db.write("DELETE FROM channel WHERE kind = 'mail' AND address = %(email)s", email=person.email)
    db.write("DELETE FROM slack_reply WHERE strpos(text, %(name)s) > 0", name=person.name)
    db.write("DELETE FROM ceremony WHERE strpos(data::text, %(email)s) > 0", email=person.email)
    texts, has_more = 0, True
    while has_more:
        erasure = erasing.erase_where(db, by, _NAMES_ADDRESS, workspace=db.workspace_id, email=person.email)
        texts, has_more = texts + erasure.texts, erasure.has_more
    return texts


def erase_batch(db: Db, person_id: str, by: Principal) -> bool:
    """Delete what still identifies an erased person: rows, and the next texts of the audit. Returns True if there may be more."""
    delete_rows(db, person_id)
    values: dict[str, Any] = {"workspace": db.workspace_id, "person": person_id}
    return any(erasing.erase_where(db, by, condition, **values).has_more for condition in (_ABOUT, _EARLIER))


def is_on_hold(db: Db, person_id: str) -> bool:
    """True if texts about an erased person stay, since their sessions are on a legal hold. They go once it is released."""
    return bool(db.value("SELECT EXISTS (SELECT FROM audit_text WHERE about = %(person)s)", person=person_id))


def delete_rows(db: Db, person_id: str) -> None:
    """Delete the rows that identify a person. Few: each has a limit per person, or is kept for some days."""
    for statement in _OF_PERSON:
        db.write(statement, person=person_id)


_INVITATIONS = "SELECT id FROM invitation WHERE email = %(email)s ORDER BY id FOR UPDATE"
_OF_CHANNELS = "DELETE FROM notification WHERE channel_id IN (SELECT id FROM channel WHERE {})"
_MAIL_TO = _OF_CHANNELS.format("kind = 'mail' AND address = %(email)s")
_OF_PERSON = (
    *(f"DELETE FROM {table} WHERE person_id = %(person)s" for table in ("slack_user", "passkey", "sign_in", "identity", "flood")),  # noqa: S608
    _OF_CHANNELS.format("person_id = %(person)s"),
    "DELETE FROM channel WHERE person_id = %(person)s",
    "DELETE FROM membership WHERE person_id = %(person)s",
    "DELETE FROM slack_reply WHERE NOT EXISTS (SELECT FROM slack_user WHERE id = slack_user_id)",
    "DELETE FROM stored_response WHERE about = %(person)s",
    "UPDATE person SET saved_views = NULL, folded_groups = NULL WHERE id = %(person)s",
    "UPDATE member SET password_hash = NULL, password_makers = NULL WHERE person_id = %(person)s AND password_hash IS NOT NULL",
)
_NAMES_ADDRESS = "chain = %(workspace)s AND strpos(text, %(email)s) > 0"
_ABOUT = "about = %(person)s"
# Texts of acts from before version 0.3 do not say whom they are about. All of them are in the workspace's own chain.
_EARLIER = """
    chain = %(workspace)s AND about IS NULL AND EXISTS (
        SELECT FROM audit WHERE audit.chain = audit_text.chain AND audit.seq = audit_text.seq AND (
            subject_id = %(person)s AND action IN ('person.passkey_added', 'person.passkey_removed', 'person.account_connected',
                'person.slack_linked')
            OR starts_with(action, 'channel.') AND subject_id IN (
                SELECT subject_id FROM audit WHERE chain = %(workspace)s AND action = 'channel.created'
                AND details->>'person' = %(person)s
            )
        )
    )
"""
