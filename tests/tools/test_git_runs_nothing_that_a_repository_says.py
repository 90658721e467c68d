"""Git in a session's shell: settings that name a program run nothing, whoever wrote them into the repository."""

import shlex

import pytest
from looking import text

from workers.tools.sandbox import bubblewrap
from workers.tools.sandbox import git as git_settings

TRAP = "touch $HOME/ran; true"


@pytest.fixture
def git(call, files, each_shell):
    """Runs shell commands in the workdir; what they print. Ahead of them, a repository with two commits."""
    if bubblewrap.program("git") is None:
        pytest.skip("NOT TESTED, git: it is not installed")

    def run(command):
        said = text(call("bash", command=f"{{ {command}; }} 2>&1"))
        return said.split("\n\nexit code")[0].removeprefix("stdout:\n").strip()

    run("git init -q -b main && echo 1 > a && git add a && git commit -qm one && echo 2 > a && git commit -qam two")
    return run


def ran(files):
    return (files / "ran").exists()


SETTINGS = {
    "core.fsmonitor": "git status",
    "core.editor": "git commit --amend",
    "core.pager": "git log; git branch",
    "core.sshCommand": "git fetch ssh://localhost/x",
    "core.gitProxy": "git fetch git://127.0.0.1:9/x",
    "core.askPass": "git fetch http://127.0.0.1:9/x",
    "sequence.editor": "git rebase -i HEAD~1",
    "interactive.diffFilter": "echo 3 > a; git add -p",
    "gpg.program": "git -c commit.gpgSign=true commit --allow-empty -m x",
    "gpg.openpgp.program": "git -c commit.gpgSign=true commit --allow-empty -m x",
    "gpg.ssh.program": "git -c gpg.format=ssh -c user.signingKey=k -c commit.gpgSign=true commit --allow-empty -m x",
    "gpg.ssh.defaultKeyCommand": "git -c gpg.format=ssh -c commit.gpgSign=true commit --allow-empty -m x",
    "gpg.x509.program": "git -c gpg.format=x509 -c commit.gpgSign=true commit --allow-empty -m x",
    "credential.helper": "printf 'protocol=http\\nhost=x\\n\\n' | git credential fill",
    "credential.http://x.helper": "printf 'protocol=http\\nhost=x\\n\\n' | git credential fill",
}


def test_a_program_that_a_setting_names_is_not_run(git, files):
    for setting, command in SETTINGS.items():
        value = "!" + TRAP if setting.startswith("credential") else TRAP
        git(f"git config {setting} {shlex.quote(value)}; {command}; git config --unset {setting}")
        assert not ran(files), setting


def test_every_setting_that_is_overridden_has_its_value(git):
    git("; ".join(f"git config {key} x" for key in git_settings.OVERRIDDEN))
    values = git("; ".join(f"git config {key}" for key in git_settings.OVERRIDDEN))
    assert values.split("\n") == list(git_settings.OVERRIDDEN.values())


def test_no_hook_is_run_wherever_it_is(git, files):
    git(f"mkdir hooks; printf '#!/bin/sh\\n{TRAP}\\n' > hooks/pre-commit; chmod +x hooks/pre-commit; cp hooks/* .git/hooks")
    git("git commit -q --allow-empty -m x; git config core.hooksPath hooks; git commit -q --allow-empty -m y")
    assert not ran(files)


def test_the_workdir_is_no_home_for_git(git, files):
    git(f"printf '[core]\\n\\tfsmonitor = {TRAP}\\n' > .gitconfig; mkdir -p .config/git; cp .gitconfig .config/git/config")
    git("git status")
    assert not ran(files)


def test_a_bare_layout_is_no_repository(git, files):
    git("mkdir -p src/objects src/refs; cp .git/HEAD .git/config src; git config -f src/config core.fsmonitor ./x")
    assert "cannot use bare repository" in git("cd src; git status")


def test_a_command_of_a_url_is_not_run(git, files):
    git("git config protocol.ext.allow always; git config protocol.allow always; git remote add x 'ext::touch $HOME/ran'")
    git(f"cp $(command -v touch) {files}/git-remote-own; PATH=$PATH:{files} git fetch own::ran; rm -f git-remote-own")
    git("git fetch x")
    assert not ran(files)


def test_a_repository_that_git_starts_in_runs_nothing_either(git, files, each_shell):
    if each_shell == "bare":
        return  # it has no system file
    git(f"git init -q --bare other.git; printf '#!/bin/sh\\n{TRAP}\\n' > other.git/hooks/post-receive")
    git("chmod +x other.git/hooks/post-receive")
    assert "new branch" in git("git push other.git main")
    assert not ran(files)


def test_only_the_workdir_is_safe_whoever_owns_it(git, files, each_shell):
    assert set(git("git config --get-all safe.directory").split()) == {str(files.resolve()), f"{files.resolve()}/*"}
