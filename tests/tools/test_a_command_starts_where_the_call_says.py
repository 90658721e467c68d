"""`bash` starts in the directory that the call names, in the session's files and through no link, or it runs nothing."""

from pathlib import Path

import pytest
from looking import text

from workers.tools.builtin import paths
from workers.tools.builtin.preview import preview


def refused(call, directory: str) -> str:
    """The error of a call that must not run its command."""
    result = call("bash", command="echo ran", working_directory=directory)
    assert result.is_error
    assert "ran" not in text(result)
    return text(result)


@pytest.mark.parametrize("directory", ["a b/c", "./a b//c/", "{files}/a b/c"])
def test_the_command_starts_in_its_directory_and_the_next_one_where_it_ended(call, files, each_shell, directory):
    (files / "a b" / "c" / "d").mkdir(parents=True)
    named = directory.format(files=files)
    output = text(call("bash", command='pwd; echo "$# $OLDPWD"; cd d', working_directory=named))
    assert output == f"stdout:\n{files}/a b/c\n0 \n\nexit code: 0\ndirectory: a b/c/d"
    assert text(call("bash", command="pwd")).startswith(f"stdout:\n{files}/a b/c/d\n")
    assert text(call("bash", command="pwd", working_directory=".")).startswith(f"stdout:\n{files}\n")


@pytest.mark.parametrize("name", ["-", "--", "~", "$HOME", "*", "a'b", "a\nb", "a\n", "caf\u00e9", " "])
def test_a_name_is_taken_as_it_is_written(call, files, each_shell, name):
    (files / name).mkdir()
    (files / name / "here").touch()
    assert text(call("bash", command="ls", working_directory=name)).startswith("stdout:\nhere\n")


@pytest.mark.parametrize("directory", ["..", "a/../a", "a/..", "/", "/etc", "/proc/self/cwd"])
def test_a_directory_outside_or_with_dots_is_refused(call, files, directory):
    (files / "a").mkdir()
    assert refused(call, directory).startswith(f"bash: working_directory: {directory}: ")


@pytest.mark.parametrize(("target", "reason"), [("/usr", "is outside"), ("a", "is a symbolic link; name the directory itself, a")])
@pytest.mark.parametrize("below", ["", "/b"])
def test_a_link_that_an_earlier_call_made_is_not_followed(call, files, target, reason, below):
    call("bash", command=f"mkdir -p a/b; ln -s {target} out")
    assert f"working_directory: out{below}: {reason}" in refused(call, f"out{below}")


def test_a_directory_that_is_gone_or_was_replaced_is_refused(call, files):
    (files / "a").mkdir()
    assert preview("bash", files.parent, {"command": "ls", "working_directory": "a"}) == {"directory": "a"}
    (files / "a").rmdir()
    assert "working_directory: a: no such file or directory" in refused(call, "a")
    assert preview("bash", files.parent, {"command": "ls", "working_directory": "a"}) == {
        "problem": "working_directory: a: no such file or directory"
    }
    (files / "a").touch()
    assert "working_directory: a: not a directory" in refused(call, "a")


@pytest.mark.parametrize("instead", ["link", "nothing"])
def test_a_directory_that_is_replaced_after_the_check_runs_nothing(call, files, each_shell, monkeypatch, instead):
    (files / "a").mkdir()
    (files / "b").mkdir()
    check = paths.directory

    def then_replaced(workdir: Path, path: str) -> Path:
        place = check(workdir, path)
        (files / "a").rmdir()
        if instead == "link":
            (files / "a").symlink_to("b")
        return place

    monkeypatch.setattr(paths, "directory", then_replaced)
    output = refused(call, "a")
    assert instead == "nothing" or "was moved or replaced before the command began; nothing was done" in output
    assert output.endswith("\ndirectory: .")


def test_a_directory_without_a_command_or_a_name_is_refused(call):
    assert text(call("bash", restart=True, working_directory=".")) == "bash: command is required"
    assert "working_directory" in text(call("bash", command="ls", working_directory=""))
    assert text(call("bash", restart=True)).endswith("\ndirectory: .")
