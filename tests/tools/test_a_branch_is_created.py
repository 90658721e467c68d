"""`create_branch`: creates a branch and switches to it, idempotently. Git in the sandbox sees no configuration of the host."""

import os
import subprocess

import pytest
from looking import text

from workers.tools import execution
from workers.tools.builtin.branch import CREATE_BRANCH
from workers.tools.sandbox import bubblewrap


@pytest.fixture
def create(context, each_shell):
    """Calls the tool: `create("x", start="main")`."""
    if bubblewrap.program("git") is None:
        pytest.skip("NOT TESTED, branches: git is not installed")

    def run(name, start=None, directory=None, cancelled=None, seconds=30):
        fields = {"name": name, "from": start, "directory": directory}
        return execution.execute(CREATE_BRANCH, context(seconds, cancelled), fields)

    return run


@pytest.fixture
def repository(shell):
    """Two commits on main, the branch `old` at the first."""
    shell("git init -q -b main && echo 1 > a && git add a && git commit -qm one && git branch old")
    shell("echo 2 > a && git commit -qam two")


def test_it_creates_the_branch_and_switches_to_it(create, shell, repository):
    result = create("topic/x")
    assert not result.is_error
    assert text(result).startswith("created the branch topic/x at ")
    assert shell("git branch --show-current; git rev-parse topic/x main | uniq | wc -l") == "topic/x\n1"


def test_the_branch_starts_at_the_given_commit(create, shell, repository):
    assert not create("x", start="old").is_error
    assert shell("git branch --show-current; cat a; git rev-parse x old | uniq | wc -l") == "x\n1\n1"


def test_a_second_call_changes_nothing(create, shell, repository):
    for start in (None, "old"):
        name = f"x-{start}"
        create(name, start)
        before = shell("git rev-parse HEAD; git branch --show-current; git reflog | wc -l")
        assert not create(name, start).is_error
        assert shell("git rev-parse HEAD; git branch --show-current; git reflog | wc -l") == before


def test_a_repository_without_a_commit_gets_its_first_branch(create, shell):
    shell("git init -q -b main")
    assert not create("x").is_error
    assert not create("x").is_error
    assert shell("git branch --show-current") == "x"


def test_a_branch_at_another_commit_is_not_moved(create, shell, repository):
    before = shell("git rev-parse old")
    result = create("old")
    assert result.is_error
    assert "the branch old exists already, at" in text(result)
    assert shell("git rev-parse old; git branch --show-current") == f"{before}\nmain"


def test_uncommitted_changes_are_not_overwritten(create, shell, repository):
    shell("echo mine > a")
    result = create("x", start="old")
    assert result.is_error
    assert "would overwrite changes that are not committed: a; commit them first" in text(result)
    assert shell("cat a; git branch --show-current; git branch --list x") == "mine\nmain"
    assert not create("y").is_error
    assert shell("cat a") == "mine"


def test_a_wrong_name_is_refused_in_words(create, shell, repository):
    before = shell("git branch --list")
    for name in ("a..b", "-d", "--help", "@{-1}", "a b", "a~1", "HEAD", "x.lock", "", "\u202ex", "a\nb", "x" * 300):
        result = create(name)
        assert result.is_error, name
        assert "name: " in text(result), name
    assert shell("git branch --list") == before


def test_a_wrong_start_is_refused_in_words(create, shell, repository):
    for start in ("nowhere", "--help", "-D main"):
        assert "is not a commit, branch or tag of this repository" in text(create("x", start=start)), start


def test_a_folder_without_a_repository_is_an_error_even_below_another_repository(create, shell):
    shell("git -C ../.. init -q; git init -q inner")
    assert "there is no git repository with a working tree here" in text(create("x"))
    assert not create("x", directory="inner").is_error


def test_a_directory_outside_is_refused(create, files, tmp_path):
    (files / "out").symlink_to(tmp_path)
    for directory in ("..", "/", "out"):
        assert "outside the working directory" in text(create("x", directory=directory))


def test_a_repository_with_its_git_folder_outside_is_refused(create, files, tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path / "host")], check=True)
    (files / ".git").write_text(f"gitdir: {tmp_path}/host/.git\n")
    assert "there is no git repository" in text(create("x"))


@pytest.mark.parametrize(
    "trap",
    [
        "mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch ran\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout",
        "git config core.fsmonitor 'touch ran; :'",
        "git config filter.e.smudge 'touch ran; cat'; echo '* filter=e' > .git/info/attributes",
        "printf '[filter \"e=x\"]\\n\\tsmudge = touch ran\\n' >> .git/config; echo '* filter=e=x' > .git/info/attributes",
        "printf '[core]\\n\\thooksPath = hooks\\n' > .gitconfig; mkdir hooks; cp /bin/true hooks/post-checkout",
    ],
    ids=["hook", "fsmonitor", "filter", "odd-filter", "own-config"],
)
def test_no_program_that_the_repository_names_is_run(create, shell, files, repository, trap):
    shell(trap)
    (files / "ran").unlink(missing_ok=True)
    create("x", start="old")
    assert not (files / "ran").exists()


def test_git_knows_nothing_of_its_host(shell, each_shell, monkeypatch, tmp_path):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "somebody")
    (tmp_path / "config").write_text("[user]\n\tname = somebody\n")
    shell("git init -q && git commit -q --allow-empty -m x")
    assert shell("git log --format='%an <%ae> %cn'") == "Assent agent <agent@assent.invalid> Assent agent"
    assert "somebody" not in shell("git config --list --show-origin")
    assert "/etc/gitconfig" not in shell("git config --list --show-origin")


def test_a_repository_of_another_owner_can_be_used(shell, files, each_shell):
    if os.getuid() != 0:
        pytest.skip("NOT TESTED: only root can give files away")
    shell("git init -q")
    for place in (files, files / ".git"):
        os.chown(place, 4242, 4242)
    assert "dubious ownership" not in shell("git status")


def test_without_a_sandbox_that_works_nothing_runs(context, monkeypatch, setting, tmp_path):
    setting("shell", "bubblewrap")
    monkeypatch.setattr(bubblewrap, "PATH", str(tmp_path))
    result = execution.execute(CREATE_BRANCH, context(), {"name": "x"})
    assert result.is_error
    assert "cannot run" in text(result)
