"""Confirms that a person's ways to sign in are the person's own, although they came from a link that somebody else made.

A link signs in whoever opens it. So a sign-in by a link carries the link's makers, and so does each way to sign in that is added in
that sign-in. Until somebody confirms them, the person and a maker may be one human being, and count as one.
"""

from models.audit import acts
from models.audit.principal import Principal
from models.database.rows import Db
from models.errors import Forbidden
from models.people.member import Member
from models.people.person import Person
from models.people.principal import PersonPrincipal

_MAKERS = """
    SELECT m.person_id, ARRAY(
        SELECT unnest(m.password_makers) UNION SELECT unnest(k.makers) FROM passkey k WHERE k.person_id = m.person_id
        UNION SELECT unnest(u.makers) FROM slack_user u WHERE u.person_id = m.person_id
        UNION SELECT unnest(s.makers) FROM sign_in s WHERE s.person_id = m.person_id AND s.ended_at IS NULL
            AND s.idle_until > assent_now() AND s.expires_at > assent_now()
        EXCEPT SELECT m.person_id ORDER BY 1
    )
    FROM member m WHERE m.person_id = ANY(%(people)s)
"""
_CONFIRM = "UPDATE {table} SET makers = NULL WHERE person_id = %(person)s AND makers IS NOT NULL"


def makers_of(db: Db, people: list[str]) -> dict[str, list[str]]:
    """Return the makers of each person's ways to sign in that nobody has confirmed, by person. None for most people."""
    return {person_id: makers for person_id, makers in db.rows(_MAKERS, people=people) if makers}


def principal_of(db: Db, person_id: str) -> PersonPrincipal:
    """Return an active member as the principal of a link in a message, by whichever way the person came. Raises NotFound."""
    return Member.find(db, person_id).principal(db, makers_of(db, [person_id]).get(person_id))


def confirm(db: Db, person_id: str, *, by: Principal) -> None:
    """Confirm a member's ways to sign in and open sign-ins. Idempotent.

    The operator confirms, an admin who made no link of theirs, or the person, signed in by an issuer or an earlier way. Raises
    NotFound; Forbidden for anybody else.
    """
    member = Member.find(db, person_id, lock=True)
    makers = makers_of(db, [person_id]).get(person_id, [])
    if by.kind == "api_key":
        raise Forbidden(
            "An API key cannot confirm anybody: an admin who is signed in can, or `assent database confirm` on the server."
        )
    if by.makers:
        raise Forbidden("You signed in by a link yourself and have not been confirmed: ask another admin to confirm this person.")
    if by.id in makers:
        name = db.get_one(Person, person_id).name
        raise Forbidden(f"You made a link of {name}, so somebody else confirms: another admin, or `assent database confirm`.")
    if makers:
        member.password_makers = None
        for table in ("passkey", "slack_user", "sign_in"):
            db.write(_CONFIRM.format(table=table), person=person_id)
        acts.record(db, by, "person.confirmed", person_id, {"makers": makers})
