"""Fixtures of tests of the example toolset: a shop in the test process's database."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from own_database import DatabaseUrls

from examples import orders
from models.settings import settings
from workers.tools.kinds import ToolContext, ToolResult
from workers.tools.python import running


class Shop:
    """Calls the shop's tools as a worker does, and looks into its tables."""

    def __init__(self, url: str, entries: dict[str, dict[str, Any]], root: Path) -> None:
        self._url = url
        self._root = root
        self.entries = entries

    def call(self, tool: str, call_id: str = "sevt_1", **fields: Any) -> ToolResult:
        """Call a tool and return its result."""
        return running.toolset_tool("orders", self.entries[tool]).run(ToolContext(call_id, "sesn_1", self._root, 30), fields)

    def result(self, tool: str, call_id: str = "sevt_1", **fields: Any) -> Any:
        """Call a tool and return the JSON of its result."""
        return json.loads(self.call(tool, call_id, **fields).content[0]["text"])

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""
        with psycopg.connect(self._url) as db:
            return db.execute(statement.encode()).fetchall()


@pytest.fixture(scope="package")
def shop_url(database_urls: DatabaseUrls) -> Iterator[str]:
    """The database, named in the environment; the shop's schema is removed at the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORDERS_DATABASE_URL", database_urls.admin)
        patch.setenv("ASSENT_TOOLSETS", "examples.orders:orders")
        yield database_urls.admin
    running.end_idle()
    with psycopg.connect(database_urls.admin) as db:
        db.execute("DROP SCHEMA IF EXISTS shop CASCADE")


@pytest.fixture(scope="package")
def entries(shop_url: str) -> dict[str, dict[str, Any]]:
    """The toolset's entries, by tool name."""
    settings.cache_clear()
    toolsets, problems = running.describe()
    settings.cache_clear()
    assert problems == []
    return {entry["name"]: entry for entry in toolsets["orders"]}


@pytest.fixture
def shop(shop_url: str, entries: dict[str, dict[str, Any]], tmp_path: Path) -> Shop:
    """The shop with its sample orders, and nothing refunded yet."""
    settings.cache_clear()
    with psycopg.connect(shop_url) as db:
        db.execute("DROP SCHEMA IF EXISTS shop CASCADE")
    orders.create()
    return Shop(shop_url, entries, tmp_path)
