"""Describes and counts the people who may decide an approval."""

from collections.abc import Iterable

from models.database.rows import Db
from models.people.delegation import DECIDING_ROLES
from models.pure.quorum import Quorum
from models.session.approval import Approval

_CALLED = """
    SELECT 'user:' || id, name FROM person WHERE 'user:' || id = ANY(%(names)s)
    UNION ALL SELECT 'group:' || id, name FROM person_group WHERE 'group:' || id = ANY(%(names)s)
"""
_DECIDING = "m.workspace_id = %(workspace)s AND m.deactivated_at IS NULL AND m.role = ANY(%(roles)s)"
_IN_SET = """
    (('user:' || m.person_id) = ANY(%({set})s) OR EXISTS (
        SELECT FROM membership g WHERE g.workspace_id = m.workspace_id AND g.person_id = m.person_id
        AND ('group:' || g.group_id) = ANY(%({set})s)
    ))
"""


def described(db: Db, approval: Approval) -> str:
    """Return a sentence that says who may decide an approval."""
    quorum = Quorum.of(approval.quorum)
    called: dict[str, str] = dict(db.rows(_CALLED, names=[name for one in quorum.approvers for name in one]))
    sets = [" or ".join(f"{name} ({called[name]})" if name in called else name for name in one) for one in quorum.approvers]
    people = "1 person must approve" if quorum.required == 1 else f"{quorum.required} people must approve"
    who = f", each of {' and of '.join(sets)}" if sets else f", each with the role {' or '.join(DECIDING_ROLES)}"
    but = " and not one who started the run or sent a message to it" if quorum.four_eyes else ""
    return f"{people}{who}{but}; each signs in and votes."


def unknown(db: Db, names: Iterable[str]) -> list[str]:
    """Return the names that are neither a group nor an active member with a role that decides."""
    unique = list(dict.fromkeys(names))
    groups = [name.removeprefix("group:") for name in unique if name.startswith("group:")]
    people = [name.removeprefix("user:") for name in unique if name.startswith("user:")]
    known = {f"group:{one}" for (one,) in db.rows("SELECT id FROM person_group WHERE id = ANY(%(ids)s)", ids=groups)}
    deciding = f"SELECT m.person_id FROM member m WHERE {_DECIDING} AND m.person_id = ANY(%(ids)s)"  # noqa: S608 - names of our own
    rows = db.rows(deciding, workspace=db.workspace_id, roles=DECIDING_ROLES, ids=people)
    known |= {f"user:{one}" for (one,) in rows}
    return [name for name in unique if name not in known]


def count(db: Db, quorum: Quorum) -> int:
    """Return how many people are in every set now."""
    sets = {f"set_{number}": list(one) for number, one in enumerate(quorum.approvers)}
    conditions = " AND ".join([_DECIDING, *(_IN_SET.format(set=name) for name in sets)])
    values = {"workspace": db.workspace_id, "roles": DECIDING_ROLES}
    people: int = db.value(f"SELECT count(*) FROM member m WHERE {conditions}", **values, **sets)  # noqa: S608
    return people
