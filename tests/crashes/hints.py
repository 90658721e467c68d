"""Sets the Redis to which this process publishes its hints. The publisher connects once and keeps the address."""

import pytest

from models.settings import settings
from workers import enqueue


def use_redis(patch: pytest.MonkeyPatch, url: str) -> None:
    """Publish hints to this Redis from now on."""
    patch.setenv("REDIS_URL", url)
    forget()


def forget() -> None:
    """Read the settings again, and connect again: the thread of the earlier publisher waits until the process ends."""
    settings.cache_clear()
    enqueue.publisher.cache_clear()
