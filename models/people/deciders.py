"""Deciders: the people of a workspace who may decide an approval, and whether they are enough."""

from collections.abc import Collection, Iterable

from models.database.rows import Db
from models.people.delegation import DECIDING_ROLES
from models.pure.quorum import Quorum

NOBODY_NAMED = (
    "Nobody is named as the person who started the run, so this call can only be denied. Send the message again, and name the "
    "person with on_behalf_of."
)
MOST = 500
"""The most people that `of` returns."""
_DECIDING = "m.workspace_id = %(workspace)s AND m.deactivated_at IS NULL AND m.role = ANY(%(roles)s)"
_IN_SET = """
    (('user:' || m.person_id) = ANY(%({set})s) OR EXISTS (
        SELECT FROM membership g WHERE g.workspace_id = m.workspace_id AND g.person_id = m.person_id
        AND ('group:' || g.group_id) = ANY(%({set})s)
    ))
"""


def unknown(db: Db, names: Iterable[str]) -> list[str]:
    """Return the names that are neither a group nor an active member with a role that decides."""
    unique = list(dict.fromkeys(names))
    groups = [name.removeprefix("group:") for name in unique if name.startswith("group:")]
    people = [name.removeprefix("user:") for name in unique if name.startswith("user:")]
    existing = {f"group:{one}" for (one,) in db.rows("SELECT id FROM person_group WHERE id = ANY(%(ids)s)", ids=groups)}
    deciding = f"SELECT m.person_id FROM member m WHERE {_DECIDING} AND m.person_id = ANY(%(ids)s)"  # noqa: S608 - names of our own
    rows = db.rows(deciding, workspace=db.workspace_id, roles=DECIDING_ROLES, ids=people)
    existing |= {f"user:{one}" for (one,) in rows}
    return [name for name in unique if name not in existing]


def count(db: Db, quorum: Quorum, started_by: Collection[str] = ()) -> int:
    """Return how many people are in every set now. With four eyes, `started_by` do not count."""
    sets = {f"set_{number}": list(one) for number, one in enumerate(quorum.approvers)}
    conditions = " AND ".join([_DECIDING, "m.person_id <> ALL(%(but)s)", *(_IN_SET.format(set=name) for name in sets)])
    values = {"workspace": db.workspace_id, "roles": DECIDING_ROLES, "but": list(started_by) if quorum.four_eyes else []}
    people: int = db.value(f"SELECT count(*) FROM member m WHERE {conditions}", **values, **sets)  # noqa: S608
    return people


def of(db: Db, quorum: Quorum, started_by: Collection[str] = (), *, but: Collection[str] = ()) -> list[tuple[str, str]]:
    """Return the people that `count` counts, without those in `but`: id and name, by name. At most `MOST`."""
    sets = {f"set_{number}": list(one) for number, one in enumerate(quorum.approvers)}
    conditions = " AND ".join([_DECIDING, "m.person_id <> ALL(%(but)s)", *(_IN_SET.format(set=name) for name in sets)])
    excluded = [*but, *(started_by if quorum.four_eyes else ())]
    people = f"SELECT p.id, p.name FROM member m JOIN person p ON p.id = m.person_id WHERE {conditions}"  # noqa: S608
    values = {"workspace": db.workspace_id, "roles": DECIDING_ROLES, "but": excluded, "most": MOST}
    return [(id_, name) for id_, name in db.rows(f"{people} ORDER BY p.name, p.id LIMIT %(most)s", **values, **sets)]


def shortage(db: Db, quorum: Quorum, started_by: Collection[str]) -> str | None:
    """Return why too few people may allow a call, and the remedy; None if they are enough. `started_by` asked for the call."""
    if not quorum.needs_people:
        return None
    if quorum.lacks_starter(started_by):
        return NOBODY_NAMED
    people = count(db, quorum, started_by)
    if people >= quorum.required_people:
        return None
    few = "Nobody" if people == 0 else f"Only {people} of the {quorum.required_people} people that it needs"
    but = ", since four eyes exclude the people who asked for it" if quorum.four_eyes else ""
    return (
        f"{few} may allow this call{but}. Deny it, or have an admin give more people the role "
        f"{' or '.join(DECIDING_ROLES)}, add them to the approvers, or change the `approval` settings."
    )
