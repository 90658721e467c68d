"""The tools behind each address, as the toolset or MCP server describes them.

| table | address | written by |
|---|---|---|
| `toolset` | `assent:<name>`: a toolset or MCP server of the operator's, the same for all workspaces | workers that have it |
| `listing` | the URL of an MCP server that a client named, per workspace | turns that list its tools |

Each tool is an entry: `{"name", "description", "input_schema", "effect", "idempotent", "seconds", "prompt", "cache", "policy",
"approval", "queue", "workdir", "annotations"}`, optionally with `title` and `output_schema`. What is stored has
`property_order` as well, since jsonb does not keep the order of a schema's properties. An agent names only the server.
Every transaction that judges a call reads the server's tools here.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from psycopg.types.json import Jsonb
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from models.database import clock
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import transaction
from models.pure.json.canonical import digest
from models.pure.json.property_order import order_of
from models.pure.naming import OURS
from models.settings import settings

OF_SESSION = "session"
"""The toolset with which an agent reads its own session, such as long results. Every tools worker has it."""
SEEN_SECONDS = 150
"""After this time without an announcement, no worker counts as having the toolset."""

Entry = Mapping[str, Any]


class Toolset(Base):
    """A toolset of the operator's. The workers that have it announce it."""

    __tablename__ = "toolset"

    name: Mapped[str] = mapped_column(primary_key=True)
    tools: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    digest: Mapped[str]
    workspaces: Mapped[list[str] | None] = mapped_column(ARRAY(sa.Text))
    """The only workspaces that may use it; None stands for all. Row-level security hides the row from other workspaces."""
    announced_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    """When a worker last announced its tools."""
    seen_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    """When a worker last reported that it has the toolset."""


class Listing(Base):
    """The tools of an MCP server that a client named."""

    __tablename__ = "listing"

    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"), primary_key=True)
    url: Mapped[str] = mapped_column(primary_key=True)
    tools: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    digest: Mapped[str]
    listed_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    """When the tools were requested from the server."""
    changed_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """When the server last notified a change of its tools."""

    __table_args__ = (sa.Index("listing_of_url", "url"),)


@dataclass(frozen=True)
class ToolListing:
    """The last known tools behind one address. Equal if the tools are equal."""

    address: str
    digest: str
    tools: tuple[Entry, ...] = field(compare=False)
    age: float | None = field(compare=False, default=None)
    """Seconds since the tools were listed; None for `assent:` addresses, whose workers announce changes themselves."""

    def entry(self, tool: str | None) -> Entry | None:
        """Return the entry of a tool, or None."""
        return next((entry for entry in self.tools if entry["name"] == tool), None)


# A toolset serves all workspaces, so a function of the database writes its row.
_ANNOUNCE = "SELECT assent_announce_toolsets(CAST(%(announced)s AS jsonb), %(only_seen)s, %(seconds)s)"

_STALE = 1e9
"""The age of a listing whose server has notified a change since."""
_ROOM = 20_000_000
"""Size of the cache in characters of JSON. The objects take about seven times as many bytes."""
_room = _ROOM
_cache: dict[str, tuple[Entry, ...]] = {}
"""This process's cache: tools by their digest."""


def listings_of(db: Db, agent: Mapping[str, Any]) -> dict[str, ToolListing]:
    """Return the known tools of the agent's MCP servers, by the agent's names for the servers. Leaves out unknown servers."""
    addresses = {server["name"]: server["url"] for server in agent.get("mcp_servers") or ()}
    if not addresses:
        return {}
    by_address = listings_at(db, set(addresses.values()))
    return {name: by_address[address] for name, address in addresses.items() if address in by_address}


def entry_of(db: Db, address: str, tool: str) -> Entry | None:
    """Return the entry of one tool, or None."""
    server = listings_at(db, {address}).get(address)
    return server.entry(tool) if server else None


def announce(toolsets: Mapping[str, Iterable[Entry]], *, only_seen: bool = False) -> None:
    """Store the toolsets that this worker has. `only_seen` repeats an earlier announcement: tools that another worker has announced
    since stay, while that worker still announces them."""
    rows = []
    for name, tools in toolsets.items():
        entries = [_with_order(entry) for entry in tools]
        workspaces = settings().toolset_workspaces.get(name)
        rows.append({"name": name, "tools": entries, "digest": digest(entries), "workspaces": workspaces})
    with transaction() as db:
        db.rows(_ANNOUNCE, announced=json.dumps(rows), only_seen=only_seen, seconds=SEEN_SECONDS)


