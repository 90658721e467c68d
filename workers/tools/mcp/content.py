"""Turns a server's result into content blocks of the Messages API."""

import base64
import binascii
import json
from typing import Any

import mcp_types as types

from models.pure.json.storable import is_deep
from workers.tools.clean import text_block

_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_PDF = "application/pdf"


def is_storable(value: Any) -> bool:
    """True if Postgres and our readers accept the value: no NUL, no lone surrogates, no NaN, and not too deep."""
    if is_deep(value):
        return False
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, TypeError, RecursionError):
        return False
    return "\\u0000" not in text


def blocks(result: types.CallToolResult) -> list[dict[str, Any]]:
    """Return a result's content. Structured data becomes a text block if the result has none."""
    content = [_block(block) for block in result.content]
    if result.structured_content is not None and not any(block["type"] == "text" for block in content):
        content.append(text_block(json.dumps(result.structured_content, ensure_ascii=False)))
    return content


def _block(block: types.ContentBlock) -> dict[str, Any]:
    match block:
        case types.TextContent():
            return text_block(block.text)
        case types.ImageContent():
            return _media("image", block.mime_type, block.data, "an image")
        case types.AudioContent():
            return _left_out("audio", block.mime_type, block.data)
        case types.EmbeddedResource():
            return _resource(block.resource)
    size = f", {block.size} bytes" if block.size is not None else ""
    return text_block(f"[a link to {block.uri} ({block.name}{size}), which was not read]")


def _resource(resource: types.TextResourceContents | types.BlobResourceContents) -> dict[str, Any]:
    if isinstance(resource, types.TextResourceContents):
        return text_block(resource.text)
    kind = "document" if resource.mime_type == _PDF else "image"
    return _media(kind, resource.mime_type or "unknown", resource.blob, f"the resource {resource.uri}")


def _media(kind: str, media_type: str, data: str, description: str) -> dict[str, Any]:
    is_supported = media_type == _PDF if kind == "document" else media_type in _IMAGES
    if is_supported and _size(data):
        return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}}
    return _left_out(description, media_type, data)


def _left_out(description: str, media_type: str, data: str) -> dict[str, Any]:
    size = _size(data)
    return text_block(
        f"[{description} of type {media_type}, {'not readable' if size is None else f'{size} bytes'}, which was left out]"
    )


def _size(data: str) -> int | None:
    try:
        return len(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return None
