"""Names, for people to read, of the principals that rows record."""

from collections.abc import Iterable

from models.database.rows import Db
from models.people.person import Person
from models.workspace.api_key import ApiKey

_OF_APPROVERS = """
    SELECT 'user:' || id, name FROM person WHERE 'user:' || id = ANY(%(names)s)
    UNION ALL SELECT 'group:' || id, name FROM person_group WHERE 'group:' || id = ANY(%(names)s)
"""


def approver_names(db: Db, approvers: Iterable[str]) -> dict[str, str]:
    """Return the names of people and groups by the names that settings have for them: `user:ID` and `group:ID`."""
    names = sorted(set(approvers))
    return dict(db.rows(_OF_APPROVERS, names=names)) if names else {}


class Names:
    """Names by principal, such as `user:user_...`."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    @classmethod
    def of(cls, db: Db, principals: Iterable[str | None]) -> "Names":
        """Return the names of these principals. Reads in at most two queries."""
        selection = {principal.partition(":")[::2] for principal in principals if principal}
        names: dict[str, str] = {}
        if people := [id_ for kind, id_ in selection if kind == "user"]:
            names |= {f"user:{row.id}": row.name for row in db.find(Person, "WHERE id = ANY(%(ids)s)", ids=people)}
        if keys := [id_ for kind, id_ in selection if kind == "api_key"]:
            names |= {f"api_key:{row.id}": f"the key “{row.name}”" for row in db.find(ApiKey, "WHERE id = ANY(%(ids)s)", ids=keys)}
        return cls(names)

    def __getitem__(self, principal: str | None) -> str:
        """Return the principal's name; for a deadline, a sweep or a grant its kind."""
        if principal in self._names:
            return self._names[principal]
        kind = (principal or "").partition(":")[0]
        return {"system": "Assent", "grant": "a grant", "": "nobody"}.get(kind, principal or "nobody")
