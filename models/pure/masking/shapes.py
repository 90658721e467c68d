"""Secrets that are recognised by their own form, anywhere in a text."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from models.pure.regex import compile_re2

Span = tuple[int, int]


@dataclass(frozen=True)
class Shape:
    """One kind of secret. The first group of the match is masked, or the whole match."""

    name: str
    pattern: Any
    accepts: Callable[[bytes], bool] = bool
    """True if the match is a secret."""

    def spans(self, text: bytes) -> Iterator[Span | None]:
        """Yield the span of each secret, and None for each match that is not a secret."""
        for match in self.pattern.finditer(text):
            start, end = match.span(1) if self.pattern.groups else match.span()
            yield (start, end) if self.accepts(text[start:end]) else None


def _has_digit(secret: bytes) -> bool:
    return any(digit in secret for digit in b"0123456789")


def _is_no_variable(secret: bytes) -> bool:
    return not secret.startswith(b"$") and b"$(" not in secret and b"${" not in secret and not secret.startswith((b"{", b"%s"))


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

SHAPES = (
    Shape("known prefix", compile_re2(rf"\b(?:{'|'.join(_PREFIXES.values())})"), _has_digit),
    Shape("JWT", compile_re2(r"\beyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){2,4}")),
    Shape("SendGrid key", compile_re2(r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"), _has_digit),
    Shape("Slack webhook", compile_re2(r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/]+)")),
    Shape("bearer token", compile_re2(r"(?i)\b(?:bearer|basic)[ \t]+([a-z0-9._~+/=-]{12,})"), _has_digit),
    # Only whole lines of base64 and headers, so that a command of a script is never taken for a line of the key.
    Shape("private key", compile_re2(_BEGIN + _KEY_LINES)),
    Shape("private key in one line", compile_re2(rf"{_BEGIN}((?: {_BASE64}{{40,}})+)")),
    Shape("password in a URL", compile_re2(rf"://[^\s/:@\"'`;|&<>()]*:({_USERINFO})@"), _is_no_variable),
    Shape("token in a URL", compile_re2(r"://([A-Za-z0-9_-]{20,})@"), _has_digit),
    Shape("signature in a URL", compile_re2(r"(?i)[?&](?:sig|signature|x-amz-signature)=([a-z0-9%+/=_-]{16,})")),
)
SHAPES_HINT = (
    r"\b(?:[sr]k[-_]|whsec_|AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox[a-z][-.]|xapp-|AIza|ya29\.|GOCSPX-|npm_|pypi-|hf_|dop_v1_|gsk_)"
    r"[A-Za-z0-9]|\bxai-|\bSG\.|\beyJ[A-Za-z0-9_-]*\.|hooks\.slack\.com/|PRIVATE KEY|://[^\s/]*@"
    r"|(?i:(?:bearer|basic)[ \t]|sig=|signature=)"
)
"""Matches every text that may hold such a secret. Cheaper than the shapes."""
