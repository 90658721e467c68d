"""File tools reach nothing but the session's files, whatever the path, and whatever is swapped during the call."""

import os
import socket
import threading

import pytest
from looking import SECRET, text

from assent import ToolError
from workers.tools.builtin import paths


def every_tool(call, path):
    return [
        call("read", file_path=path),
        call("write", file_path=path, content="changed"),
        call("edit", file_path=path, old_string=SECRET, new_string="changed"),
        call("grep", pattern=SECRET, path=path),
    ]


@pytest.mark.parametrize("path", ["../../../outside/secret", "a/../../../../outside/secret", "..", "../state/files.lock"])
def test_dots_that_lead_out_are_refused(call, secret, path):
    for result in every_tool(call, path):
        assert result.is_error
        assert "outside the working directory" in text(result)
    assert secret.read_text() == SECRET


def test_absolute_paths_count_only_inside(call, files, secret):
    (files / "a").write_text("mine")
    assert text(call("read", file_path=str(files / "a"))) == "mine"
    for path in (str(secret), "/etc/passwd", str(files) + "2/a", str(files.parent / "state")):
        for result in every_tool(call, path):
            assert "outside the working directory" in text(result)


def test_links_that_lead_out_are_not_followed(call, files, secret):
    (files / "absolute").symlink_to(secret)
    (files / "relative").symlink_to("../../../outside/secret")
    (files / "folder").symlink_to(secret.parent)
    (files / "chain").symlink_to("folder/secret")
    for path in ("absolute", "relative", "folder/secret", "chain"):
        for result in every_tool(call, path):
            assert result.is_error
            assert SECRET not in text(result)
    assert secret.read_text() == SECRET
    assert [p.name for p in secret.parent.iterdir()] == ["secret"]


def test_dots_after_a_link_lead_to_the_links_own_folder_not_to_its_targets_parent(call, files, secret):
    (files / "folder").symlink_to(secret.parent)
    call("write", file_path="folder/../secret", content="mine")
    assert (files / "secret").read_text() == "mine"
    assert secret.read_text() == SECRET


def test_files_are_not_created_through_links(call, files, secret):
    (files / "folder").symlink_to(secret.parent)
    (files / "new").symlink_to(secret.parent / "new")
    for path in ("folder/new", "folder/deep/new", "new"):
        assert call("write", file_path=path, content="x").is_error
    assert [p.name for p in secret.parent.iterdir()] == ["secret"]


def test_links_inside_are_followed(call, files):
    (files / "src").mkdir()
    (files / "src" / "a").write_text("mine")
    (files / "to-folder").symlink_to("src")
    (files / "to-file").symlink_to(files / "src" / "a")
    (files / "src" / "up").symlink_to("../to-folder/a")
    for path in ("to-folder/a", "to-file", "src/up"):
        assert text(call("read", file_path=path)) == "mine"
    call("write", file_path="to-file", content="changed")
    assert (files / "to-file").is_symlink()
    assert (files / "src" / "a").read_text() == "changed"


def test_links_in_a_circle_end(call, files):
    (files / "a").symlink_to("b")
    (files / "b").symlink_to("a")
    assert "too many symbolic links" in text(call("read", file_path="a"))


def test_a_link_swapped_in_after_the_check_is_not_followed(files, secret):
    (files / "a").write_text("mine")
    with paths.located(files, "a") as place:
        (files / "a").unlink()
        (files / "a").symlink_to(secret)
        with pytest.raises(ToolError):
            paths.open_file(place)
        with pytest.raises(OSError, match="symbolic links"):
            os.open(place.name, paths._READ, dir_fd=place.folder)


def test_a_folder_swapped_for_a_link_while_it_is_used_changes_nothing_outside(files, secret):
    (files / "d").mkdir()
    with paths.located(files, "d/secret") as place:
        (files / "d").rename(files / "moved")
        (files / "d").symlink_to(secret.parent)
        with pytest.raises(FileNotFoundError):
            os.stat(place.name, dir_fd=place.folder)


def test_swapping_all_the_time_never_leaks(call, files, secret):
    (files / "real").mkdir()
    (files / "real" / "secret").write_text("mine")
    (files / "link").symlink_to(secret.parent)
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            for source in ("real", "link"):
                (files / source).rename(files / "d")
                (files / "d").rename(files / source)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        read = [text(call("read", file_path="d/secret")) for _ in range(500)]
    finally:
        stop.set()
        swapper.join()
    assert not [answer for answer in read if SECRET in answer]


def test_only_regular_files_are_opened(call, files, monkeypatch):
    os.mkfifo(files / "fifo")
    monkeypatch.chdir(files)  # a socket's address holds 107 bytes, less than many a folder's path
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for path in ("fifo", "socket"):
            for result in every_tool(call, path):
                assert "not a regular file" in text(result)
    for result in every_tool(call, "."):
        assert "is a directory" in text(result) or text(result) == "no matches"


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 256, "x/" * 3000, "\ud800"])
def test_impossible_paths_are_refused_in_words(call, path):
    for result in every_tool(call, path)[:3]:
        assert result.is_error
        assert "path" in text(result)


def test_searches_do_not_follow_links(call, files, secret):
    (files / "folder").symlink_to(secret.parent)
    (files / "file").symlink_to(secret)
    assert text(call("grep", pattern=SECRET)) == "no matches"
    assert text(call("glob", pattern="**/secret")) == "no matches"
    assert call("glob", pattern="*", path="folder").is_error
    assert call("glob", pattern="../*").is_error
    assert call("glob", pattern="/etc/*").is_error


def test_errors_name_no_path_of_the_machine(call, files):
    for name in ("read", "grep"):
        fields = {"file_path": "none"} if name == "read" else {"path": "none", "pattern": "x"}
        assert str(files) not in text(call(name, **fields))
