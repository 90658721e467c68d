"""Rows on a real Postgres, one workspace per test."""

from collections.abc import Callable

import pytest

from models.settings import settings
from workers.providers import ModelReply, choosing


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Changes a setting for this test: `setting("default_permission", "deny")`."""

    def change(name: str, value: str) -> None:
        monkeypatch.setenv(f"ASSENT_{name.upper()}", value)
        settings.cache_clear()

    return change


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that sets the model's next answers: replies, or errors that are raised. The last one is given again and again."""

    def give(*values: ModelReply | Exception) -> None:
        rest = list(values)

        class Provider:
            def ask(self, *_: object) -> ModelReply:
                value = rest.pop(0) if len(rest) > 1 else rest[0]
                if isinstance(value, Exception):
                    raise value
                return value

        monkeypatch.setattr(choosing, "provider_for", lambda *_: Provider())

    return give
