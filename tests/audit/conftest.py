"""A workspace whose audit is sealed and signed, and the hands of somebody who may do anything to the database."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from audit.tampering import Intruder
from own_database import DatabaseUrls
from rows.stage import Stage

from models.audit import seal_key, signed_heads
from models.database import transactions
from models.settings import settings


@pytest.fixture
def stage(clean_database: object, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """An empty workspace. What another test imported publishes nothing here."""
    monkeypatch.setattr(transactions, "_send", lambda _: None)
    return Stage()


@pytest.fixture
def heads_file(tmp_path: Path) -> Path:
    """Where the sealer keeps the heads that it signed: no database reaches it."""
    return tmp_path / "audit.heads"


@pytest.fixture
def key(private_key: str, database_urls: object, heads_file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[seal_key.PublicKey]:
    """The public half of the key that seals are signed with."""
    signed_heads.make(heads_file)
    monkeypatch.setenv("ASSENT_AUDIT_KEY", private_key)
    monkeypatch.setenv("ASSENT_AUDIT_HEADS_FILE", str(heads_file))
    settings.cache_clear()
    yield seal_key.read_private(private_key).public
    monkeypatch.undo()
    settings.cache_clear()


@pytest.fixture
def intruder(stage: Stage, database_urls: DatabaseUrls) -> Iterator[Intruder]:
    """A superuser who has switched the triggers off and has not the key."""
    with psycopg.connect(database_urls.admin, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        yield Intruder(connection, stage.workspace_id)
