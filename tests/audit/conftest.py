"""A workspace whose audit is sealed and signed, and an intruder who can change the database."""

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
    """An empty workspace. No hint is sent, even if another test of this process imported the sender."""
    monkeypatch.setattr(transactions, "_send", lambda _: None)
    return Stage()


@pytest.fixture
def heads_file(tmp_path: Path) -> Path:
    """The file of the heads that the sealer signed, outside of the database."""
    return tmp_path / "audit.heads"


@pytest.fixture
def key(private_key: str, database_urls: object, heads_file: Path, monkeypatch: pytest.MonkeyPatch) -> seal_key.PublicKey:
    """The public half of the key that signs the seals."""
    signed_heads.make(heads_file)
    monkeypatch.setenv("ASSENT_AUDIT_KEY", private_key)
    monkeypatch.setenv("ASSENT_AUDIT_HEADS_FILE", str(heads_file))
    settings.cache_clear()
    return seal_key.read_private(private_key).public


@pytest.fixture
def intruder(stage: Stage, database_urls: DatabaseUrls) -> Iterator[Intruder]:
    """A superuser who switched off the triggers, without the key."""
    with psycopg.connect(database_urls.admin, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        yield Intruder(connection, stage.workspace_id)
