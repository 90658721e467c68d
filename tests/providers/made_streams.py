"""Streams of Anthropic's API that no script of the stand-in produces."""

import json
from typing import Any


def events(*data: dict[str, Any] | bytes) -> bytes:
    return b"".join(
        one if isinstance(one, bytes) else f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in data
    )


def start(index: int = 0, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(kind: str, index: int = 0, **piece: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **piece}}


def stop(index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def end(reason: str) -> list[dict[str, Any]]:
    usage = {"output_tokens": 7}
    return [{"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}, {"type": "message_stop"}]


BEGIN = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 5, "output_tokens": 1}}}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {}}
