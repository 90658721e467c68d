"""Two tenants: one with a row in every table, one who must not see any of them."""

from collections.abc import Iterator

import pytest
from flask import Flask
from walls.world import World


@pytest.fixture(scope="session")
def app(database_urls: object, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flask]:
    """The API, in this process, which signs its audit."""
    from api import create_app
    from models.audit import seal_key, signed_heads
    from models.settings import settings

    found = create_app()
    found.testing = True
    with pytest.MonkeyPatch.context() as patch:
        heads = tmp_path_factory.mktemp("audit") / "heads"
        signed_heads.make(heads)
        patch.setenv("ASSENT_AUDIT_KEY", seal_key.make())
        patch.setenv("ASSENT_AUDIT_HEADS_FILE", str(heads))
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
