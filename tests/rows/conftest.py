"""Rows on a real Postgres, one workspace per test."""

from collections.abc import Callable

import pytest

from models.settings import settings


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Changes a setting for this test: `setting("default_permission", "deny")`."""

    def change(name: str, value: str) -> None:
        monkeypatch.setenv(f"ASSENT_{name.upper()}", value)
        settings.cache_clear()

    return change
