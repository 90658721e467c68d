"""Threads with connections of their own on one workspace. There are no workers, and no hints are sent."""

import pytest
from rows.stage import Stage

from models.database import transactions


@pytest.fixture
def stage(clean_database: object, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """An empty workspace. No hint is sent, even if another test of this process imported the sender."""
    monkeypatch.setattr(transactions, "_send", lambda _: None)
    return Stage()
