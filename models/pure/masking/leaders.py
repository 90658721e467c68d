"""Secrets that the text before them reveals: `password=`, `--token`, `Authorization: Bearer`, `mysql -p`."""

import re
from typing import Any

from models.pure.masking.names import KEYS, is_secret
from models.pure.masking.shapes import Secrets
from models.pure.masking.words import Span, TextBefore, secret_at
from models.pure.regex import compile_re2

_HEAD = "pass|kennwort|pwd|secret|token|auth|cookie|cred|jwt|otp|bearer|(?:mfa|backup|recovery|verification)[_-]?code"
_HEAD += f"|(?:seed|recovery)[_-]?phrase|(?:{'|'.join(sorted(KEYS))})[_-]?key"
_NAME = rf"([a-z0-9_-]*(?:{_HEAD})[a-z0-9_-]*)"
_SIGN = r"(\\?[\"']?\]?[ \t]*(?:=>|:=|==?|:)[ \t]*)"

_CODE = re.compile(rb"(?:self|this|cls|os|process|env|environ|config|settings|args|opts|options|params|request|req|ctx|app)\.\w")
_INDEXED = re.compile(rb"[A-Za-z_][\w.]*\[")
_VARIABLE = re.compile(rb"[a-z_.]+")
_TELLING = re.compile(rb"[0-9]|[^\w.]")
_NOTHING = frozenset(b"none null nil true false undefined".split())
_SCHEMES = frozenset(b"bearer basic digest negotiate token".split())
_LONGEST_NAME = 16
"""Bytes of the longest of these names, so that longer values are not copied."""
_TYPES = frozenset(b"str string int integer number bool boolean bytes float any object optional required secretstr".split())
_CLOSING = 100
"""Most signs at the end of a value that may close what is around it."""
_COOKIE = compile_re2("[^\\s=;|&<>()\"'`\\\\]+=([^\\s;|&<>()\"'`\\\\$]+)(?:;[ \\t]*)?")


def _next_word(text: bytes, match: Any, before: TextBefore) -> list[Span]:
    return secret_at(text, match.end(), before)


def _after_flag(text: bytes, match: Any, before: TextBefore) -> list[Span]:
    """`--password hunter2`: the name must name a secret, and the next word must not be a flag."""
    if text[match.end() : match.end() + 1] == b"-" or not is_secret(match[1].decode()):
        return []
    return secret_at(text, match.end(), before)


def _in_header(text: bytes, match: Any, before: TextBefore) -> list[Span]:
    """`Authorization: Bearer abc`: the word after the scheme."""
    return [
        (start, end)
        for start, end in secret_at(text, match.end(), before)
        if text[end : end + 1] != b"(" and _name(text, start, end) not in _SCHEMES and not _CODE.match(text, start, end)
    ]


def _cookies(text: bytes, match: Any, before: TextBefore) -> list[Span]:
    """`Cookie: a=b; c=d`: each value. Within the pairs of an earlier match they are known."""
    spans, at = [], match.end()
    if at < before.pairs_end:
        return []
    while pair := _COOKIE.match(text, at):
        spans.append(pair.span(1))
        at = before.pairs_end = pair.end()
    return spans


def _assigned(text: bytes, match: Any, before: TextBefore) -> list[Span]:
    """`password=hunter2`, `"password": "hunter2"`, `password: hunter2`. Excludes code that handles passwords."""
    name, sign = match[1].decode(), match[2]
    if name.lower().endswith("authorization") or (name.lower().endswith("cookie") and b":" in sign):
        return []  # `_in_header` and `_cookies` handle these
    secrets = secret_at(text, match.end(), before)
    if not secrets or not is_secret(name, text[secrets[0][0] : secrets[0][0] + 1].decode(errors="replace")):
        return []
    if text[match.end() : match.end() + 1] in {b'"', b"'", b"\\"}:
        return secrets
    return _unquoted(text, sign, *secrets[0])


def _unquoted(text: bytes, sign: bytes, start: int, end: int) -> list[Span]:
    """Return the span of an unquoted value. Directly after `=` nearly every value counts as a secret, else only one unlike code."""
    following, whole = text[end : end + 1], end
    end = _without(b"," if sign == b"=" else b",]}", text, start, end)
    in_code = following in {b"(", b")"} or (end < whole and not sign.startswith(b'"'))
    if start == end or _name(text, start, end) in _NOTHING or _CODE.match(text, start, end) or following == b"(":
        return []
    if in_code and (_VARIABLE.fullmatch(text, start, end) or _INDEXED.match(text, start, end)):
        return []
    if sign != b"=":
        is_line_of_yaml = sign.lstrip().startswith(b":") and following in {b"", b"\n", b"\r"}
        is_name = not is_line_of_yaml and not _TELLING.search(text, start, end)
        if is_name or _name(text, start, end) in _TYPES or _INDEXED.match(text, start, end):
            return []
    return [(start, end)]


def _without(signs: bytes, text: bytes, start: int, end: int) -> int:
    """Return the end of a value without the few signs that may close what is around it."""
    least = max(start, end - _CLOSING)
    while end > least and text[end - 1] in signs:
        end -= 1
    return end


def _name(text: bytes, start: int, end: int) -> bytes:
    """Return a short value in lower case; nothing for a long one."""
    return text[start:end].lower() if end - start <= _LONGEST_NAME else b""


_CALLS = r"authorization\\?[\"']?\]?[ \t]*(?:=>|:=|=|:)[ \t]*(?:[bfru]?\\?[\"'])?(?:[a-z][a-z0-9-]*[ \t]+)?"

NAMES: tuple[tuple[str, Secrets], ...] = (
    (f"(?i){_NAME}{_SIGN}", _assigned),
    (rf"(?i)(?:^|[\s\"'])-{_NAME}[ \t]+", _after_flag),
    (rf"(?i)\bconfig(?:ure)?[ \t]+set[ \t]+(?:-[a-z-]+[ \t]+)*[^\s=\"']*?\b{_NAME}[ \t]+", _after_flag),
    (f"(?i){_CALLS}", _in_header),
    (r"(?i)cookie\\?[\"']?[ \t]*:[ \t]*(?:\\?[\"'])?", _cookies),
    (r"\s-?-(?:pass|passin|passout)[ \t]+(?:\\?[\"'])?pass:", _next_word),  # openssl
    (r"\blogin\s+\S+\s+password[ \t]+", _next_word),  # netrc
    (r"(?i)\b(?:identified[ \t]+by|password)[ \t]+'", _next_word),  # SQL
)


def _command(commands: str, flags: str, *, within: str = r"[^\n|;&\\]") -> tuple[str, Secrets]:
    return rf"\b(?:{commands})\b(?:{within}|\\(?s:.))*?\s{flags}", _next_word


COMMANDS: tuple[tuple[str, Secrets], ...] = (
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
