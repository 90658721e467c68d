"""Secrets that are recognised by their own form, anywhere in a text."""

from collections.abc import Callable
from typing import Any

from models.pure.masking.words import Span, TextBefore

Secrets = Callable[[bytes, Any, TextBefore], list[Span]]
"""Returns the secrets at one match in a text. Called for the matches of a pattern in order."""


def _any(_text: bytes, match: Any, _before: TextBefore) -> list[Span]:
    """The first group of the match, or the whole match."""
    return [match.span(match.re.groups and 1)]


def _with_digit(text: bytes, match: Any, before: TextBefore) -> list[Span]:
    [(start, end)] = _any(text, match, before)
    return [(start, end)] if any(digit in text[start:end] for digit in b"0123456789") else []


def _no_variable(_text: bytes, match: Any, _before: TextBefore) -> list[Span]:
    variable = match[1].startswith((b"$", b"{", b"%s")) or b"$(" in match[1] or b"${" in match[1]
    return [] if variable else [match.span(1)]


_BEGIN = "-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
_BASE64 = "[A-Za-z0-9+/=]"
_KEY_LINE = rf"(?:{_BASE64}{{16,}}|[a-z/]*[A-Z0-9+=]{_BASE64}*|[A-Za-z-]+: [\w,.@-]+)"
_BREAK = r"(?:[ \t\r]*\n[ \t]*|(?:\\[nr])+)"
_KEY_LINES = rf"((?:{_BREAK}+{_KEY_LINE})+)(?:[\r\n\\\"']|\z)"
_USERINFO = "[^\\s/\"'`;|&<>()]+"

_PREFIXES = {
    # Kebab-case words may begin like the first prefix, so each match needs a digit.
    "Anthropic, OpenAI and our own API keys": r"sk-[A-Za-z0-9_-]{16,}",
    "Stripe": r"[sr]k_(?:live|test)_[A-Za-z0-9]{10,}",
    "Standard Webhooks": r"whsec_[A-Za-z0-9+/=_-]{16,}",
    "AWS access keys": r"A(?:KI|SI)A[A-Z0-9]{16}\b",
    "GitHub": r"(?:gh[pousr]|github_pat)_[A-Za-z0-9_]{20,}",
    "GitLab": r"glpat-[A-Za-z0-9_.-]{16,}",
    "Slack": r"(?:xox[a-z][-.]|xapp-)[A-Za-z0-9%.-]{10,}",
    "Google": r"AIza[A-Za-z0-9_-]{30,}|(?:ya29\.|GOCSPX-)[A-Za-z0-9_-]{16,}",
    "npm, PyPI, Hugging Face, DigitalOcean, Groq, xAI": r"(?:npm_|pypi-|hf_|dop_v1_|gsk_|xai-)[A-Za-z0-9_-]{24,}",
}
"""Each matches or fails after a bounded number of characters, so that their combination is linear as well."""

SHAPES: tuple[tuple[str, Secrets], ...] = (
    (rf"\b(?:{'|'.join(_PREFIXES.values())})", _with_digit),
    (r"\beyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){2,4}", _any),  # JWT
    (r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}", _with_digit),  # SendGrid
    (r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/]+)", _any),
    (r"(?i)\b(?:bearer|basic)[ \t]+([a-z0-9._~+/=-]{12,})", _with_digit),
    # Only whole lines of base64 and headers, so that a command of a script is never taken for a line of the key.
    (_BEGIN + _KEY_LINES, _any),
    (rf"{_BEGIN}((?: {_BASE64}{{40,}})+)", _any),
    (rf"://[^\s/:@\"'`;|&<>()]*:({_USERINFO})@", _no_variable),
    (r"://([A-Za-z0-9_-]{20,})@", _with_digit),
    (r"(?i)[?&](?:sig|signature|x-amz-signature)=([a-z0-9%+/=_-]{16,})", _any),
)
