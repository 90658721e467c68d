"""The command line works under a user id without a name, as in many containers. The audit then has the id."""

import os
from pathlib import Path

import pytest

from deploy.embedded_postgres import Postgres
from deploy.folder import CannotStart, free_port
from models.audit.principal import operating_person


@pytest.fixture(autouse=True)
def no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable names the user."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)


def test_a_user_without_a_name_is_known_by_the_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4_123_456_789)
    assert str(operating_person("wrkspc_1")) == "person:uid:4123456789"


def test_a_user_with_a_name_is_known_by_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "anna")
    assert str(operating_person("wrkspc_1")) == "person:anna"


def test_the_embedded_database_names_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4_123_456_789)
    with pytest.raises(CannotStart, match="the user id 4123456789 has none: add it to /etc/passwd, run as another user"):
        Postgres(tmp_path / "postgres", free_port(), str).prepare()
