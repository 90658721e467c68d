"""Bash's builtins and reserved words, and the forms of builtins that are known to assign and evaluate nothing.

Every other form is uncertain: bash evaluates variable names in many places, and the name `a[$(cmd)]` runs `cmd`.
"""

import re
from collections.abc import Callable, Sequence

from models.pure.shell.words import MARK

Form = Callable[[Sequence[str]], bool]
"""True if a builtin with these arguments is known to be harmless."""


def _each(pattern: str) -> Form:
    expression = re.compile(pattern, re.DOTALL)
    return lambda args: all(expression.fullmatch(arg) for arg in args)


# Conversions that only print. `%n` assigns. `%*d` and `%(...)T` are left out as rare.
# Without possessive quantifiers: Python before 3.11.4 takes an alternative that fits in part for one that fits.
_FORMAT = re.compile(r"(?:[^%]|%%|%[-+ #0]*(?:[1-9]\d*)?(?:\.\d+)?[diouxXeEfFgGaAcsbq])*", re.DOTALL)


def _printf(args: Sequence[str]) -> bool:
    words = args[1:] if args[:1] == ["--"] else args
    return bool(words) and not words[0].startswith(("-", MARK)) and _FORMAT.fullmatch(words[0]) is not None


def _command(args: Sequence[str]) -> bool:
    """`command -v NAME` prints a command's path. All other forms run the command."""
    return args[:1] in (["-v"], ["-V"]) and not any(arg.startswith("-") for arg in args[1:])


_TEXT = r"|(?!-).*"
_JOB = r"%?\d+"
_FORMS: dict[str, Form] = {
    **dict.fromkeys([":", "true", "false", "echo"], _each(".*")),
    # These set PWD, OLDPWD and DIRSTACK, to absolute paths.
    "cd": _each("-|--|-[LPe]+" + _TEXT),
    "pushd": _each("(?![-+]).*"),
    "popd": _each("(?!)"),
    "dirs": _each("-[lpv]+"),
    "pwd": _each("-[LP]+"),
    "printf": _printf,
    "command": _command,
    # `-v` and `-R` look up a variable, and evaluate its index.
    "test": _each(r"-[a-uw-zGLNOS]|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef)|-\d*" + _TEXT),
    "type": _each("-[afptP]+" + _TEXT),
    "help": _each("-[dms]+" + _TEXT),
    # `wait -p` assigns, `jobs -x` runs a command.
    "wait": _each(f"-[nf]+|{_JOB}"),
    "jobs": _each(f"-[lnprs]+|{_JOB}"),
    "disown": _each(f"-[ahr]+|{_JOB}"),
    "bg": _each(_JOB),
    "fg": _each(_JOB),
    "kill": _each(f"-?[A-Za-z0-9]+|--|{_JOB}"),
    "times": _each("(?!)"),
    "umask": _each("-[pS]+|[0-7]{1,4}"),
    "ulimit": _each(r"-[A-Za-z]+|\d+|hard|soft|unlimited"),
    **dict.fromkeys(["exit", "return", "break", "continue"], _each(r"\d+")),
}
_NEVER = frozenset(
    name
    for names in (
        ". source eval exec builtin trap alias unalias shopt set enable hash export declare typeset local readonly unset let shift",
        "read mapfile readarray getopts bind complete compgen compopt fc history caller logout suspend [",
        # reserved words, in case the grammar reads one as a command's name
        "! [[ ]] { } case coproc do done elif else esac fi for function if in select then time until while",
    )
    for name in names.split()
)
NAMES = _NEVER | frozenset(_FORMS)
"""Every builtin and every reserved word of bash."""


def doubt(name: str, args: Sequence[str]) -> str | None:
    """Return why this builtin may assign or evaluate something; None if it certainly does not. Words that bash expands are
    marked."""
    form = _FORMS.get(name)
    return None if form and form(list(args)) else f"in this form the builtin `{name}` may set something or run commands"
