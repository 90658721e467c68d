"""Makes results safe to store and to show: without NUL and invisible characters, and no longer than the setting."""

import re
from typing import Any

from workers.tools import media

LINE_CHARACTERS = 2_000
"""A longer line of a stored result counts as several lines."""
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but \t and \n
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # marks that turn or break lines of text
    "\ud800-\udfff"  # lone surrogates, which UTF-8 and Postgres refuse
    "\U000e0000-\U000e007f]"  # tags: text that only a model reads
)
# A table, because a function call for each of ten million characters takes many seconds.
_ESCAPES = {
    code: f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
    for code in (*range(0xA0), 0x61C, *range(0x2000, 0x2070), *range(0xD800, 0xE000), *range(0xE0000, 0xE0080))
    if _UNSEEN.match(chr(code))
}
_BLOCKS = 100
_NOTE_BYTES = 64
_HINT_BYTES = 80
"""Length of the hint without the id."""


def decode(data: bytes) -> str:
    """Text from UTF-8; each invalid byte becomes U+FFFD."""
    return data.decode("utf-8", errors="replace")


def escape_controls(text: str) -> str:
    r"""The text with control characters and marks that turn text as escapes (`\x1b`, `\u202e`). `\r\n` becomes `\n`.

    For a model, which has to quote files exactly: joiners, odd spaces and variation selectors stay. `models.pure.visible` is for
    people, and writes these out too.
    """
    text = text.replace("\r\n", "\n")
    return text.translate(_ESCAPES) if _UNSEEN.search(text) else text


def first(text: str, size: int) -> str:
    """The longest beginning of at most `size` bytes of UTF-8 that cuts no character."""
    return text.encode()[: max(size, 0)].decode(errors="ignore")


def last(text: str, size: int) -> str:
    """The longest end of at most `size` bytes of UTF-8 that cuts no character."""
    return text.encode()[-size:].decode(errors="ignore") if size > 0 else ""


def join_ends(head: str, tail: str, total: int, limit: int, hint: str = "", hint_bytes: int = 0) -> str:
    """Head and tail of a text of `total` bytes in at most `limit` bytes, with a line between them that counts the rest."""
    room = max(limit - _NOTE_BYTES - hint_bytes, 0)
    head, tail = first(head, room - room // 2), last(tail, room // 2)
    left_out = total - len(head.encode()) - len(tail.encode())
    return f"{head}\n[... {left_out} bytes left out{hint} ...]\n{tail}"


def shorten(text: str, limit: int) -> str:
    """The text, or its head and tail if the text is longer than `limit` bytes."""
    size = len(text.encode())
    return text if size <= limit else join_ends(text, text, size, limit)


def shares(sizes: list[int], limit: int) -> list[int]:
    """Divide `limit` bytes among texts: short texts get all their bytes, the others equal parts."""
    parts = [0] * len(sizes)
    order = sorted(range(len(sizes)), key=lambda i: sizes[i])
    for done, i in enumerate(order):
        parts[i] = min(sizes[i], limit // (len(sizes) - done))
        limit -= parts[i]
    return parts


def bounded(
    content: list[dict[str, Any]], limit: int, whole_limit: int, call_id: str | None = None
) -> tuple[list[dict[str, Any]], bytes | None]:
    """Content blocks for the model, with visible text of at most `limit` bytes in all; never empty, as models refuse no content.

    If text was cut, the second value is the whole text, of at most `whole_limit` bytes, to be stored. With a `call_id` each cut
    tells the model how to read on with `read_result`.
    """
    if len(content) > _BLOCKS:
        left_out = len(content) - _BLOCKS
        content = [*content[:_BLOCKS], {"type": "text", "text": f"[... {left_out} blocks left out ...]"}]
    blocks = [{**b, "text": escape_controls(b["text"])} if b["type"] == "text" else b for b in media.checked(content)]
    blocks = [b for b in blocks if b["type"] != "text" or b["text"]] or [{"type": "text", "text": "(nothing)"}]
    texts = [b for b in blocks if b["type"] == "text"]
    sizes = [len(b["text"].encode()) for b in texts]
    if sum(sizes) <= limit:
        return blocks, None
    whole = "\n".join(b["text"] for b in texts)
    before = 0
    for block, size, share in zip(texts, sizes, shares(sizes, limit), strict=True):
        text = block["text"]
        if size > share:
            hint = _hint(whole, before, text, share, whole_limit, call_id) if call_id else ""
            block["text"] = join_ends(text, text, size, share, hint, _HINT_BYTES + len(call_id) if call_id else 0)
        before += len(text) + 1
    return blocks, shorten(whole, whole_limit).encode()


def _hint(whole: str, before: int, text: str, share: int, whole_limit: int, call_id: str) -> str:
    """How to read on after the cut of a text that begins at character `before` of the whole."""
    room = max(share - _NOTE_BYTES - _HINT_BYTES - len(call_id), 0)
    seen = before + len(first(text, room - room // 2))
    if len(whole[:seen].encode()) > whole_limit // 2 - _NOTE_BYTES:  # the stored text is cut there, too
        return f'; read_result with call_id "{call_id}" reads them'
    return f'; read_result with call_id "{call_id}" and start {lines_in(whole[:seen])} reads on'


def lines_in(text: str) -> int:
    """The number of lines; a long line counts as several."""
    return sum(max(-(-len(line) // LINE_CHARACTERS), 1) for line in text.split("\n"))
