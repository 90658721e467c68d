"""Makes results safe to store and to show.

Text has no NUL and no invisible character, and is no longer than the setting. Images and documents are checked, as a model refuses
the whole history if it cannot read one of them.
"""

import base64
import binascii
import re
from typing import Any

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

_MEDIA_MARKS = {  # offset and first bytes of each kind
    "image/png": (0, (b"\x89PNG\r\n\x1a\n",)),
    "image/jpeg": (0, (b"\xff\xd8\xff",)),
    "image/gif": (0, (b"GIF87a", b"GIF89a")),
    "image/webp": (8, (b"WEBP",)),
}
_PDF = "application/pdf"
_IMAGE_BYTES, _DOCUMENT_BYTES = 5_000_000, 10_000_000
_MEDIA_BYTES = 20_000_000
"""All sizes are of the base64 text."""
_MEDIA_PIECES = 20

Block = dict[str, Any]


def decode(data: bytes) -> str:
    """Return the text of UTF-8; each invalid byte becomes U+FFFD."""
    return data.decode("utf-8", errors="replace")


def escape_controls(text: str) -> str:
    r"""Return the text with control characters and marks that turn text as escapes (`\x1b`, `\u202e`). `\r\n` becomes `\n`.

    For a model, which has to quote files exactly: joiners, odd spaces and variation selectors stay. `models.pure.text.visible` is
    for people, and writes these out too.
    """
    text = text.replace("\r\n", "\n")
    return text.translate(_ESCAPES) if _UNSEEN.search(text) else text


def first(text: str, size: int) -> str:
    """Return the longest beginning of at most `size` bytes of UTF-8 that cuts no character."""
    return text.encode()[: max(size, 0)].decode(errors="ignore")


def last(text: str, size: int) -> str:
    """Return the longest end of at most `size` bytes of UTF-8 that cuts no character."""
    return text.encode()[-size:].decode(errors="ignore") if size > 0 else ""


def join_ends(head: str, tail: str, total: int, limit: int, hint: str = "", hint_bytes: int = 0) -> str:
    """Return the head and tail of a text of `total` bytes in at most `limit` bytes, with a line between them that counts the
    rest."""
    room = max(limit - _NOTE_BYTES - hint_bytes, 0)
    head, tail = first(head, room - room // 2), last(tail, room // 2)
    left_out = total - len(head.encode()) - len(tail.encode())
    return f"{head}\n[... {left_out} bytes left out{hint} ...]\n{tail}"


def shorten(text: str, limit: int) -> str:
    """Return the text, or its head and tail if the text is longer than `limit` bytes."""
    size = len(text.encode())
    return text if size <= limit else join_ends(text, text, size, limit)


def shares(sizes: list[int], limit: int) -> list[int]:
    """Divide `limit` bytes among texts: short texts get all their bytes, the others equal parts."""
    parts = [0] * len(sizes)
    order = sorted(range(len(sizes)), key=lambda i: sizes[i])
    for place, i in enumerate(order):
        parts[i] = min(sizes[i], limit // (len(sizes) - place))
        limit -= parts[i]
    return parts


def bounded(content: list[Block], limit: int, whole_limit: int, call_id: str | None = None) -> tuple[list[Block], bytes | None]:
    """Return content blocks for the model, with visible text of at most `limit` bytes in all; never empty, as models refuse no
    content.

    If text was cut, the second value is the whole text, of at most `whole_limit` bytes, to be stored. With a `call_id` each cut
    tells the model how to read on with `read_result`.
    """
    if len(content) > _BLOCKS:
        left_out = len(content) - _BLOCKS
        content = [*content[:_BLOCKS], {"type": "text", "text": f"[... {left_out} blocks left out ...]"}]
    blocks = [{**b, "text": escape_controls(b["text"])} if b["type"] == "text" else b for b in readable_blocks(content)]
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
    """Return a hint for the model how to read on after the cut of a text, which begins at character `before` of the whole."""
    room = max(share - _NOTE_BYTES - _HINT_BYTES - len(call_id), 0)
    end = before + len(first(text, room - room // 2))
    if len(whole[:end].encode()) > whole_limit // 2 - _NOTE_BYTES:  # the stored text is cut there, too
        return f'; read_result with call_id "{call_id}" reads them'
    return f'; read_result with call_id "{call_id}" and start {lines_in(whole[:end])} reads on'


def lines_in(text: str) -> int:
    """Return the number of lines; a long line counts as several."""
    return sum(max(-(-len(line) // LINE_CHARACTERS), 1) for line in text.split("\n"))


def readable_blocks(content: list[Block]) -> list[Block]:
    """Return the blocks with only the fields of the Messages API. A block that a model cannot read becomes a text that says so."""
    blocks, pieces, size = [], 0, 0
    for block in content:
        readable = _readable_block(block)
        if readable["type"] != "text":
            pieces, size = pieces + 1, size + len(readable["source"]["data"])
            if pieces > _MEDIA_PIECES or size > _MEDIA_BYTES:
                readable = text_block(
                    f"[{_type_in_words(block)} left out: more than {_MEDIA_PIECES}, or than {_MEDIA_BYTES} bytes, in one result]"
                )
        blocks.append(readable)
    return blocks


def _readable_block(block: Block) -> Block:
    kind, source = block.get("type"), block.get("source")
    if kind == "text":
        return text_block(str(block.get("text", "")))
    if kind not in ("image", "document") or not isinstance(source, dict):
        return text_block(f"[{_type_in_words(block)} left out: only text, images and documents can be shown]")
    if kind == "document" and source.get("type") == "text":
        return text_block(str(source.get("data", "")))
    if source.get("type") != "base64":
        return text_block(f"[{_type_in_words(block)} left out: only base64 data can be shown]")
    return _in_base64(str(kind), source, _type_in_words(block))


def _in_base64(kind: str, source: Block, name: str) -> Block:
    most = _IMAGE_BYTES if kind == "image" else _DOCUMENT_BYTES
    data = "".join(str(source.get("data", ""))[: 2 * most].split())
    if len(data) > most:
        return text_block(f"[{name} left out: it has more than {most} bytes in base64]")
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return text_block(f"[{name} left out: it is not valid base64]")
    media_type = _media_type(kind, raw)
    if media_type is None:
        media_types = ", ".join(_MEDIA_MARKS) if kind == "image" else _PDF
        return text_block(f"[{name} left out: its bytes are none of {media_types}]")
    return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}}


def _media_type(kind: str, raw: bytes) -> str | None:
    """Return the media type by the first bytes, as a tool's own statement may be wrong; None for an unknown type."""
    if kind == "document":
        return _PDF if b"%PDF-" in raw[:1024] else None
    return next((name for name, (at, marks) in _MEDIA_MARKS.items() if raw[at : at + 8].startswith(marks)), None)


def _type_in_words(block: Block) -> str:
    source = block.get("source")
    media_type = source.get("media_type") if isinstance(source, dict) else None
    words = f"a block of type {str(block.get('type'))[:40]}"
    return f"{words} ({str(media_type)[:80]})" if media_type else words


def text_block(text: str) -> Block:
    """Return a content block of type `text`."""
    return {"type": "text", "text": text}
