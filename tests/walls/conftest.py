"""Two workspaces with a row in every table, neither of which may see the other's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from flask import Flask
from own_database import DatabaseUrls
from walls.world import World


@pytest.fixture(scope="session")
def unsigned_app(database_urls: object, redis_url: str) -> Flask:
    """The API, in this process."""
    from api import create_app

    app = create_app()
    app.testing = True
    return app


@pytest.fixture(scope="session")
def audit_heads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the last signed heads."""
    from models.audit import signed_heads

    heads = tmp_path_factory.mktemp("audit") / "heads"
    signed_heads.make(heads)
    return heads


@pytest.fixture(scope="module")
def app(unsigned_app: Flask, audit_heads: Path, private_key: str) -> Iterator[Flask]:
    """The API, while this process signs the audit."""
    from models.settings import settings

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSENT_AUDIT_KEY", private_key)
        patch.setenv("ASSENT_AUDIT_HEADS_FILE", str(audit_heads))
        settings.cache_clear()
        yield unsigned_app
    settings.cache_clear()


@pytest.fixture(scope="module")
def admin(database_urls: DatabaseUrls) -> Iterator["psycopg.Connection[Any]"]:
    """A superuser, who sees the rows of all workspaces."""
    with psycopg.connect(database_urls.admin, autocommit=True) as db:
        yield db


@pytest.fixture
def theirs(clean_database: object, app: Flask) -> World:
    """The workspace that must stay invisible."""
    return World(app)


@pytest.fixture
def ours(clean_database: object, app: Flask) -> World:
    """The workspace that tries to see the other one."""
    return World(app)
