"""Which paths belong to a git directory, or would make a folder one. Git runs programs that the files there name.

Names alone decide, since nobody here sees the files: what git looks for has fixed names (`.git`, `HEAD`, `config`, `hooks/`).
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from models.pure.shell.words import MARK

_FILES = frozenset(
    {
        # of a git directory: without HEAD no folder is one, and the others say where its programs are
        *("head", "config", "config.worktree", "commondir", "gitdir", "packed-refs"),
        # outside of it, read by git all the same
        *(".gitconfig", ".gitattributes", ".gitmodules"),
    }
)
_FOLDERS = frozenset({(".config", "git"), ("info", "attributes")})
_DIRECTORY = re.compile(r"git~\d+|.*\.git")
"""The folded name of a git directory, of a bare one by convention, or of either's short name on Windows' file systems."""
_IN_TEXT = re.compile(r"(?<![\w-])\.(?:git(?![\w-])|git(?:config|attributes|modules)\b)", re.IGNORECASE)
_READERS = frozenset(
    name
    for names in (
        "[ basename cat cmp cut date diff dirname du echo egrep fd fgrep file find grep head id jq ls md5sum nl printf pwd",
        "realpath readlink rg sha1sum sha256sum sort stat tail test tr tree true uname uniq wc which",
    )
    for name in names.split()
)
"""Commands that write no file by their words, but by options that are guarded elsewhere."""
_NAMERS = frozenset(
    {"awk", "cd", "cp", "false", "git", "ln", "mkdir", "mv", "popd", "pushd", "rm", "rmdir", "sed", "sleep", "touch"}
)
"""Commands that write no file that their words do not name, or that is not there under the same name."""


def is_git_path(path: str) -> bool:
    """True if a write to this path may change a git directory, or make one. Links are not followed."""
    names = [_folded(name) for name in re.split(r"[/\\]", path) if name not in {"", "."}]
    if any(_DIRECTORY.fullmatch(name) for name in names):
        return True
    if names and names[-1] in _FILES:
        return True
    pairs = list(pairwise(names))
    # Hooks have no file extension; components of React, in folders of that name, have one.
    return any(pair in _FOLDERS for pair in pairs) or any(pair[0] == "hooks" and "." not in pair[1] for pair in pairs[-1:])


def doubt(words: Sequence[str]) -> str | None:
    """Why a simple command may write into a git directory; None if it surely does not. `words` are marked as the reader does."""
    name = words[0].lstrip(MARK).rpartition("/")[2]
    if name in _READERS:
        return None
    own = name == "git"
    for word in words[1:]:
        if _may_name(word, own=own):
            return f"`{name}` may write into a git directory, whose files can have git run other commands"
    return None


def unseen(commands: Sequence[Sequence[str]]) -> str | None:
    """Why a line with git in it may prepare what git runs: it also has a command that writes files which nobody names."""
    names = {words[0].lstrip(MARK).rpartition("/")[2] for words in commands}
    if "git" not in names or not (others := sorted(names - _READERS - _NAMERS)):
        return None
    return f"`{others[0]}` may write files that can have git run other commands; use git in a call of its own"


def mentioned(text: str) -> bool:
    """True if a command line that cannot be read surely names a git directory, or a file that configures git."""
    return _IN_TEXT.search(re.sub(r"[\\'\"]", "", text)) is not None


def _may_name(word: str, *, own: bool) -> bool:
    """`own`: it is a word of git, which names files such as `.gitattributes` and URLs such as `x.git` without harm."""
    text = word.lstrip(MARK)
    if word.startswith(MARK):
        text = _expanded(text)
    folded = _folded(text)
    if own:
        return re.search(r"(^|[/=:])\.git(?=$|[/:])", folded) is not None
    bare = None if "://" in folded else re.search(r"\.git(?=$|[/:])|(^|[/=])head$", folded)
    return bare is not None or _IN_TEXT.search(folded) is not None


def _expanded(pattern: str) -> str:
    """A pattern of names of files, with each part that may stand for `.git` replaced by that."""
    return "/".join(".git" if re.search(r"[*?[]", part) and _fits_git(part) else part for part in pattern.split("/"))


def _fits_git(part: str) -> bool:
    # A name with a dot in front is only matched by a pattern with that dot. What is in brackets may be any character.
    loose = re.sub(r"\\\[.*?\\\]", ".", re.escape(part).replace(r"\*", ".*").replace(r"\?", "."))
    return part.startswith(".") and re.fullmatch(loose, ".git", re.IGNORECASE) is not None


def _folded(name: str) -> str:
    """A name as file systems that ignore case, invisible characters and trailing dots have it."""
    visible = "".join(sign for sign in name if unicodedata.category(sign) != "Cf")
    return visible.casefold().rstrip(" .")
