"""A worker shows people what a call would do to the files as they are, and changes nothing."""

from pathlib import Path

import pytest

from workers.tools.builtin.preview import preview


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A session's folder with one file."""
    (tmp_path / "files" / "src").mkdir(parents=True)
    (tmp_path / "state").mkdir()
    (tmp_path / "files" / "src" / "a.py").write_text("a\nx = 1\nb\n")
    return tmp_path


def test_an_edit_is_shown_in_the_file_as_it_is(root: Path) -> None:
    fields = {"file_path": "src/a.py", "old_string": "x = 1", "new_string": "x = 2"}
    assert preview("edit", root, fields) == {
        "hunks": [{"old": 1, "new": 1, "lines": [" a", "-x = 1", "+x = 2", " b"]}],
        "left_out": 0,
    }
    assert (root / "files/src/a.py").read_text() == "a\nx = 1\nb\n"


def test_an_edit_that_does_not_fit_says_why(root: Path) -> None:
    fields = {"file_path": "src/a.py", "old_string": "gone", "new_string": "x"}
    assert "does not occur" in preview("edit", root, fields)["problem"]
    assert "problem" in preview("edit", root, fields | {"file_path": "src/none.py"})


def test_a_write_shows_the_change_or_says_that_the_file_is_new(root: Path) -> None:
    assert preview("write", root, {"file_path": "src/a.py", "content": "a\nx = 1\n"})["hunks"][0]["lines"] == [" a", " x = 1", "-b"]
    assert preview("write", root, {"file_path": "src/new.py", "content": "x"})["is_new"]
    assert "directory" in preview("write", root, {"file_path": "src", "content": "x"})["problem"]


@pytest.mark.parametrize("tool", ["edit", "write"])
def test_no_file_outside_is_shown(root: Path, tool: str) -> None:
    (root / "secret").write_text("s3cret\n")
    (root / "files" / "link").symlink_to("../secret")
    for path in ("../secret", "link", "/etc/passwd"):
        fields = {"file_path": path, "old_string": "s", "new_string": "t", "content": "x"}
        shown = preview(tool, root, fields)
        assert set(shown) == {"problem"}
        assert "s3cret" not in shown["problem"]


def test_a_command_starts_where_the_last_one_ended(root: Path) -> None:
    assert preview("bash", root, {"command": "ls"}) == {"directory": "the session's directory"}
    (root / "state" / "directory").write_text(str(root / "files" / "src"))
    assert preview("bash", root, {"command": "ls"}) == {"directory": "src"}
    (root / "state" / "directory").write_text("/etc")
    assert preview("bash", root, {"command": "ls"}) == {"directory": "the session's directory"}


def test_a_command_in_a_repository_shows_its_branch(root: Path) -> None:
    git = root / "files" / ".git"
    (git / "refs" / "heads" / "release").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/release/4.2\n")
    assert preview("bash", root, {"command": "ls"}) == {"directory": "the session's directory", "branch": "release/4.2"}
    (git / "refs" / "heads" / "release" / "4.2").write_text("a" * 40 + "\n")
    shown = preview("bash", root, {"command": "ls", "working_directory": "src"})
    assert shown == {"directory": "src", "branch": "release/4.2", "commit": "a" * 40}
    (git / "HEAD").write_text("b" * 40 + "\n")
    assert preview("bash", root, {"command": "ls"})["commit"] == "b" * 40


@pytest.mark.parametrize("head", ["ref: refs/heads//etc/passwd", "ref: refs/heads/../../secret", "x\n" * 999, "", "\0"])
def test_a_strange_repository_shows_nothing_of_other_files(root: Path, head: str) -> None:
    (root / "files" / "secret").write_text("c" * 40)
    (root / "files" / ".git").mkdir()
    (root / "files" / ".git" / "HEAD").write_text(head)
    assert preview("bash", root, {"command": "ls"}) == {"directory": "the session's directory"}
