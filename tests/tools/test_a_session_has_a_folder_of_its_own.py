"""Workdirs: one folder per session, and an id of the storage that all of its workers agree on."""

import multiprocessing

import pytest

from models.settings import settings
from workers.tools.sandbox import workdir


def test_the_storage_keeps_its_id(tmp_path):
    first = workdir.storage_id(tmp_path / "new" / "root")
    assert first.startswith("stor_")
    assert workdir.storage_id(tmp_path / "new" / "root") == first
    assert workdir.storage_id(tmp_path / "other") != first


def _ask(root, gate, answers):
    gate.wait()
    answers.put(workdir.storage_id(root))


def test_workers_that_ask_at_once_agree(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    gate, answers = spawn.Barrier(4), spawn.Queue()
    workers = [spawn.Process(target=_ask, args=(tmp_path / "root", gate, answers)) for _ in range(4)]
    for worker in workers:
        worker.start()
    storage_ids = {answers.get(timeout=60) for _ in workers}
    for worker in workers:
        worker.join()
    assert len(storage_ids) == 1
    assert [p.name for p in (tmp_path / "root").iterdir()] == [".storage"]


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
