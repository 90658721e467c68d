"""Git's command line: the options before the subcommand, and what each subcommand may start."""

from collections.abc import Sequence

from models.pure.shell.words import MARK, may_begin


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


WITHOUT_EFFECT = frozenset({"--no-pager", "-P"})
"""Options before the subcommand that change only how the output is shown. A command is read as if it did not have them."""
_WITH_VALUE = _set(
    """
    -C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source --shallow-file
    """
)
"""Options before the subcommand whose value may be the next word."""

STAYS = _set(
    """
    add am annotate apply blame branch cat-file check-attr check-ignore check-mailmap check-ref-format checkout checkout-index
    cherry cherry-pick clean column commit commit-graph commit-tree count-objects describe diff diff-files diff-index diff-tree
    fast-export fmt-merge-msg for-each-ref format-patch fsck gc get-tar-commit-id grep hash-object index-pack init
    interpret-trailers log ls-files ls-tree mailinfo mailsplit merge merge-base merge-file merge-tree mktag mktree
    multi-pack-index mv name-rev notes pack-objects pack-redundant pack-refs patch-id prune prune-packed range-diff read-tree
    rebase reflog repack replace rerere reset restore rev-list rev-parse revert rm shortlog show show-branch show-index show-ref
    sparse-checkout stash status stripspace switch symbolic-ref tag unpack-file unpack-objects update-index update-ref var
    verify-commit verify-pack verify-tag version whatchanged worktree write-tree
    """
)
"""Subcommands that start no git in another repository, with no hooks and settings but those of their own repository."""
_REACHES = _set(
    """
    archive bundle clone fetch fetch-pack ls-remote pull push remote send-pack
    """
)
"""Subcommands that may start git in another repository, whose hooks and settings then count."""
_SHORT = {
    "rebase": "xi", "clone": "cu", "ls-remote": "u", "fetch": "u", "archive": "o", "format-patch": "o",
}  # fmt: skip
"""Letters of options, by subcommand, that run a program or write to a named file."""


def is_git(words: Sequence[str]) -> bool:
    """True if the command's program is git, in any folder."""
    return words[:1] != () and words[0].lstrip(MARK).rpartition("/")[2] == "git"


def plain(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command without git's options that have no effect on what it does. Every other command is returned unchanged."""
    at = 1
    while is_git(words) and words[at : at + 1] and words[at] in WITHOUT_EFFECT:
        at += 1
    return words if at == 1 else words[:1] + words[at:]


def without_options(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command of git without any option before its subcommand, for rules that deny or ask.

    An option that is not listed here counts as one without a value: another version of git may know the option.
    """
    at = 1
    while is_git(words) and words[at : at + 1] and words[at].startswith("-"):
        at += 2 if words[at] in _WITH_VALUE else 1
    return words if at == 1 else words[:1] + words[at:]


def stays(words: Sequence[str]) -> bool:
    """True if a certain command of git is known to start no git in another repository."""
    return len(words) < 2 or words[1] in STAYS or words[1].startswith("--")


def doubt(args: Sequence[str]) -> str | None:
    """Return why git with these words, which have no option without effect, may run or write something that they do not name."""
    if not args or list(args) in (["--version"], ["--help"]):
        return None
    if args[0].startswith("-"):
        return f"git's option `{args[0]}` may run other commands"
    if args[0] not in STAYS | _REACHES:
        return f"`git {args[0].lstrip(MARK)}` is not known to run nothing but git"
    letters = _SHORT.get(args[0], "")
    options = any(arg.startswith("-") and not arg.startswith("--") and any(sign in arg for sign in letters) for arg in args[1:])
    if options or any(may_begin(arg, transport) for arg in args for transport in ("ext::", "fd::")):
        return f"these options of `git {args[0]}` run other commands, or write files"
    return None
