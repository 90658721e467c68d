"""Which commands take away what nobody brings back. No decision gives grants for the parts of a line that has one."""

import re

from models.pure.shell import Words
from models.pure.shell.wrappers import HANDS_ON, RUNS

_PROGRAMS = frozenset(
    name
    for names in (
        "rm rmdir unlink shred srm dd truncate mkfs fdisk sfdisk gdisk parted wipefs blkdiscard dropdb dropuser",
        "userdel groupdel mongorestore pg_restore rimraf del-cli",
    )
    for name in names.split()
)
_WORDS = frozenset(
    name
    for names in (
        "delete destroy drop dropdb purge wipe prune erase truncate nuke uninstall remove rm rmi rb obliterate teardown",
        "terminate flush flushall flushdb clean reset-hard deprovision decommission force-push mirror",
    )
    for name in names.split()
)
"""Subcommands, whole or as a part between hyphens and colons: `kubectl delete`, `aws ec2 terminate-instances`, `rake db:drop`."""
_OPTIONS = frozenset({"--delete", "--force", "--hard", "--mirror", "--prune", "--purge", "--force-with-lease", "-delete"})
_LOOKED_AT = 4
"""Words behind the program in which a subcommand is looked for."""
_GIT = {
    "push": frozenset({"-f", "-d", "--force-if-includes"}),
    "reset": frozenset({"--merge", "--keep"}),
    "checkout": frozenset({"-f", "--", "."}),
    "switch": frozenset({"-f", "--discard-changes"}),
    "branch": frozenset({"-d", "-D", "-M", "-C", "-f"}),
    "tag": frozenset({"-d", "-f"}),
    "stash": frozenset({"clear"}),
    "reflog": frozenset({"expire"}),
    "update-ref": frozenset({"-d"}),
}
"""Options and words with which a subcommand of git takes something away, beside `_OPTIONS` and `_WORDS`."""
_ALWAYS_OF_GIT = frozenset({"clean", "rm", "restore", "filter-branch", "filter-repo", "gc"})
_OPEN_ENDED = frozenset({*_GIT, *_ALWAYS_OF_GIT})
_STATEMENT = re.compile(r"\b(drop|delete|truncate|flushall|flushdb)\b", re.IGNORECASE)
_DATABASES = re.compile(r"(psql|mysql|mariadb|sqlite3|mongo|mongosh|redis-cli|clickhouse-client|cqlsh|sqlcmd|bq)")
_PLAIN = re.compile(r"[a-z][a-z0-9_:-]*")
_SHORT = re.compile(r"-[A-Za-z]+")


def destroys(words: Words) -> bool:
    """True if a command with these words may take away what nobody brings back. Wide on purpose: then a person is asked."""
    if not words:
        return False
    name, rest = words[0].rpartition("/")[2], words[1:]
    if name.partition(".")[0] in _PROGRAMS:
        return True
    if name == "git":
        return _by_git(rest)
    if _DATABASES.fullmatch(name) and any(map(_STATEMENT.search, rest)):
        return True
    if (name in RUNS or name in HANDS_ON) and any(destroys(rest[start:]) for start in range(len(rest))):
        return True
    return any(word in _OPTIONS for word in rest) or any(map(_says, rest[:_LOOKED_AT]))


def open_destroys(words: Words) -> str:
    """Return an example of a command that begins with these words and takes something away; empty if none is known.

    A pattern with a star at its end covers it as well.
    """
    if words[:2] == ("git", "push"):
        return f"{' '.join(words)} --force"
    if words[0] == "git" and (len(words) == 1 or words[1] in _OPEN_ENDED):
        examples = {"git branch": "git branch -D", "git tag": "git tag -d", "git stash": "git stash clear"}
        return "git reset --hard" if len(words) == 1 else examples.get(" ".join(words[:2]), f"{' '.join(words)} --force")
    return ""


def _by_git(words: Words) -> bool:
    if not words:
        return False
    command, rest = words[0], words[1:]
    if command in _ALWAYS_OF_GIT or any(map(_is_option, rest)):
        return True
    if command in {"stash", "worktree", "remote", "submodule", "bisect"} and any(word in _WORDS for word in rest[:1]):
        return True
    if command == "push" and any(word.startswith((":", "+")) for word in rest):
        return True
    own = _GIT.get(command, frozenset())
    return any(word in own or any(f"-{letter}" in own for letter in _letters(word)) for word in rest)


def _is_option(word: str) -> bool:
    """True if git may read a word as one of `_OPTIONS`: it takes their beginnings as well."""
    name = word.partition("=")[0]
    return len(name) > 2 and any(option.startswith(name) for option in _OPTIONS if option.startswith("--"))


def _letters(word: str) -> str:
    """Return the letters of a group of short options."""
    return word[1:] if _SHORT.fullmatch(word) else ""


def _says(word: str) -> bool:
    """True if a word that is no option, path or version names such an act."""
    return _PLAIN.fullmatch(word.lower()) is not None and not _WORDS.isdisjoint(re.split(r"[-_:]", word.lower()))
