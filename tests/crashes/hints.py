"""Where this process publishes its hints, which it remembers once it has said any."""

import pytest

from models.settings import settings
from workers import enqueue


def use_redis(patch: pytest.MonkeyPatch, url: str) -> None:
    """From now on, hints go there."""
    patch.setenv("REDIS_URL", url)
    forget()


def forget() -> None:
    """Read the settings again, and connect again."""
    settings.cache_clear()
    enqueue.publisher.cache_clear()
