"""Rows on a real Postgres, one workspace per test."""

import pytest
from rows.stage import Stage


@pytest.fixture
def stage(clean_database: object) -> Stage:
    """An empty workspace, and the hands to play on it."""
    return Stage()
