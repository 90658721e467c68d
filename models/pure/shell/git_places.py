"""Recognises paths in a git directory, or that would make a folder one. Git runs programs that the files there name.

Only names decide, since the files are not visible here. Git's files have fixed names (`.git`, `HEAD`, `config`, `hooks/`).
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from models.pure.shell.words import MARK

_FILES = frozenset(
    {
        # in a git directory: HEAD makes a folder one, and the others name its programs
        *("head", "config", "config.worktree", "commondir", "gitdir", "packed-refs"),
        # outside a git directory
        *(".gitconfig", ".gitattributes", ".gitmodules"),
    }
)
_FOLDERS = frozenset({(".config", "git"), ("info", "attributes")})
_DIRECTORY = re.compile(r"git~\d+|.*\.git")
"""The folded name of a git directory, of a bare one by convention, or the short name of either on Windows' file systems."""
_IN_TEXT = re.compile(r"(?<![\w-])\.(?:git(?![\w-])|git(?:config|attributes|modules)\b)", re.IGNORECASE)
_READERS = frozenset(
    name
    for names in (
        "[ basename cat cmp cut date diff dirname du echo egrep fd fgrep file find grep head id jq ls md5sum nl printf pwd",
        "realpath readlink rg sha1sum sha256sum sort stat tail test tr tree true uname uniq wc which",
    )
    for name in names.split()
)
"""Commands whose operands name no file to write. `known_programs` checks their options."""
_NAMERS = frozenset(
    {"awk", "cd", "cp", "false", "git", "ln", "mkdir", "mv", "popd", "pushd", "rm", "rmdir", "sed", "sleep", "touch"}
)
"""Commands that write only files that their words name, or that exist under the same name."""


def is_git_path(path: str) -> bool:
    """True if a write to this path may change or create a git directory. Links are not followed."""
    names = [_plain_form(name) for name in re.split(r"[/\\]", path) if name not in {"", "."}]
    if any(_DIRECTORY.fullmatch(name) for name in names):
        return True
    if names and names[-1] in _FILES:
        return True
    pairs = list(pairwise(names))
    # Hooks have no file extension. React components, in folders with that name, have one.
    return any(pair in _FOLDERS for pair in pairs) or any(pair[0] == "hooks" and "." not in pair[1] for pair in pairs[-1:])


def doubt(words: Sequence[str]) -> str | None:
    """Return why a simple command may write into a git directory; None if it certainly does not. `words` are marked."""
    name = words[0].lstrip(MARK).rpartition("/")[2]
    if name in _READERS:
        return None
    own = name == "git"
    for word in words[1:]:
        if _may_name(word, own=own):
            return f"`{name}` may write into a git directory, whose files can have git run other commands"
    return None


def unseen(commands: Sequence[Sequence[str]], *, in_order: bool) -> str | None:
    """Return why a line with git may prepare files for git: another command in it writes files that no word names; else None.

    `in_order`: the commands run one after the other, so that those behind the last git prepare nothing for it.
    """
    names = [words[0].lstrip(MARK).rpartition("/")[2] for words in commands]
    if "git" in names and in_order:
        names = names[: len(names) - names[::-1].index("git")]
    if "git" not in names or not (others := sorted({*names} - _READERS - _NAMERS)):
        return None
    return f"`{others[0]}` may write files that can have git run other commands; use git in a call of its own"


def mentioned(text: str) -> bool:
    """True if an uncertain command line names a git directory, or a file that configures git."""
    return _IN_TEXT.search(re.sub(r"[\\'\"]", "", text)) is not None


def _may_name(word: str, *, own: bool) -> bool:
    """True if the word may name such a path. `own`: the word belongs to git, for which `.gitattributes` and `x.git` are
    harmless."""
    text = word.lstrip(MARK)
    if word.startswith(MARK):
        text = _expanded(text)
    name = _plain_form(text)
    if own:
        return re.search(r"(^|[/=:])\.git(?=$|[/:])", name) is not None
    bare = None if "://" in name else re.search(r"\.git(?=$|[/:])|(^|[/=])head$", name)
    return bare is not None or _IN_TEXT.search(name) is not None


def _expanded(pattern: str) -> str:
    """Return a pattern of file names, with each part that may expand to `.git` replaced by it."""
    return "/".join(".git" if re.search(r"[*?[]", part) and _fits_git(part) else part for part in pattern.split("/"))


def _fits_git(part: str) -> bool:
    # Only a pattern with a leading dot matches a name with one. Brackets count as any character.
    loose = re.sub(r"\\\[.*?\\\]", ".", re.escape(part).replace(r"\*", ".*").replace(r"\?", "."))
    return part.startswith(".") and re.fullmatch(loose, ".git", re.IGNORECASE) is not None


def _plain_form(name: str) -> str:
    """Return a name in the form of file systems that ignore case, invisible characters and trailing dots."""
    visible = "".join(sign for sign in name if unicodedata.category(sign) != "Cf")
    return visible.casefold().rstrip(" .")
