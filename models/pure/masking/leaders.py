"""Secrets that the text before them reveals: `password=`, `--token`, `Authorization: Bearer`, `mysql -p`."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from models.pure.masking.names import KEYS, is_secret
from models.pure.masking.shapes import Span
from models.pure.masking.words import Left, secret_at
from models.pure.regex import compile_re2

_HEAD = "pass|kennwort|pwd|secret|token|auth|cookie|cred|jwt|otp|bearer|(?:mfa|backup|recovery|verification)[_-]?code"
_HEAD += f"|(?:seed|recovery)[_-]?phrase|(?:{'|'.join(sorted(KEYS))})[_-]?key"
_NAME = rf"([a-z0-9_-]*(?:{_HEAD})[a-z0-9_-]*)"
_SIGN = r"(\\?[\"']?\]?[ \t]*(?:=>|:=|==?|:)[ \t]*)"

_CODE = re.compile(rb"(?:self|this|cls|os|process|env|environ|config|settings|args|opts|options|params|request|req|ctx|app)\.\w")
_INDEXED = re.compile(rb"[A-Za-z_][\w.]*\[")
_VARIABLE = re.compile(rb"[a-z_.]+")
_NUMBER = re.compile(rb"0x[0-9a-fA-F]+|[0-9]{1,3}")
_TELLING = re.compile(rb"[0-9]|[^\w.]")
_NOTHING = frozenset(b"none null nil true false undefined".split())
_SCHEMES = frozenset(b"bearer basic digest negotiate token".split())
_TYPES = frozenset(b"str string int integer number bool boolean bytes float any object optional required secretstr".split())


def _next_word(text: bytes, match: Any, left: Left) -> Span | None:
    return secret_at(text, match.end(), left)


def _after_flag(text: bytes, match: Any, left: Left) -> Span | None:
    """`--password hunter2`: the name must name a secret, and the next word must not be a flag."""
    if text[match.end() : match.end() + 1] == b"-" or not is_secret(match[1].decode()):
        return None
    return secret_at(text, match.end(), left)


def _assigned(text: bytes, match: Any, left: Left) -> Span | None:
    """`password=hunter2`, `"password": "hunter2"`, `password: hunter2`. Excludes code that handles passwords."""
    name, sign = match[1].decode(), match[2]
    last = name.lower()
    if last.endswith("authorization") or (last.endswith("cookie") and b":" in sign):
        return None  # `_in_header` and `Cookies` handle these
    secret = secret_at(text, match.end(), left)
    if secret is None or not is_secret(name, text[secret[0] : secret[1]].decode(errors="replace")):
        return None
    if text[match.end() : match.end() + 1] in {b'"', b"'", b"\\"}:
        return secret
    return _unquoted(text, match, secret)


def _in_header(text: bytes, match: Any, left: Left) -> Span | None:
    """`Authorization: Bearer abc`: the word after the scheme."""
    secret = secret_at(text, match.end(), left)
    if secret is None or text[secret[1] : secret[1] + 1] == b"(":
        return None
    value = text[slice(*secret)]
    return None if value.lower() in _SCHEMES or _CODE.match(value) else secret


@dataclass(frozen=True)
class Leader:
    """A text before a secret. The secret begins where the match ends."""

    pattern: Any
    secret: Callable[[bytes, Any, Left], Span | None] = _next_word
    """The secret behind one match."""

    def spans(self, text: bytes) -> Iterator[Span | None]:
        """Yield the span of each secret, and None for each match without one."""
        left = Left(text)
        for match in self.pattern.finditer(text):
            yield self.secret(text, match, left)


class Cookies(Leader):
    """`Cookie: a=b; c=d`: each value."""

    def spans(self, text: bytes) -> Iterator[Span | None]:
        """Yield the span of each value."""
        for match in self.pattern.finditer(text):
            at = match.end()
            while pair := _COOKIE.match(text, at):
                yield pair.span(1)
                at = pair.end()
            yield None


_COOKIE = compile_re2("[^\\s=;|&<>()\"'`\\\\]+=([^\\s;|&<>()\"'`\\\\$]+)(?:;[ \\t]*)?")


def _unquoted(text: bytes, match: Any, secret: Span) -> Span | None:
    """Return the span of an unquoted value. Directly after `=` nearly every value counts as a secret, else only one unlike code."""
    start, end = secret
    sign, following = match[2], text[end : end + 1]
    value = text[start:end].rstrip(b"," if sign == b"=" else b",]}")
    in_code = following in {b"(", b")"} or (len(value) < end - start and not sign.startswith(b'"'))
    if not value or value.lower() in _NOTHING or _CODE.match(value) or following == b"(":
        return None
    if in_code and (_VARIABLE.fullmatch(value) or _INDEXED.match(value)):
        return None
    if sign != b"=" and not _tells(text, match, value, following):
        return None
    return start, start + len(value)


def _tells(text: bytes, match: Any, value: bytes, following: bytes) -> bool:
    """True if a value after ` = ` or `: ` is not the name of a type or variable: it has a digit or sign, or is a line of YAML."""
    if value.lower() in _TYPES or _INDEXED.match(value) or _NUMBER.fullmatch(value):
        return False
    if _TELLING.search(value):
        return True
    return b":" in match[2] and following in {b"", b"\n", b"\r"} and _begins_line(text, match.start())


def _begins_line(text: bytes, at: int) -> bool:
    nearest = max(0, at - 80)
    line = text.rfind(b"\n", nearest, at) + 1
    return (line > 0 or nearest == 0) and text[line:at].strip(b" \t-") == b""


def _command(commands: str, flags: str, *, within: str = r"[^\n|;&\\]") -> Leader:
    return Leader(compile_re2(rf"\b(?:{commands})\b(?:{within}|\\(?s:.))*?\s{flags}"))


_CALLS = r"authorization\\?[\"']?\]?[ \t]*(?:=>|:=|=|:)[ \t]*(?:[bfru]?\\?[\"'])?(?:[a-z][a-z0-9-]*[ \t]+)?"

NAMES = (
    Leader(compile_re2(f"(?i){_NAME}{_SIGN}"), _assigned),
    Leader(compile_re2(rf"(?i)(?:^|[\s\"'])-{_NAME}[ \t]+"), _after_flag),
    Leader(compile_re2(rf"(?i)\bconfig(?:ure)?[ \t]+set[ \t]+(?:-[a-z-]+[ \t]+)*[^\s=\"']*?\b{_NAME}[ \t]+"), _after_flag),
    Leader(compile_re2(f"(?i){_CALLS}"), _in_header),
    Cookies(compile_re2(r"(?i)cookie\\?[\"']?[ \t]*:[ \t]*(?:\\?[\"'])?")),
    Leader(compile_re2(r"\s-?-(?:pass|passin|passout)[ \t]+(?:\\?[\"'])?pass:")),  # openssl
    Leader(compile_re2(r"\blogin\s+\S+\s+password[ \t]+")),  # netrc
    Leader(compile_re2(r"(?i)\b(?:identified[ \t]+by|password)[ \t]+'")),  # SQL
)
NAMES_HINT = rf"(?i:(?:{_HEAD})[a-z0-9_-]*\\?[\"']?\]?[ \t]*[=:]|-[a-z0-9_-]*(?:{_HEAD})[a-z0-9_-]*[ \t]|"
NAMES_HINT += rf"\bset[ \t].*(?:{_HEAD})|password[ \t]|identified[ \t]+by)"
"""Matches every text in which a name may precede a secret. Cheaper than the patterns above."""

COMMANDS = (
    _command("(?:mysql|mariadb)(?:[a-z]+|-[a-z]+)?", "-p"),
    _command("sshpass", r"-p[ \t]*"),
    _command("login", r"-p[ \t]+"),
    _command("redis-cli", r"-a[ \t]+"),
    _command("curl", r"(?:-[a-zA-Z]*u|--user|--proxy-user|-U)[\s=]*(?:\\?[\"'])?[^\s:\"'$]*:", within=r"[^\n|\\]"),
    _command("smb[a-z]+|rpcclient", r"-U[ \t]*(?:\\?[\"'])?[^\s%\"']*%"),
    _command("ldap[a-z]+", r"-w[ \t]+"),
    _command("zip|unzip", r"-P[ \t]*"),
    _command("7z|7za|7zr", "-p"),
)
COMMANDS_HINT = r"\b(?:mysql|mariadb|sshpass|login|redis-cli|curl|smb|rpcclient|ldap|zip|unzip|7z)[a-z-]*"
COMMANDS_HINT += r"(?:[^\n\\]|\\(?s:.))*\s-[a-zA-Z-]*[pPauUw]"
"""Matches every text with such a command and its flag. Cheaper than the patterns above."""
