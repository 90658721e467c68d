"""Names in the place of ids: those of people, keys and groups, as far as the key in use may read them."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from urllib.parse import quote

from api.cli.client import Inbox, RefusedByApi
from api.cli.tables import Row

MOST = 20
"""Most names that are read for one table, each by a request. Others keep their ids."""
_PATHS = {
    "user": "/v1/organizations/users",
    "api_key": "/v1/organizations/api_keys",
    "group": "/v1/organizations/rbac_groups",
}

NameOf = Callable[[str | None], str | None]


def names_of(inbox: Inbox, principals: Iterable[str | None]) -> NameOf:
    """Return a function that names people, keys and groups such as `user:user_...`. Without the right to read them, ids stay."""
    names: dict[str, str] = {}
    for principal in list(dict.fromkeys(filter(None, principals)))[:MOST]:
        kind, _, id_ = principal.partition(":")
        if kind in _PATHS:
            with suppress(RefusedByApi):
                row = inbox.call("GET", f"{_PATHS[kind]}/{quote(id_, safe='')}")
                name = row["name"] or row.get("email") or principal
                names[principal] = f"the key “{name}”" if kind == "api_key" else name
    return lambda principal: names.get(principal or "", principal)


def names_in(inbox: Inbox, rows: Sequence[Row], *fields: str) -> NameOf:
    """Return `names_of` for these fields of the rows."""
    return names_of(inbox, (row[field] for row in rows for field in fields))
