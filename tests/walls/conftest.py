"""Two tenants: one with a row in every table, one who must not see any of them."""

from collections.abc import Iterator

import pytest
from flask import Flask
from walls.world import World


@pytest.fixture(scope="session")
def app(database_urls: object, redis_url: str) -> Iterator[Flask]:
    """The API, in this process, which signs its audit."""
    from api import create_app
    from models import seal_key
    from models.settings import settings

    found = create_app()
    found.testing = True
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSENT_AUDIT_KEY", seal_key.make())
        settings.cache_clear()
        yield found
    settings.cache_clear()


@pytest.fixture
def theirs(clean_database: object, app: Flask) -> World:
    """The tenant that has everything."""
    return World(app)


@pytest.fixture
def ours(clean_database: object, app: Flask) -> World:
    """The tenant that looks over the wall; it has everything too."""
    return World(app)
