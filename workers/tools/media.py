"""Checks images and documents in results: a model refuses the whole history if it cannot read one of them."""

import base64
import binascii
from typing import Any

_MARKS = {  # offset and first bytes of each kind
    "image/png": (0, (b"\x89PNG\r\n\x1a\n",)),
    "image/jpeg": (0, (b"\xff\xd8\xff",)),
    "image/gif": (0, (b"GIF87a", b"GIF89a")),
    "image/webp": (8, (b"WEBP",)),
}
_PDF = "application/pdf"
_IMAGE_BYTES, _DOCUMENT_BYTES = 5_000_000, 10_000_000
_ALL_BYTES = 20_000_000
"""All sizes are of the base64 text."""
_PIECES = 20

Block = dict[str, Any]


def checked(content: list[Block]) -> list[Block]:
    """The blocks with only the fields of the Messages API. A block that a model cannot read becomes a text that says so."""
    blocks, pieces, size = [], 0, 0
    for block in content:
        readable = _checked(block)
        if readable["type"] != "text":
            pieces, size = pieces + 1, size + len(readable["source"]["data"])
            if pieces > _PIECES or size > _ALL_BYTES:
                readable = _text(f"[{_named(block)} left out: more than {_PIECES}, or than {_ALL_BYTES} bytes, in one result]")
        blocks.append(readable)
    return blocks


def _checked(block: Block) -> Block:
    kind, source = block.get("type"), block.get("source")
    if kind == "text":
        return _text(str(block.get("text", "")))
    if kind not in ("image", "document") or not isinstance(source, dict):
        return _text(f"[{_named(block)} left out: only text, images and documents can be shown]")
    if kind == "document" and source.get("type") == "text":
        return _text(str(source.get("data", "")))
    if source.get("type") != "base64":
        return _text(f"[{_named(block)} left out: only base64 data can be shown]")
    return _in_base64(str(kind), source, _named(block))


def _in_base64(kind: str, source: Block, name: str) -> Block:
    most = _IMAGE_BYTES if kind == "image" else _DOCUMENT_BYTES
    data = "".join(str(source.get("data", ""))[: 2 * most].split())
    if len(data) > most:
        return _text(f"[{name} left out: it has more than {most} bytes in base64]")
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return _text(f"[{name} left out: it is not valid base64]")
    media_type = _media_type(kind, raw)
    if media_type is None:
        known = f"{', '.join(_MARKS)}" if kind == "image" else _PDF
        return _text(f"[{name} left out: its bytes are none of {known}]")
    return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}}


def _media_type(kind: str, raw: bytes) -> str | None:
    """The kind by the first bytes: a tool's own statement may be wrong."""
    if kind == "document":
        return _PDF if b"%PDF-" in raw[:1024] else None
    return next((name for name, (at, marks) in _MARKS.items() if raw[at : at + 8].startswith(marks)), None)


def _named(block: Block) -> str:
    source = block.get("source")
    media_type = source.get("media_type") if isinstance(source, dict) else None
    named = f"a block of type {str(block.get('type'))[:40]}"
    return f"{named} ({str(media_type)[:80]})" if media_type else named


def _text(text: str) -> Block:
    return {"type": "text", "text": text}
