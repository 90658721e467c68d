"""What tools there are behind an address, as their own side says it.

| table | an address is | told by |
|---|---|---|
| `toolset` | `assent:<name>`: a toolset or MCP server of the operator's, the same for all workspaces | workers that have it |
| `listing` | the URL of an MCP server that a client named, per workspace | turns that asked it |

Each tool is an entry: `{"name", "description", "input_schema", "effect", "idempotent", "seconds", "prompt", "cache", "policy",
"queue", "workdir", "annotations"}`, and perhaps `title` and `output_schema`. Agents only name the server; what its tools are is
read here, by every transaction that judges a call.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from psycopg.types.json import Jsonb
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.database import clock
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import transaction
from models.pure.canonical import digest
from models.pure.naming import OURS
from models.settings import settings

OF_SESSION = "session"
"""The toolset of what a session's agent needs to work with the session: reading long results. Every tools worker has it."""
SEEN_SECONDS = 150
"""A toolset that no worker has announced for so long is with nobody."""

Entry = Mapping[str, Any]


class Toolset(Base):
    """A toolset of the operator's, announced by the workers that have it."""

    __tablename__ = "toolset"

    name: Mapped[str] = mapped_column(primary_key=True)
    tools: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    digest: Mapped[str]
    workspaces: Mapped[list[str] | None] = mapped_column(ARRAY(sa.Text))
    """The only workspaces that may use it; None is all. A policy of the database hides the row from all others."""
    announced_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    """When its tools were last said."""
    seen_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    """When a worker last said that it has them."""


class Listing(Base):
    """The tools of an MCP server that a client named."""

    __tablename__ = "listing"

    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"), primary_key=True)
    url: Mapped[str] = mapped_column(primary_key=True)
    tools: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    digest: Mapped[str]
    listed_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    """When the server was asked for them."""
    changed_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """When it last said that they change."""

    __table_args__ = (sa.Index("listing_of_url", "url"),)


@dataclass(frozen=True)
class Listed:
    """The tools behind one address, as last told. Equal for the same tools."""

    address: str
    digest: str
    tools: tuple[Entry, ...] = field(compare=False)
    age: float | None = field(compare=False, default=None)
    """Seconds since they were told; None for `assent:` addresses, whose workers tell of changes themselves."""

    def entry(self, tool: str | None) -> Entry | None:
        """One of them."""
        return next((entry for entry in self.tools if entry["name"] == tool), None)


# Both go over all workspaces, so functions of the database do them.
_ANNOUNCE = "SELECT assent_announce_toolsets(CAST(%(announced)s AS jsonb), %(only_seen)s, %(seconds)s)"

_STALE = 1e9
"""The age of a listing whose server has said since that it changed."""
_ROOM = 20_000_000
"""Characters of JSON; as Python has it, that is some seven times as many bytes."""
_room = _ROOM
_kept: dict[str, tuple[Entry, ...]] = {}
"""Tools by their digest, as this process has read them before."""


def listed(db: Db, agent: Mapping[str, Any]) -> dict[str, Listed]:
    """What is known of the agent's MCP servers, by the agent's names for them. A server that nobody told about is missing."""
    addresses = {server["name"]: server["url"] for server in agent.get("mcp_servers") or ()}
    if not addresses:
        return {}
    found = _read(db, set(addresses.values()))
    return {name: found[address] for name, address in addresses.items() if address in found}


def entry_of(db: Db, address: str, tool: str) -> Entry | None:
    """What is known of one tool."""
    found = _read(db, {address}).get(address)
    return found.entry(tool) if found else None


def announce(toolsets: Mapping[str, Iterable[Entry]], *, only_seen: bool = False) -> None:
    """A worker says which toolsets it has. `only_seen`: it said so before; what another one has said since stays as it is, while
    that one lives."""
    rows = []
    for name, tools in toolsets.items():
        entries = [dict(entry) for entry in tools]
        workspaces = settings().toolset_workspaces.get(name)
        rows.append({"name": name, "tools": entries, "digest": digest(entries), "workspaces": workspaces})
    with transaction() as db:
        db.rows(_ANNOUNCE, announced=json.dumps(rows), only_seen=only_seen, seconds=SEEN_SECONDS)


