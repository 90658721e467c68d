"""The state of a session in a word, and names in the place of ids."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from api.cli.client import Inbox
from models.pure.state_words import session_state

MOST_SINGLY = 20
"""Most agents whose names are read one by one."""


def state_of(session: dict[str, Any]) -> str:
    """Return the word for a session's state: see `models.pure.state_words.SESSION`."""
    waits = session["state"] == "waiting_approval"
    status = "stopping" if session.get("stopping") else session["status"]
    is_held, archived = session.get("halted", False), bool(session["archived_at"])
    return session_state(status, session["stop_reason"], waits=waits, is_held=is_held, archived=archived).word


def names_of_agents(inbox: Inbox, ids: Iterable[str | None]) -> dict[str, str]:
    """Return the name of each of these agents by its id. Reads them one by one, or the whole list if it is many of them."""
    path, unique = "/v1/agents", sorted({one for one in ids if one})
    if len(unique) > MOST_SINGLY:
        rows = inbox.listed(path, include_archived=True)
    else:
        rows = [inbox.call("GET", f"{path}/{quote(one, safe='')}") for one in unique]
    return {row["id"]: row["name"] for row in rows}
