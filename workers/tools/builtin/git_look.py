"""Whether git could run a program that some repository in a session's files names.

Known tools and commands that write such files are asked. Others write whatever they like (`tar xf`, a script, `git clone`), so a
worker looks at the files themselves right before git runs. Only settings that are known to run nothing pass.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from models.pure.shell import read
from models.settings import settings
from workers.tools.sandbox.git import OVERRIDDEN

_BYTES = 200_000
"""A longer configuration is not read."""
_SECTION = re.compile(r'\[([A-Za-z0-9-]+)(?: "([^"\\\x00-\x1f]*)")?\]')
_SETTING = re.compile(r"([A-Za-z][A-Za-z0-9-]*)(?:\s*=.*[^\\]|\s*=)?")
"""A line with a value that does not go on in the next line."""
_HARMLESS = re.compile(
    r"advice\..*|author\.(name|email)|branch\..*|color\..*|column\..*|committer\.(name|email)|feature\..*|index\..*|pack\..*"
    r"|core\.(abbrev|autocrlf|bare|checkstat|commentchar|compression|eol|filemode|ignorecase|logallrefupdates|longpaths)"
    r"|core\.(precomposeunicode|preloadindex|protecthfs|protectntfs|quotepath|repositoryformatversion|safecrlf)"
    r"|core\.(sharedrepository|sparsecheckout|sparsecheckoutcone|symlinks|trustctime|untrackedcache|whitespace|worktree)"
    r"|diff\.(algorithm|colormoved|context|ignoresubmodules|mnemonicprefix|noprefix|renames|submodule)"
    r"|extensions\.(objectformat|partialclone|refstorage|worktreeconfig)|fetch\.(output|parallel|prune|prunetags)"
    r"|gc\.(auto|autodetach|pruneexpire)|http\..*\.extraheader|init\.defaultbranch|lfs\.repositoryformatversion"
    r"|log\.(abbrevcommit|date|decorate|follow)|merge\.(conflictstyle|ff|log|renames)|pull\.(ff|rebase)"
    r"|push\.(autosetupremote|default|followtags)|rebase\.(autosquash|autostash|updaterefs)|rerere\..*|status\..*"
    r"|remote\..*\.(fetch|gh-resolved|mirror|partialclonefilter|promisor|prune|push|pushurl|skipdefaultupdate|tagopt|url)"
    r"|submodule\.(active|recurse)|submodule\..*\.(active|branch|fetchrecursesubmodules|ignore|path|url)"
    r"|user\.(name|email|signingkey|useconfigonly)"
)
"""Settings that name no program and no further file of settings, in small letters."""
_OVERRIDDEN = frozenset(key.lower() for key in OVERRIDDEN)


def may_run_programs(files: Path, command: str) -> bool:
    """True if the command line runs git, and what a repository in the files says could make git run a program."""
    line = read(command)
    if line.doubt or not line.runs("git"):
        return False
    # Git drops our settings where it starts itself in another local repository to push there.
    overridden = _OVERRIDDEN if not any("push" in words for words in line.commands) else frozenset[str]()
    try:
        return not all(_is_harmless(folder, overridden) for folder in _directories(files))
    except _Unseen:
        return True


class _Unseen(Exception):
    """Something cannot be looked at."""


def _directories(files: Path) -> Iterator[Path]:
    """The git directories that a command in some folder of the files would find. Errors: _Unseen."""
    left = settings().workdir_files
    for at, folders, others in os.walk(files, onerror=_cannot_see):
        left -= len(folders) + len(others)
        if left < 0:
            raise _Unseen
        for name in [name for name in (*folders, *others) if name.casefold() == ".git"]:
            place = Path(at, name)
            if place.is_symlink():
                raise _Unseen
            if name in others:
                yield _linked(files, place)
            else:
                folders.remove(name)  # objects need no look
                yield place
                yield from _modules(place / "modules")


def _modules(folder: Path) -> Iterator[Path]:
    """The git directories of submodules, which may lie in folders of folders."""
    for at, folders, others in os.walk(folder):
        if any(name.casefold() == "head" for name in others):
            yield Path(at)
            folders[:] = [name for name in folders if name.casefold() == "modules"]


def _linked(files: Path, place: Path) -> Path:
    """Where a `.git` file leads: to a place within the files."""
    found = re.fullmatch(r"gitdir: ([^\x00\n]+)\n?", _text(place))
    if not found:
        raise _Unseen
    target = (place.parent / found[1]).resolve()
    if not target.is_relative_to(files.resolve()):
        raise _Unseen
    return target


def _is_harmless(folder: Path, overridden: frozenset[str]) -> bool:
    shared = folder / "commondir"
    if os.path.lexists(shared):
        # A worktree's: its configuration is the one two folders above, of a directory that is looked at by itself.
        if _text(shared) != "../..\n" or folder.parent.name != "worktrees":
            return False
        if not _is_harmless(folder.parent.parent, overridden):
            return False
    texts = [_text(folder / name) for name in ("config", "config.worktree") if os.path.lexists(folder / name)]
    return all(_says_nothing(text, overridden) for text in texts)


def _says_nothing(text: str, overridden: frozenset[str]) -> bool:
    """True if every line is plain, and its setting harmless or overridden."""
    section = ""
    for line in (raw.strip() for raw in text.split("\n")):
        if not line or line[0] in "#;":
            continue
        if found := _SECTION.fullmatch(line):
            section = f"{found[1]}.{found[2]}" if found[2] is not None else found[1]
            continue
        found = _SETTING.fullmatch(line)
        key = f"{section}.{found[1]}".lower() if found else ""
        if not section or not (_HARMLESS.fullmatch(key) or key in overridden):
            return False
    return True


def _text(place: Path) -> str:
    """A file's text. Errors: _Unseen if it is no plain, short file of UTF-8."""
    try:
        if place.is_symlink() or not place.is_file() or place.stat().st_size > _BYTES:
            raise _Unseen
        return place.read_text()
    except (OSError, UnicodeDecodeError):
        raise _Unseen from None


def _cannot_see(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise _Unseen
