"""Workdirs: one folder per session, and an id of the storage that all of its workers agree on."""

import fcntl
import os
import sys

import pytest
import warm
from looking import until

from models.settings import settings
from workers.tools.sandbox import workdir


def test_the_storage_keeps_its_id(tmp_path):
    first = workdir.storage_id(tmp_path / "new" / "root")
    assert first.startswith("stor_")
    assert workdir.storage_id(tmp_path / "new" / "root") == first
    assert workdir.storage_id(tmp_path / "other") != first


ASK = """
import fcntl, sys
from pathlib import Path
from workers.tools.sandbox import workdir
gate = open(sys.argv[1])
print("ready", flush=True)
fcntl.flock(gate, fcntl.LOCK_SH)
print([workdir.storage_id(Path(sys.argv[2], str(number))) for number in range(30)])
"""


def test_workers_that_ask_at_once_agree(tmp_path):
    """All wait for the lock of a file, and get it at once. They meet at some of the roots."""
    logs = [tmp_path / f"log{number}" for number in range(4)]
    workers = []
    with (tmp_path / "gate").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        for log in logs:
            with log.open("wb") as output:
                command = [sys.executable, "-c", ASK, str(tmp_path / "gate"), str(tmp_path / "root")]
                workers.append(warm.start(command, dict(os.environ), output))
        until(lambda: all("ready" in log.read_text() for log in logs), 60)
    assert [worker.wait(60) for worker in workers] == [0] * 4
    (answer,) = {log.read_text() for log in logs}
    assert answer.count("stor_") == 30
    assert {path.name for path in (tmp_path / "root").glob("*/.*")} == {".storage"}


def test_a_storage_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        workdir.storage_id(tmp_path / "file")


def test_a_sessions_folder_is_for_its_user_only():
    root = workdir.session_root("sesn_1")
    assert root == settings().workdir_root.resolve() / "sesn_1"
    assert sorted(p.name for p in root.iterdir()) == ["files", "state"]
    assert {p.stat().st_mode & 0o777 for p in (root, root / "files", root / "state")} == {0o700}
    assert workdir.session_root("sesn_1") == root


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "/etc", ".storage", "a\0", "x" * 200])
def test_a_wrong_session_id_has_no_folder(name):
    with pytest.raises(ValueError, match="session id"):
        workdir.session_root(name)
    with pytest.raises(ValueError, match="session id"):
        workdir.remove(name)


def test_removing_takes_all_of_one_session_and_nothing_else(tmp_path):
    root, other = workdir.session_root("sesn_1"), workdir.session_root("sesn_2")
    (root / "files" / "closed" / "deep").mkdir(parents=True)
    (root / "files" / "closed" / "deep" / "a").touch()
    (root / "files" / "out").symlink_to(tmp_path)
    (root / "files" / "closed" / "deep").chmod(0)
    (root / "files" / "closed").chmod(0)
    mode = tmp_path.stat().st_mode
    workdir.remove("sesn_1")
    workdir.remove("sesn_1")
    assert not root.exists()
    assert other.exists()
    assert tmp_path.stat().st_mode == mode