def keep_listing(workspace_id: str, url: str, ask: Callable[[], list[dict[str, Any]]]) -> None:
    """Ask an MCP server for its tools, and keep them as of before it was asked: a change that it tells of meanwhile counts."""
    with transaction(workspace_id) as db:
        asked_at = clock.now(db)
    tools = ask()
    with transaction(workspace_id) as db:
        db.write(_KEEP, workspace=workspace_id, url=url, tools=Jsonb(tools), digest=digest(tools), asked_at=asked_at)


_KEEP = """
    INSERT INTO listing (workspace_id, url, tools, digest, listed_at)
    VALUES (%(workspace)s, %(url)s, %(tools)s, %(digest)s, %(asked_at)s)
    ON CONFLICT (workspace_id, url) DO UPDATE SET tools = excluded.tools, digest = excluded.digest, listed_at = excluded.listed_at
    WHERE listing.listed_at < excluded.listed_at
"""


def mark_stale(url: str) -> None:
    """An MCP server has said that its tools changed: the next turn of whoever uses it asks it."""
    with transaction() as db:
        db.rows("SELECT assent_listing_changed(%(url)s)", url=url)


def known(db: Db, address: str) -> bool:
    """Whether a worker ever announced this `assent:` address."""
    return db.get(Toolset, address.removeprefix(OURS)) is not None


def names(db: Db) -> list[str]:
    """The operator's toolsets, by name."""
    return [name for (name,) in db.rows("SELECT name FROM toolset ORDER BY name")]


def missing(db: Db, wanted: Iterable[str]) -> list[str]:
    """Those of the addresses that no worker has at present."""
    ours = {address for address in wanted if address.startswith(OURS)}
    seen = f"SELECT name FROM toolset WHERE seen_at > {clock.STARTED} - interval '{SEEN_SECONDS} seconds'"  # noqa: S608
    return sorted(ours - {OURS + name for (name,) in db.rows(seen)})


def _read(db: Db, addresses: set[str]) -> dict[str, Listed]:
    """What is known of these. What this process has read before is not read again."""
    found: dict[str, Listed] = {}
    for address, told, age in _rows(db, addresses, ""):
        if told in _kept:
            found[address] = Listed(address, told, _kept[told], age)
    for address, told, age, tools in _rows(db, addresses - found.keys(), ", tools"):
        found[address] = Listed(address, told, _keep(told, tools), age)
    return found


def _rows(db: Db, addresses: Iterable[str], more: str) -> Iterator[Any]:
    """Address, digest and age of each that is known, with one column `more`."""
    ours = [address.removeprefix(OURS) for address in addresses if address.startswith(OURS)]
    urls = [address for address in addresses if not address.startswith(OURS)]
    if ours:
        named = f"SELECT %(ours)s || name, digest, NULL::float{more} FROM toolset WHERE name = ANY(%(names)s)"  # noqa: S608
        yield from db.rows(named, ours=OURS, names=ours)
    if urls:
        age = f"CASE WHEN changed_at >= listed_at THEN {_STALE} ELSE extract(epoch FROM {clock.STARTED} - listed_at)::float END"
        yield from db.rows(f"SELECT url, digest, {age}{more} FROM listing WHERE url = ANY(%(urls)s)", urls=urls)  # noqa: S608


def _keep(told: str, tools: list[dict[str, Any]]) -> tuple[Entry, ...]:
    """Remember tools by their digest, as long as there is room."""
    global _room  # noqa: PLW0603 - of this process
    size = len(json.dumps(tools))
    if size > _room:
        _kept.clear()
        _room = _ROOM
    _room -= size
    kept = _kept[told] = tuple(tools)
    return kept
