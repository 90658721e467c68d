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
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, insert
from sqlalchemy.orm import Mapped, mapped_column

from models import clock
from models.clock import ahead
from models.db import Base, Db, transaction
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
_ANNOUNCE = sa.text("SELECT assent_announce_toolsets(CAST(:announced AS jsonb), :only_seen, :seconds)")
_CHANGED = sa.text("SELECT assent_listing_changed(:url)")

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
        db.execute(_ANNOUNCE, {"announced": json.dumps(rows), "only_seen": only_seen, "seconds": SEEN_SECONDS})


def keep_listing(workspace_id: str, url: str, ask: Callable[[], list[dict[str, Any]]]) -> None:
    """Ask an MCP server for its tools, and keep them as of before it was asked: a change that it tells of meanwhile counts."""
    with transaction(workspace_id) as db:
        asked_at = clock.now(db)
    tools = ask()
    with transaction(workspace_id) as db:
        row = insert(Listing).values(workspace_id=workspace_id, url=url, tools=tools, digest=digest(tools), listed_at=asked_at)
        new = {name: row.excluded[name] for name in ("tools", "digest", "listed_at")}
        later = Listing.listed_at < row.excluded.listed_at
        db.execute(row.on_conflict_do_update(index_elements=["workspace_id", "url"], set_=new, where=later))


def mark_stale(url: str) -> None:
    """An MCP server has said that its tools changed: the next turn of whoever uses it asks it."""
    with transaction() as db:
        db.execute(_CHANGED, {"url": url})


def known(db: Db, address: str) -> bool:
    """Whether a worker ever announced this `assent:` address."""
    return db.get(Toolset, address.removeprefix(OURS)) is not None


def names(db: Db) -> list[str]:
    """The operator's toolsets, by name."""
    return list(db.scalars(sa.select(Toolset.name).order_by(Toolset.name)))


def missing(db: Db, wanted: Iterable[str]) -> list[str]:
    """Those of the addresses that no worker has at present."""
    ours = {address for address in wanted if address.startswith(OURS)}
    seen = sa.select(Toolset.name).where(Toolset.seen_at > ahead(-SEEN_SECONDS))
    return sorted(ours - {OURS + name for name in db.scalars(seen)})


def _read(db: Db, addresses: set[str]) -> dict[str, Listed]:
    """What is known of these. What this process has read before is not read again."""
    found: dict[str, Listed] = {}
    for row in _rows(db, addresses):
        if row.digest in _kept:
            found[row.address] = Listed(row.address, row.digest, _kept[row.digest], row.age)
    for row in _rows(db, addresses - found.keys(), Toolset.tools, Listing.tools):
        found[row.address] = Listed(row.address, row.digest, _keep(row.digest, row.tools), row.age)
    return found


def _rows(db: Db, addresses: Iterable[str], *of_each: Any) -> Iterator[Any]:
    """`address`, `digest` and `age` of each that is known, with one more column of each of the two tables."""
    of_toolset, of_listing = ([column.label("tools")] for column in of_each) if of_each else ([], [])
    ours = [address.removeprefix(OURS) for address in addresses if address.startswith(OURS)]
    urls = [address for address in addresses if not address.startswith(OURS)]
    if ours:
        address, age = sa.literal(OURS).concat(Toolset.name), sa.cast(sa.null(), sa.Float)
        columns = (address.label("address"), Toolset.digest, age.label("age"), *of_toolset)
        yield from db.execute(sa.select(*columns).where(Toolset.name.in_(ours)))
    if urls:
        age = sa.cast(sa.extract("epoch", clock.STARTED - Listing.listed_at), sa.Float)
        old = sa.case((Listing.changed_at >= Listing.listed_at, sa.literal(_STALE)), else_=age)
        columns = (Listing.url.label("address"), Listing.digest, old.label("age"), *of_listing)
        yield from db.execute(sa.select(*columns).where(Listing.url.in_(urls)))


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
