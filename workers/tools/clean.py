"""Makes results safe to store and to show: no NUL, nothing invisible, nothing longer than the setting."""

import re
from typing import Any

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but \t and \n
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # marks that turn or break lines of text
    "\ud800-\udfff"  # half characters, which UTF-8 and Postgres refuse
    "\U000e0000-\U000e007f]"  # tags: text that only a model sees
)
_BLOCKS = 100
_NOTE_BYTES = 64


def decode(data: bytes) -> str:
    """UTF-8 to text; each invalid byte becomes U+FFFD."""
    return data.decode("utf-8", errors="replace")


def visible(text: str) -> str:
    r"""The text with what would not be seen written out (`\x1b`, `\u202e`). `\r\n` becomes `\n`."""
    return _UNSEEN.sub(_spell, text.replace("\r\n", "\n"))


def _spell(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def first(text: str, size: int) -> str:
    """The longest beginning of at most `size` bytes of UTF-8 that cuts no character."""
    return text.encode()[: max(size, 0)].decode(errors="ignore")


def last(text: str, size: int) -> str:
    """The longest end of at most `size` bytes of UTF-8 that cuts no character."""
    return text.encode()[-size:].decode(errors="ignore") if size > 0 else ""


def join_ends(head: str, tail: str, total: int, limit: int) -> str:
    """Head and tail of a text of `total` bytes in at most `limit` bytes, with a line between that counts the rest."""
    room = max(limit - _NOTE_BYTES, 0)
    head, tail = first(head, room - room // 2), last(tail, room // 2)
    left_out = total - len(head.encode()) - len(tail.encode())
    return f"{head}\n[... {left_out} bytes left out ...]\n{tail}"


def shorten(text: str, limit: int) -> str:
    """The text, or if it is longer than `limit` bytes its head and its tail."""
    size = len(text.encode())
    return text if size <= limit else join_ends(text, text, size, limit)


def shares(sizes: list[int], limit: int) -> list[int]:
    """How many bytes each of several texts gets of `limit`: the small ones all they need, the rest equal parts."""
    given = [0] * len(sizes)
    order = sorted(range(len(sizes)), key=lambda i: sizes[i])
    for done, i in enumerate(order):
        given[i] = min(sizes[i], limit // (len(sizes) - done))
        limit -= given[i]
    return given


def clean_content(content: list[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """Content blocks with their text made visible and cut to `limit` bytes in all. Never empty: models refuse that."""
    if len(content) > _BLOCKS:
        left_out = len(content) - _BLOCKS
        content = [*content[:_BLOCKS], {"type": "text", "text": f"[... {left_out} blocks left out ...]"}]
    blocks = [{**b, "text": visible(b["text"])} if b.get("type") == "text" else b for b in content]
    blocks = [b for b in blocks if b.get("type") != "text" or b["text"]]
    texts = [b for b in blocks if b.get("type") == "text"]
    for block, share in zip(texts, shares([len(b["text"].encode()) for b in texts], limit), strict=True):
        block["text"] = shorten(block["text"], share)
    return blocks or [{"type": "text", "text": "(nothing)"}]
