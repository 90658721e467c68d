"""Git in a session's shell: settings that name a program run nothing, whoever wrote them into the repository."""

import shlex

import pytest

from workers.tools.sandbox import bubblewrap
from workers.tools.sandbox import git as git_settings

TRAP = "touch $HOME/ran; true"


@pytest.fixture
def shell(shell, each_shell):
    """Runs a shell command in a repository with two commits and returns its output."""
    if bubblewrap.program("git") is None:
        pytest.skip("NOT TESTED, git: it is not installed")

    shell("git init -q -b main && echo 1 > a && git add a && git commit -qm one && echo 2 > a && git commit -qam two")
    return shell


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


def test_a_program_that_a_setting_names_is_not_run(shell, files):
    for setting, command in SETTINGS.items():
        value = "!" + TRAP if setting.startswith("credential") else TRAP
        shell(f"git config {setting} {shlex.quote(value)}; {command}; git config --unset {setting}")
        assert not ran(files), setting


def test_a_repository_cannot_change_an_overridden_setting(shell):
    shell("; ".join(f"git config {key} x" for key in git_settings.OVERRIDDEN))
    values = shell("; ".join(f"git config {key}" for key in git_settings.OVERRIDDEN))
    assert values.split("\n") == list(git_settings.OVERRIDDEN.values())


def test_no_hook_is_run_from_any_folder(shell, files):
    shell(f"mkdir hooks; printf '#!/bin/sh\\n{TRAP}\\n' > hooks/pre-commit; chmod +x hooks/pre-commit; cp hooks/* .git/hooks")
    shell("git commit -q --allow-empty -m x; git config core.hooksPath hooks; git commit -q --allow-empty -m y")
    assert not ran(files)


def test_git_reads_no_user_configuration_from_the_workdir(shell, files):
    shell(f"printf '[core]\\n\\tfsmonitor = {TRAP}\\n' > .gitconfig; mkdir -p .config/git; cp .gitconfig .config/git/config")
    shell("git status")
    assert not ran(files)


def test_a_bare_layout_is_no_repository(shell, files):
    shell("mkdir -p src/objects src/refs; cp .git/HEAD .git/config src; git config -f src/config core.fsmonitor ./x")
    assert "cannot use bare repository" in shell("cd src; git status")


def test_a_command_that_a_url_names_is_not_run(shell, files):
    shell("git config protocol.ext.allow always; git config protocol.allow always; git remote add x 'ext::touch $HOME/ran'")
    shell(f"cp $(command -v touch) {files}/git-remote-own; PATH=$PATH:{files} git fetch own::ran; rm -f git-remote-own")
    shell("git fetch x")
    assert not ran(files)


def test_a_push_runs_no_hook_of_the_other_repository(shell, files, each_shell):
    if each_shell == "bare":
        return  # it has no system file
    shell(f"git init -q --bare other.git; printf '#!/bin/sh\\n{TRAP}\\n' > other.git/hooks/post-receive")
    shell("chmod +x other.git/hooks/post-receive")
    assert "new branch" in shell("git push other.git main")
    assert not ran(files)


def test_only_the_workdir_is_safe_whoever_owns_it(shell, files, each_shell):
    assert set(shell("git config --get-all safe.directory").split()) == {str(files.resolve()), f"{files.resolve()}/*"}
