"""Git's settings in every command of a session, so that no repository's own configuration runs a program.

`GIT_CONFIG_COUNT` overrides the configuration of a repository, for all settings with one fixed name. Git drops the variable when
git starts itself in another local repository (`git push ../other`), so the sandbox also has `SYSTEM_FILE`. Settings with a name in
the middle (`filter.NAME.clean`, `alias.NAME`) and `diff.external` cannot be overridden: `git_look` lists the settings that run
nothing.
"""

from pathlib import Path

SYSTEM_FILE = "/etc/assent-git"
"""Inside the sandbox: the path of git's configuration of the system."""

OVERRIDDEN = {
    "core.alternateRefsCommand": "true",
    "core.askPass": "",
    "core.attributesFile": "/dev/null",
    "core.editor": ":",
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "core.sshCommand": "ssh -F /dev/null",
    "credential.helper": "",
    "gc.auto": "0",
    "gpg.openpgp.program": "gpg",
    "gpg.program": "gpg",
    "gpg.ssh.defaultKeyCommand": "true",
    "gpg.ssh.program": "ssh-keygen",
    "gpg.x509.program": "gpgsm",
    "interactive.diffFilter": "cat",
    "maintenance.auto": "false",
    "protocol.ext.allow": "never",
    "sequence.editor": ":",
}
"""Settings that name programs or folders of programs, with values that run no program of the repository."""

_VARIABLES = {
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",  # never `ext::`, which is a command
    "GIT_ASKPASS": "",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",  # HOME is the workdir, whose `.gitconfig` an agent may write
    "GIT_EDITOR": ":",
    "GIT_PAGER": "cat",
    "GIT_PROXY_COMMAND": "",  # the only way to set `core.gitProxy` aside
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_SSH_COMMAND": OVERRIDDEN["core.sshCommand"],
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "Assent agent",
    "GIT_AUTHOR_EMAIL": "agent@assent.invalid",
    "GIT_COMMITTER_NAME": "Assent agent",
    "GIT_COMMITTER_EMAIL": "agent@assent.invalid",
}


def environment(workdir: Path, *, sandboxed: bool) -> dict[str, str]:
    """Return git's environment variables for a session. Without a sandbox there is no system file."""
    pairs = _settings(workdir)
    variables = {**_VARIABLES, "GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables | ({"GIT_CONFIG_SYSTEM": SYSTEM_FILE} if sandboxed else {"GIT_CONFIG_NOSYSTEM": "1"})


def system_file(workdir: Path) -> bytes:
    """Return the content of `SYSTEM_FILE`: the same settings."""
    return "".join(_setting_text(key, value) for key, value in _settings(workdir)).encode()


def _settings(workdir: Path) -> list[tuple[str, str]]:
    # The files' owner need not be the worker's user: the owner says nothing about the author.
    # Git 2.46 and later know `/*` at the end; before, a repository in a subfolder must belong to the worker's user.
    real = str(workdir.resolve())
    safe = [("safe.directory", ""), ("safe.directory", real), ("safe.directory", f"{real}/*")]
    return [*OVERRIDDEN.items(), ("safe.bareRepository", "explicit"), *safe]


def _setting_text(key: str, value: str) -> str:
    section, _, name = key.rpartition(".")
    first, _, second = section.partition(".")
    header = f'[{first} "{second}"]' if second else f"[{first}]"
    text = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{header}\n\t{name} = "{text}"\n'
