"""A data folder belongs to one process, keeps its secrets to its owner, and stays the same over restarts."""

import os
import socket
import stat
from pathlib import Path

import pytest

from deploy.folder import CannotStart, Folder
from deploy.local import up


def test_a_second_start_is_refused_with_the_pid_of_the_first(folder: Folder, capfd: pytest.CaptureFixture[str]) -> None:
    assert up(8000, folder.path) == 1

    message = capfd.readouterr().err
    assert message.count("\n") == 1
    assert f"in use by process {os.getpid()}" in message


def test_a_folder_is_free_again_once_its_process_has_let_go(tmp_path: Path) -> None:
    with Folder(tmp_path / "data"):
        pass
    with Folder(tmp_path / "data") as again:
        assert again.path == tmp_path / "data"


def test_a_taken_port_is_one_clear_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert up(port, tmp_path / "data") == 1

    message = capfd.readouterr().err
    assert message.count("\n") == 1
    assert f"port {port} is taken" in message


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotStart, match="cannot be used"), Folder(tmp_path / "file" / "data"):
        pass


def test_passwords_stay_the_same_and_are_readable_by_the_owner_only(folder: Folder) -> None:
    first = folder.secret("app")
    assert folder.secret("app") == first
    assert folder.secret("system") != first
    assert stat.S_IMODE((folder.path / "secrets.json").stat().st_mode) == 0o600


def test_ports_stay_the_same_while_they_are_free(folder: Folder) -> None:
    port = folder.port("postgres")
    assert folder.port("postgres") == port
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        other = folder.port("postgres")
    assert other != port
    assert folder.port("postgres") == other


def test_a_file_is_written_whole_or_not_at_all(folder: Folder) -> None:
    folder.write("up.json", "first")
    with pytest.raises(UnicodeEncodeError):
        folder.write("up.json", "\ud800")
    assert folder.read("up.json") == "first"
