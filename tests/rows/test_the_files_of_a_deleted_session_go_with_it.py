"""What a session's tools wrote is removed when the session is deleted, and nobody else's."""

from pathlib import Path

import pytest
from rows.stage import Stage

from models import flow
from models.settings import settings
from workers import tool
from workers.tools.sandbox import workdir


def test_the_sweep_removes_folders_of_sessions_that_are_gone(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the tools worker, which has the files."""
    monkeypatch.setenv("ASSENT_WORKDIR_ROOT", str(tmp_path))
    settings.cache_clear()
    gone, there = stage.session(), stage.session()
    for session in (gone, there):
        (workdir.session_root(session) / "files" / "note").write_text("x")
    workdir.storage_id(tmp_path)
    stage.locked(gone, lambda db, locked: flow.delete(db, locked, stage.principal))

    tool.tidy()

    assert sorted(path.name for path in tmp_path.iterdir()) == [".storage", there]
    settings.cache_clear()
