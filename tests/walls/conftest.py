"""Two tenants: one with a row in every table, one who must not see any of them."""

import pytest
from flask import Flask
from walls.world import World


@pytest.fixture(scope="session")
def app(database_urls: object, redis_url: str) -> Flask:
    """The API, in this process."""
    from api import create_app

    found = create_app()
    found.testing = True
    return found


@pytest.fixture
def theirs(clean_database: object, app: Flask) -> World:
    """The tenant that has everything."""
    return World(app)


@pytest.fixture
def ours(clean_database: object, app: Flask) -> World:
    """The tenant that looks over the wall; it has everything too."""
    return World(app)
