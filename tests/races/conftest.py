"""Threads with connections of their own, on one workspace. No workers: hints go nowhere."""

import pytest
from rows.stage import Stage

from models.database import transactions


@pytest.fixture
def stage(clean_database: object, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """An empty workspace, and the hands to play on it. What another test imported publishes nothing here."""
    monkeypatch.setattr(transactions, "_send", lambda _: None)
    return Stage()
