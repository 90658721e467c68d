"""What a function of a toolset returned, as a result: text for the model, data for programs, images and documents as blocks."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from workers.tools.kinds import ToolResult, text_result


@dataclass(frozen=True)
class Image:
    """An image for the model to see: PNG, JPEG, GIF or WebP."""

    data: bytes
    media_type: str = "image/png"


@dataclass(frozen=True)
class Document:
    """A document for the model to read: a PDF, or plain text."""

    data: bytes | str
    media_type: str = "application/pdf"
    title: str | None = None


def result_of(value: object) -> ToolResult:
    """A result of whatever was returned. What cannot be said is an error that says so: the function has ended all the same."""
    try:
        return _result(value)
    except (PydanticSerializationError, TypeError, ValueError, RecursionError) as error:
        why = f"it ran to its end, but what it returned ({type(value).__name__}) cannot be told ({type(error).__name__})"
        return text_result(why, is_error=True)


def _result(value: object) -> ToolResult:
    if value is None:
        return text_result("(nothing)")
    if isinstance(value, str):
        return text_result(value or "(nothing)")
    items = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(item, Image | Document) for item in items):
        return ToolResult([block for item in items for block in _blocks(item)])
    plain = _plain(value)
    return ToolResult([_text(plain)], structured=plain if isinstance(plain, dict) else {"result": plain})


def _blocks(item: object) -> list[dict[str, Any]]:
    if isinstance(item, Image):
        return [{"type": "image", "source": _source(item.data, item.media_type)}]
    if isinstance(item, Document):
        block = {"type": "document", "source": _source(item.data, item.media_type)}
        return [block | ({"title": item.title} if item.title else {})]
    return _result(item).content


def _source(data: bytes | str, media_type: str) -> dict[str, str]:
    if media_type == "text/plain":
        return {"type": "text", "media_type": media_type, "data": data.decode() if isinstance(data, bytes) else data}
    spelled = data.encode() if isinstance(data, str) else data
    return {"type": "base64", "media_type": media_type, "data": base64.b64encode(spelled).decode()}


def _plain(value: object) -> Any:
    """As JSON has it: pydantic's models, dataclasses, dates, enums and decimals, too."""
    if isinstance(value, bytes | bytearray):
        raise TypeError("bytes are neither text nor an Image")
    found = to_jsonable_python(value, inf_nan_mode="null", by_alias=True)
    return dict(found) if isinstance(found, Mapping) else found


def _text(plain: object) -> dict[str, Any]:
    return {"type": "text", "text": json.dumps(plain, ensure_ascii=False, indent=1 if isinstance(plain, dict | list) else None)}
