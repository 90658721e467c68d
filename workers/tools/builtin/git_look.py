"""Checks whether git could run a program that a repository in a session's files names.

Policies ask about known tools and commands that write such files. Other programs can write any file (`tar xf`, a script, `git
clone`), so a worker checks the files right before git runs. Only settings that are known to run no program pass.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from models.pure.shell import git_commands, read
from models.settings import settings
from workers.tools.sandbox.git import OVERRIDDEN

_BYTES = 200_000
"""A longer configuration is not read."""
_SECTION = re.compile(r'\[([A-Za-z0-9-]+)(?: "([^"\\\x00-\x1f]*)")?\]')
_SETTING = re.compile(r"([A-Za-z][A-Za-z0-9-]*)(?:\s*=.*[^\\]|\s*=)?")
"""A line whose value does not continue in the next line."""
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
"""Settings that name no program and no other file of settings, in lower case."""
_OVERRIDDEN = frozenset(key.lower() for key in OVERRIDDEN)


def may_run_programs(files: Path, command: str) -> bool:
    """True if the command line runs git, and a repository's configuration in the files could make git run a program."""
    line = read(command)
    if line.doubt or not line.runs("git"):
        return False
    # Git drops the overriding settings when it starts itself in another local repository, which may be a bare one.
    stays = all(git_commands.stays(words) for words in line.commands if git_commands.is_git(words))
    overridden = _OVERRIDDEN if stays else frozenset[str]()
    try:
        return not all(_is_harmless(folder, overridden) for folder in _directories(files, bare=not stays))
    except _Unreadable:
        return True


class _Unreadable(Exception):
    """A file or folder cannot be checked."""


def _directories(files: Path, *, bare: bool) -> Iterator[Path]:
    """Yield the git directories that a command in any folder of the files would use. Raises _Unreadable.

    `bare`: also the folders that are git directories by their files alone, at any place.
    """
    room = settings().workdir_files
    for at, folders, others in os.walk(files, onerror=_raise_unreadable):
        room -= len(folders) + len(others)
        if room < 0:
            raise _Unreadable
        if bare and _has_head(others):
            yield Path(at)
        for name in [name for name in (*folders, *others) if name.casefold() == ".git"]:
            place = Path(at, name)
            if place.is_symlink():
                raise _Unreadable
            if name in others:
                yield _linked(files, place)
            else:
                if not bare:
                    folders.remove(name)  # objects need no check
                yield place
                yield from _modules(place / "modules")


def _modules(folder: Path) -> Iterator[Path]:
    """Yield the git directories of submodules, at any depth."""
    for at, folders, others in os.walk(folder):
        if _has_head(others):
            yield Path(at)
            folders[:] = [name for name in folders if name.casefold() == "modules"]


def _has_head(names: list[str]) -> bool:
    """True if a folder with files of these names may be a git directory."""
    return any(name.casefold() == "head" for name in names)


def _linked(files: Path, place: Path) -> Path:
    """Return the target of a `.git` file, inside the files. Raises _Unreadable."""
    link = re.fullmatch(r"gitdir: ([^\x00\n]+)\n?", _text(place))
    if not link:
        raise _Unreadable
    target = (place.parent / link[1]).resolve()
    if not target.is_relative_to(files.resolve()):
        raise _Unreadable
    return target


def _is_harmless(folder: Path, overridden: frozenset[str]) -> bool:
    shared = folder / "commondir"
    if os.path.lexists(shared):
        # A worktree uses the configuration two folders above.
        if _text(shared) != "../..\n" or folder.parent.name != "worktrees":
            return False
        if not _is_harmless(folder.parent.parent, overridden):
            return False
    texts = [_text(folder / name) for name in ("config", "config.worktree") if os.path.lexists(folder / name)]
    return all(_is_harmless_text(text, overridden) for text in texts)


def _is_harmless_text(text: str, overridden: frozenset[str]) -> bool:
    """True if every line is plain and its setting harmless or overridden."""
    section = ""
    for line in (raw.strip() for raw in text.split("\n")):
        if not line or line[0] in "#;":
            continue
        if header := _SECTION.fullmatch(line):
            section = f"{header[1]}.{header[2]}" if header[2] is not None else header[1]
            continue
        setting = _SETTING.fullmatch(line)
        key = f"{section}.{setting[1]}".lower() if setting else ""
        if not section or not (_HARMLESS.fullmatch(key) or key in overridden):
            return False
    return True


def _text(place: Path) -> str:
    """Return a file's text. Raises _Unreadable unless it is a regular, short file in UTF-8."""
    try:
        if place.is_symlink() or not place.is_file() or place.stat().st_size > _BYTES:
            raise _Unreadable
        return place.read_text()
    except (OSError, UnicodeDecodeError):
        raise _Unreadable from None


def _raise_unreadable(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise _Unreadable
