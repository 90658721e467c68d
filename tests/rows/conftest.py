"""Rows on a real Postgres, one workspace per test."""

from collections.abc import Callable, Iterator

import pytest

from models.settings import settings


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Sets one for this test: `setting("default_permission", "deny")`."""

    def change(name: str, value: str) -> None:
        monkeypatch.setenv(f"ASSENT_{name.upper()}", value)
        settings.cache_clear()

    yield change
    settings.cache_clear()  # it is read anew once the environment is as it was
