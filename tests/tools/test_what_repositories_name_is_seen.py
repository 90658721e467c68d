"""Right before git runs, a worker looks whether a repository in the session's files could have it run a program."""

import subprocess

import pytest

from workers.tools.builtin.git_look import may_run_programs
from workers.tools.sandbox import bubblewrap


@pytest.fixture
def git(files):
    """Runs git on the host in the session's files."""
    if bubblewrap.program("git") is None:
        pytest.skip("NOT TESTED, git: it is not installed")
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
    return lambda *words: subprocess.run(["git", *identity, *words], cwd=files, check=True, capture_output=True)


@pytest.fixture
def repository(git, files):
    """With a remote, a worktree, a submodule and a repository in a folder of its own."""
    git("init", "-q", "-b", "main", "other")
    git("-C", "other", "commit", "-q", "--allow-empty", "-m", "x")
    git("clone", "-q", "other", "src")
    git("-C", "src", "submodule", "add", "-q", str(files / "other"), "sub")
    git("-C", "src", "commit", "-q", "-m", "sub")
    git("-C", "src", "worktree", "add", "-q", "../tree")
    git("-C", "src", "config", "branch.main.description", "mine")
    return files / "src"


def sees(files, command="cd src && git status"):
    return may_run_programs(files, command)


def test_ordinary_repositories_run_nothing(files, repository):
    assert not sees(files)
    assert not sees(files, "git push")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[("filter.x.clean", "./x"), ("diff.x.textconv", "./x"), ("diff.external", "./x"), ("merge.x.driver", "./x")],
        *[("alias.st", "!./x"), ("remote.origin.uploadpack", "./x"), ("include.path", "../x"), ("trailer.x.command", "./x")],
        *[("includeIf.gitdir:/.path", "x"), ("core.gitProxy", "./x"), ("submodule.sub.update", "!./x"), ("man.x.cmd", "./x")],
        ("remote.origin.vcs", "own"),
    ],
)
def test_a_setting_that_names_a_program_is_seen_in_every_place(git, files, repository, key, value):
    for place in ("src", "src/sub", "other"):
        git("config", "-f", git("-C", place, "rev-parse", "--absolute-git-dir").stdout.decode().strip() + "/config", key, value)
        assert sees(files), place
        git("config", "-f", git("-C", place, "rev-parse", "--absolute-git-dir").stdout.decode().strip() + "/config", "--unset", key)
        assert not sees(files)


def test_an_overridden_setting_counts_only_where_git_starts_itself_elsewhere(git, files, repository):
    git("-C", "src", "config", "core.hooksPath", ".husky")
    assert not sees(files)
    assert not sees(files, "git --no-pager commit -m push")
    assert not sees(files, "ls")
    for command in (
        "push origin main",
        "send-pack ../other main",
        "--no-pager send-pack ../other main",
        "fetch",
        "pull",
        "remote -v",
    ):
        assert sees(files, f"git {command}"), command


@pytest.mark.parametrize("place", ["shared", ".git/shared"])
def test_a_bare_repository_counts_only_where_git_starts_itself_elsewhere(git, files, place):
    git("init", "-q", "-b", "main", ".")
    git("init", "-q", "--bare", place)
    git("-C", place, "config", "core.hooksPath", "hooks")
    assert sees(files, "git push")
    assert not sees(files, "git commit -m x")


def test_git_in_another_repository_runs_that_repository_s_hooks(shell, files, each_shell):
    # Why `git_look` has a list of the subcommands that start git nowhere else.
    trap = "mkdir o; cd o; git init -q; git config core.hooksPath $PWD; printf '#!/bin/sh\ntouch $HOME/ran\n' > pre-receive"
    shell(f"git init -q .; git commit -q --allow-empty -m x; ({trap}; chmod +x pre-receive)")
    for command in ("push", "send-pack"):
        shell(f"git {command} ./o HEAD:refs/heads/{command}")
        assert (files / "ran").exists()
        (files / "ran").unlink()


@pytest.mark.parametrize(
    "change",
    [
        lambda src: (src / ".git/config").write_text("[core] fsmonitor = ./x\n"),
        lambda src: (src / ".git/config").write_text('[core]\n\tabbrev = 7 \\\n[diff]\n\texternal = "./x"\n'),
        lambda src: (src / ".git/config").write_text("[diff.x]\n\ttextconv = ./x\n"),
        lambda src: (src / ".git/config").write_text("x" * 300_000),
        lambda src: (src / ".git/config").write_bytes(b"[core]\n\tabbrev = \xff\n"),
        lambda src: (src / ".git/config").rename(src / "c") and (src / ".git/config").symlink_to("../c"),
        lambda src: (src / ".git/config.worktree").write_text("[diff]\n\texternal = ./x\n"),
        lambda src: (src / ".git/commondir").write_text("../payload\n"),
        lambda src: (src.parent / ".git").write_text("gitdir: /etc\n"),
        lambda src: (src.parent / ".git").symlink_to("src"),
        lambda src: (src.parent / "tree/.git").write_text("gitdir: ../payload\ngitdir: x\n"),
        lambda src: (src / ".git/worktrees/tree/commondir").write_text("../../../payload\n"),
        lambda src: (src / "closed/.GIT").mkdir(parents=True) or (src / "closed/.GIT/config").write_text("[alias]\n\tx = !./x\n"),
    ],
)  # fmt: skip
def test_a_configuration_that_cannot_be_read_plainly_counts_as_a_program(files, repository, change):
    change(repository)
    assert sees(files)


def test_more_files_than_a_session_may_have_are_not_looked_through(files, repository, setting):
    setting("workdir_files", 100)
    (files / "many").mkdir()
    for number in range(120):
        (files / "many" / str(number)).touch()
    assert sees(files)
