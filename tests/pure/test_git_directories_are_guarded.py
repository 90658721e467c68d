"""Writes to git directories are recognized by name: in paths, in commands, and in lines that cannot be read."""

import pytest

from models.pure.policy import CompiledRules, Rule, match_of
from models.pure.policy.git_writes import guarded, may_write_git
from models.pure.shell import read

PARTS = [
    ".git", ".git/config", "src/.git/config", "src/.git/hooks/pre-commit", "./src//.git/./HEAD", "src/x/../.git/config",
    "/work/src/.git/config", "src/.GIT/config", "src/.git /config", "src/.git./config", "src/.gi\u200ct/config", "src/git~1/config",
    "src\\.git\\config", "repo.git/config", "repo.git/hooks/update", "src/.git/modules/x/config", "src/HEAD", "src/config",
    "src/config.worktree", "src/commondir", "src/hooks/post-receive", "src/info/attributes", ".gitattributes", "src/.gitattributes",
    ".gitmodules", ".gitconfig", ".config/git/config", ".config/git/attributes", "src/packed-refs",
]  # fmt: skip
OTHERS = [
    "src/main.py", ".gitignore", "src/.gitkeep", ".github/workflows/x.yml", "git/config.py", "src/config/a.py", "config.json",
    "src/hooks/useState.ts", "hooks/index.js", "docs/HEAD.md", "src/objects/x", "refs/x.txt", "x.gitx", "src/overhead", "gitconfig",
]  # fmt: skip


def test_a_path_of_a_git_directory_is_guarded() -> None:
    for path in PARTS:
        assert guarded("write", {"file_path": path, "content": "x"}) == path
        assert guarded("edit", {"file_path": path, "old_string": "x", "new_string": "y"}) == path
        assert may_write_git("write", {"file_path": path, "content": "x"}), path


def test_another_path_is_not_guarded() -> None:
    assert [path for path in OTHERS if guarded("write", {"file_path": path})] == []


def test_reading_a_git_directory_is_not_guarded() -> None:
    assert guarded("read", {"file_path": ".git/config"}) is None
    assert not may_write_git("read", {"file_path": ".git/config"})


UNSURE = [
    "cp x src/.git/config", "cp x src/.gi*/config", "cp x .?it/config", "cp x .[g]it/config", "mv x .git", "mkdir .git",
    "ln -s x src/.git", "cd src/.git", "touch .GIT/x", "install -t.git x", "dd if=x of=.git/config", "tee .gitattributes",
    "cp x .gitconfig", "cp x src/HEAD", "cp x repo.git/config", "tar -x -f a -C .git", "rsync a .git/", "cp a '.git'/config",
    "git clone https://x/y src/.git", "git init .git", "git worktree add src/.git/x", "cp -t .git/hooks x", "rm -r .git",
]  # fmt: skip
SURE = [
    "cat .git/config", "ls -la .git", "grep -r x .git", "git clone https://x/y.git", "git add .gitattributes", "git show HEAD",
    "git log HEAD~3", "pip install git+https://x/y.git", "cp x .gitignore", "cp a b", "cd src", "find . -name .git", "rm .github/x",
]  # fmt: skip


def test_a_command_that_may_write_to_a_git_directory_is_asked() -> None:
    for command in UNSURE:
        everything = CompiledRules([Rule("allow", match_of(f"bash({command.split(maxsplit=1)[0]} *)"))], "ask")
        assert everything.judge("bash", {"command": command}).effect == "ask", command
        assert everything.judge("bash", {"command": "true; " + command}).effect == "ask", command
        assert may_write_git("bash", {"command": command}), command


@pytest.mark.parametrize(
    "command",
    [
        "tar xf a.tar; git status",
        "make && git add .",
        "unzip a.zip | git status",
        "git log | unzip a.zip",
        "git status & make",
        "python x.py; git log",
        "git add . && make && git commit -m x",
        "while git status; do make; done",
        "if git status; then make; fi",
        "{ git status; make; }",
        "(git status; make)",
        "! make || git log",
    ],
)
def test_git_is_asked_behind_a_command_that_may_write_any_file(command: str) -> None:
    assert "use git in a call of its own" in (read(command).doubt or "")


@pytest.mark.parametrize(
    "command", ["cd src && git status", "git add . && git commit -m x", "git log | head", "mkdir x; git status", "make"]
)
def test_git_is_not_asked_beside_commands_that_name_their_files(command: str) -> None:
    assert read(command).doubt is None


@pytest.mark.parametrize(
    "command",
    ["git push && gh release create v4", "git pull; make test", "git add . || make\nmake", "cd x; git log > /dev/null; make"],
)
def test_git_is_not_asked_before_a_command_that_may_write_any_file(command: str) -> None:
    assert read(command).doubt is None


def test_a_command_that_does_not_write_to_a_git_directory_is_not_asked() -> None:
    assert [command for command in SURE if read(command).doubt or may_write_git("bash", {"command": command})] == []


@pytest.mark.parametrize(
    "command",
    [
        "echo x > src/.git/config",
        "X=1 cp x .git",
        "printf x >> .g'i't/config",
        "echo x > .gitattributes",
        "sh -c 'cp x .git/config'",
    ],
)
def test_an_unreadable_line_may_write_the_git_paths_in_it(command: str) -> None:
    assert read(command).doubt
    assert may_write_git("bash", {"command": command})


@pytest.mark.parametrize("command", ["echo x > y", "git diff HEAD > x.patch", "X=1 make", "sh -c 'ls'", "echo .github > x"])
def test_an_unreadable_line_without_a_git_path_writes_none(command: str) -> None:
    assert read(command).doubt
    assert not may_write_git("bash", {"command": command})
