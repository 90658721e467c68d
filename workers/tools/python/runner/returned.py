"""The value that a function returned, as a result: text for the model, data for programs, images and documents as blocks."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from assent import Document, Image

Result = dict[str, Any]
"""`{"content": [BLOCK, ...], "is_error": bool, "structured": {...} | None}`: the fields of a worker's ToolResult."""


def result_of(value: object) -> Result:
    """Return the result of a returned value. A value without a form in JSON becomes an error: the function has ended all the
    same."""
    try:
        return _result(value)
    except (PydanticSerializationError, TypeError, ValueError, RecursionError) as error:
        kind = type(value).__name__
        return failure(f"it ran to its end, but its return value ({kind}) has no form in JSON ({type(error).__name__})")


def failure(text: str) -> Result:
    """Return a result of one text that says what went wrong."""
    return {"content": [_text(text)], "is_error": True, "structured": None}


def _result(value: object) -> Result:
    if value is None or isinstance(value, str):
        return _success([_text(value or "(nothing)")])
    items = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(item, Image | Document) for item in items):
        return _success([block for item in items for block in _blocks(item)])
    plain = _plain(value)
    text = json.dumps(plain, ensure_ascii=False, indent=1 if isinstance(plain, dict | list) else None)
    return _success([_text(text)], plain if isinstance(plain, dict) else {"result": plain})


def _success(content: list[dict[str, Any]], structured: dict[str, Any] | None = None) -> Result:
    return {"content": content, "is_error": False, "structured": structured}


def _blocks(item: object) -> list[dict[str, Any]]:
    if isinstance(item, Image):
        return [{"type": "image", "source": _source(item.data, item.media_type)}]
    if isinstance(item, Document):
        block = {"type": "document", "source": _source(item.data, item.media_type)}
        return [block | ({"title": item.title} if item.title else {})]
    return list(_result(item)["content"])


def _source(data: bytes | str, media_type: str) -> dict[str, str]:
    if media_type == "text/plain":
        return {"type": "text", "media_type": media_type, "data": data.decode() if isinstance(data, bytes) else data}
    raw = data.encode() if isinstance(data, str) else data
    return {"type": "base64", "media_type": media_type, "data": base64.b64encode(raw).decode()}


def _plain(value: object) -> Any:
    """Return the value in JSON's types. Pydantic knows its models, dataclasses, dates, enums and decimals."""
    if isinstance(value, bytes | bytearray):
        raise TypeError("bytes are neither text nor an Image")
    plain = to_jsonable_python(value, inf_nan_mode="null", by_alias=True)
    return dict(plain) if isinstance(plain, Mapping) else plain


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
