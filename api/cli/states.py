"""The state of a session in a word, and names in the place of ids."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

import click

from api.cli.client import Inbox
from api.cli.tables import SHORT_ID
from models.pure.state_words import session_state
from models.pure.text.visible import visible

SEARCHED = 200
"""The newest rows among which a name, or the end of an id, is searched."""
MOST_SINGLY = 20
"""Most agents whose names are read one by one."""
NOUNS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "agent": ("/v1/agents", "agent_", {}),
    "session": ("/v1/sessions", "sesn_", {"include_archived": True}),
    "approval": ("/v1/approvals", "appr_", {"order": "desc"}),
}
"""For each noun: the path of its list, the prefix of its ids, and the query that lists all of them, newest first."""


def state_of(session: dict[str, Any]) -> str:
    """Return the word for a session's state: see `models.pure.state_words.SESSION`."""
    waits = session["state"] == "waiting_approval"
    status = "stopping" if session.get("stopping") else session["status"]
    is_held, archived = session.get("halted", False), bool(session["archived_at"])
    return session_state(status, session["stop_reason"], waits=waits, is_held=is_held, archived=archived).word


def names_of_agents(inbox: Inbox, ids: Iterable[str | None]) -> dict[str, str]:
    """Return the name of each of these agents by its id. Reads them one by one, or the whole list if it is many of them."""
    path, unique = NOUNS["agent"][0], sorted({one for one in ids if one})
    if len(unique) > MOST_SINGLY:
        rows = inbox.listed(path, include_archived=True)
    else:
        rows = [inbox.call("GET", f"{path}/{quote(one, safe='')}") for one in unique]
    return {row["id"]: row["name"] for row in rows}


def find_id(inbox: Inbox, noun: str, text: str) -> str:
    """Return the id of a row, by its id, the end of its id, its name or its title. Raises click.ClickException."""
    path, prefix, query = NOUNS[noun]
    if text.startswith(prefix):
        return quote(text, safe="")
    rows = inbox.listed(path, most=SEARCHED, **query)
    ids = {row["id"] for row in rows if text in {row.get("name"), row.get("title")}} or {
        row["id"] for row in rows if len(text) >= SHORT_ID and row["id"].endswith(text.upper())
    }
    if len(ids) == 1:
        return str(ids.pop())
    fault = f"several {noun}s are named {text!r}" if ids else f"no {noun} is named {text!r}"
    raise click.ClickException(f"{visible(fault)}: give the id, {prefix}..., or its last {SHORT_ID} characters")
