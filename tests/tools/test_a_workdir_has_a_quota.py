"""A session's files have a limit in bytes and in number, no matter how they are made. A full folder can be cleared."""

import os

import pytest
from looking import text

from workers.leash import quota
from workers.tools.sandbox import workdir

LIMIT = 500 * 4096
"""Whole blocks, so that a file of this size takes no more room on the disk."""


@pytest.fixture(autouse=True)
def _small(setting):
    setting("workdir_bytes", LIMIT)
    setting("workdir_files", 200)
    setting("workdir_free_bytes", 0)


def fill(files, size, name="full"):
    (files / name).write_bytes(b"x" * size)


def test_write_says_what_is_used_and_what_is_allowed(call, files):
    fill(files, LIMIT - 20_000)
    used = quota.measure(str(files), LIMIT, 200).bytes
    output = text(call("write", file_path="a", content="x" * 50_000))
    assert output == (
        f"write: the working directory holds {used} bytes of the {LIMIT} that it may; 50000 more do not fit; nothing was changed"
    )
    assert not (files / "a").exists()


def test_edit_says_so_too_and_changes_nothing(call, files):
    fill(files, LIMIT - 40_000)
    (files / "a").write_text("x")
    assert "more do not fit" in text(call("edit", file_path="a", old_string="x", new_string="y" * 50_000))
    assert (files / "a").read_text() == "x"


def test_writes_go_on_below_the_limit(call, files):
    fill(files, 1_000_000)
    assert not call("write", file_path="a/b", content="x" * 500_000).is_error


def test_the_number_of_files_is_limited(call, files):
    for n in range(201):
        (files / str(n)).touch()
    assert "more than the 200 files that it may" in text(call("write", file_path="a", content="x"))


def test_a_write_makes_no_folders_that_cannot_be_measured(call, files):
    deepest = "d/" * quota.DEEP
    assert f"more than {quota.DEEP} folders; nothing was changed" in text(call("write", file_path=f"{deepest}d/a", content="x"))
    assert not list(files.iterdir())
    (files / "here").symlink_to(".")
    assert "nothing was changed" in text(call("write", file_path=f"here/{deepest}d/a", content="x"))
    assert not (files / "d").exists()


def test_a_write_for_which_there_is_no_room_makes_no_folders(call, files):
    fill(files, LIMIT - 20_000)
    assert "nothing was changed" in text(call("write", file_path="a/b/c", content="x" * 50_000))
    assert not (files / "a").exists()


WAYS = {
    "bytes": "for ((i = 0; ; i++)); do head -c 500000 /dev/zero > $i; done",
    "files": "for ((i = 0; ; i++)); do : > $i; done",
    "deep": "while mkdir d && cd d; do :; done",
    "nameless": 'for ((i = 9; i < 30; i++)); do eval "exec $i> f"; rm f; head -c 500000 /dev/zero >&$i; done; sleep 60',
    "closed": "mkdir d; for i in 1 2 3 4 5; do chmod 700 d; head -c 500000 /dev/zero > d/$i; chmod 0 d; done; sleep 60",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_command_that_fills_the_folder_is_ended(call, files, each_shell, setting, way):
    if way == "deep":
        setting("workdir_files", 100_000)
    result = call("bash", seconds=20, command=WAYS[way])
    assert result.is_error
    assert "ended: the working directory " in text(result)
    assert {"files": "more than the 200 files", "deep": "nested more than 200 deep"}.get(way, "bytes, more than") in text(result)
    assert "its processes were killed" in text(result)


def test_no_file_gets_longer_than_all_may_be(call, files, each_shell):
    result = call("bash", command="head -c 5000000 /dev/zero > a; echo went on")
    assert "went on" in text(result)
    assert (files / "a").stat().st_size == LIMIT


def test_a_full_folder_can_be_cleared_and_not_be_filled(call, files, each_shell):
    for n in range(5):
        fill(files, LIMIT // 4 + 4096, str(n))
    output = text(call("bash", command="rm 1; mkdir d; mv 0 d; (echo x > new); ls d"))
    assert "0\n" in output
    assert f"more than the {LIMIT} that it may. Until there is room, no command can make a file longer: remove some." in output
    assert (files / "new").stat().st_size == 0
    assert text(call("bash", command="rm -r d 2 3")) == "exit code: 0\ndirectory: ."
    assert not call("bash", command="echo x > new").is_error


def test_links_and_sparse_files_are_not_counted_as_new_bytes(call, files, each_shell):
    fill(files, 1_000_000)
    command = "ln full again; ln full more; ln -s full link; truncate -s 1500000 hole; sleep 1"
    assert text(call("bash", command=command)) == "exit code: 0\ndirectory: ."


def test_the_disk_keeps_some_room(call, files, each_shell, setting):
    setting("workdir_free_bytes", 1 << 60)
    assert "bytes free, less than the" in text(call("write", file_path="a", content="x"))
    output = text(call("bash", command="(echo x > new); rm -f new; echo went on"))
    assert "went on" in output
    assert "less than the" in output


def test_files_behind_links_are_not_counted(files, tmp_path):
    (tmp_path / "large").write_bytes(b"x" * 3_000_000)
    (files / "link").symlink_to(tmp_path)
    (files / "file").symlink_to(tmp_path / "large")
    assert quota.measure(str(files), LIMIT, 200).bytes < 10_000


def test_a_folder_that_its_owner_closed_is_counted_and_stays_closed(files):
    (files / "closed").mkdir()
    fill(files / "closed", 1_000_000)
    (files / "closed").chmod(0)
    assert quota.measure(str(files), LIMIT, 200).bytes > 1_000_000
    assert (files / "closed").stat().st_mode & 0o777 == 0


def test_counting_stops_at_the_limit(files):
    for n in range(5_000):
        (files / str(n)).touch()
    assert quota.measure(str(files), LIMIT, 200).files <= 202


def test_a_very_deeply_nested_session_is_removed(root, files):
    fd = os.open(files, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("d", dir_fd=fd)
        deeper = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = deeper
    os.close(fd)
    workdir.remove("sesn_1")
    assert not root.exists()