def time_before_listing(workspace_id: str) -> datetime:
    """Return the database's time, which `keep_listing` needs from before the tools were requested."""
    with transaction(workspace_id) as db:
        return clock.now(db)


def keep_listing(workspace_id: str, url: str, tools: list[dict[str, Any]], asked_at: datetime) -> None:
    """Store the tools of an MCP server, which were requested after `asked_at`.

    So a change that is notified during the request marks the listing as stale.
    """
    entries = [_with_order(tool) for tool in tools]
    with transaction(workspace_id) as db:
        db.write(_KEEP, workspace=workspace_id, url=url, tools=Jsonb(entries), digest=digest(entries), asked_at=asked_at)


def _with_order(entry: Entry) -> dict[str, Any]:
    """Return an entry as it is stored."""
    return {**entry, "property_order": order_of(entry.get("input_schema"))}


_KEEP = """
    INSERT INTO listing (workspace_id, url, tools, digest, listed_at)
    VALUES (%(workspace)s, %(url)s, %(tools)s, %(digest)s, %(asked_at)s)
    ON CONFLICT (workspace_id, url) DO UPDATE SET tools = excluded.tools, digest = excluded.digest, listed_at = excluded.listed_at
    WHERE listing.listed_at < excluded.listed_at
"""


def mark_stale(url: str) -> None:
    """Note that an MCP server's tools changed. The next turn that uses the server lists them again."""
    with transaction() as db:
        db.rows("SELECT assent_listing_changed(%(url)s)", url=url)


def is_announced(db: Db, address: str) -> bool:
    """True if a worker ever announced this `assent:` address."""
    return db.get(Toolset, address.removeprefix(OURS)) is not None


def names(db: Db) -> list[str]:
    """Return the names of the operator's toolsets."""
    return [name for (name,) in db.rows("SELECT name FROM toolset ORDER BY name")]


def missing(db: Db, addresses: Iterable[str]) -> list[str]:
    """Return those of the `assent:` addresses that no worker has at present."""
    ours = {address for address in addresses if address.startswith(OURS)}
    query = f"SELECT name FROM toolset WHERE seen_at > {clock.STARTED} - interval '{SEEN_SECONDS} seconds'"  # noqa: S608
    return sorted(ours - {OURS + name for (name,) in db.rows(query)})


def listings_at(db: Db, addresses: set[str]) -> dict[str, ToolListing]:
    """Return the known tools behind these addresses. Tools in the cache are not read again."""
    by_address: dict[str, ToolListing] = {}
    for address, tools_digest, age in _rows(db, addresses, ""):
        if tools_digest in _cache:
            by_address[address] = ToolListing(address, tools_digest, _cache[tools_digest], age)
    for address, tools_digest, age, tools in _rows(db, addresses - by_address.keys(), ", tools"):
        by_address[address] = ToolListing(address, tools_digest, _keep(tools_digest, tools), age)
    return by_address


def _rows(db: Db, addresses: Iterable[str], more: str) -> Iterator[Any]:
    """Yield address, digest and age of each known address, and the column `more`."""
    ours = [address.removeprefix(OURS) for address in addresses if address.startswith(OURS)]
    urls = [address for address in addresses if not address.startswith(OURS)]
    if ours:
        toolsets = f"SELECT %(ours)s || name, digest, NULL::float{more} FROM toolset WHERE name = ANY(%(names)s)"  # noqa: S608
        yield from db.rows(toolsets, ours=OURS, names=ours)
    if urls:
        age = f"CASE WHEN changed_at >= listed_at THEN {_STALE} ELSE extract(epoch FROM {clock.STARTED} - listed_at)::float END"
        yield from db.rows(f"SELECT url, digest, {age}{more} FROM listing WHERE url = ANY(%(urls)s)", urls=urls)  # noqa: S608


def _keep(tools_digest: str, tools: list[dict[str, Any]]) -> tuple[Entry, ...]:
    """Cache tools by their digest. A full cache is cleared first."""
    global _room  # noqa: PLW0603 - the process's cache
    size = len(json.dumps(tools))
    if size > _room:
        _cache.clear()
        _room = _ROOM
    _room -= size
    entries = _cache[tools_digest] = tuple(tools)
    return entries
