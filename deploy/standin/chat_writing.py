"""Renders a reply as Chat Completions sends it: as server-sent chunks of about a token each, or as one completion."""

import json
import secrets
from collections.abc import Iterator
from typing import Any

from deploy.standin.chat import extra_content
from deploy.standin.script import Fault
from deploy.standin.writing import BlockPart, WholeReply, paced

FINISH_REASONS = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "stop"}


def stream(page: WholeReply, model: str, usage: dict[str, Any] | None, fault: Fault | None) -> Iterator[bytes | float]:
    """Yield server-sent chunks, and between them pauses in seconds. Ends at the place of a fault. `usage`: None if not wanted."""
    head = _head(model, "chat.completion.chunk")
    yield _chunk(head, {"role": "assistant", "content": ""})
    calls = 0
    for part in page.parts:
        yield part.block.pause
        yield from _deltas(head, part, calls)
        calls += part.block.kind == "tool_use"
        if fault and part is page.parts[-1]:
            return
    yield page.pause
    if fault:
        return
    if page.stop_reason == "refusal":
        yield _chunk(head, {"refusal": page.explanation})
    yield _chunk(head, {}, FINISH_REASONS[page.stop_reason])
    if usage:
        yield _event({**head, "choices": [], "usage": usage_of(page, usage)})
    yield b"data: [DONE]\n\n"


def message(page: WholeReply, model: str, usage: dict[str, Any]) -> dict[str, Any]:
    """Return the reply as one completion."""
    text = "".join("".join(part.pieces) for part in page.parts if part.block.kind == "text")
    calls = [_call(part) for part in page.parts if part.block.kind == "tool_use"]
    reply: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": page.explanation}
    choice = {"index": 0, "message": reply | ({"tool_calls": calls} if calls else {}), "logprobs": None}
    choice["finish_reason"] = FINISH_REASONS[page.stop_reason]
    return {**_head(model, "chat.completion"), "choices": [choice], "usage": usage_of(page, usage)}


def usage_of(page: WholeReply, usage: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of a Messages request in this wire's terms."""
    read = usage["cache_read_input_tokens"]
    prompt = usage["input_tokens"] + usage["cache_creation_input_tokens"] + read
    return {
        "prompt_tokens": prompt,
        "completion_tokens": page.output_tokens,
        "total_tokens": prompt + page.output_tokens,
        "prompt_tokens_details": {"cached_tokens": read},
    }


def error_event(kind: str, status: int, text: str) -> bytes:
    """Return an error, for the middle of a stream."""
    return _event({"error": {"message": text, "type": kind, "param": None, "code": status}})


def _deltas(head: dict[str, Any], part: BlockPart, index: int) -> Iterator[bytes | float]:
    kind = part.block.kind
    if kind == "tool_use":
        whole = _call(part)
        opening = {**whole, "index": index, "function": {"name": part.block.name, "arguments": ""}}
        yield _chunk(head, {"tool_calls": [opening]})
    yield from paced(part, lambda piece: _chunk(head, _delta(kind, index, piece)))


def _delta(kind: str, index: int, piece: str) -> dict[str, Any]:
    if kind == "tool_use":
        return {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
    return {"reasoning_content" if kind == "thinking" else "content": piece}


def _call(part: BlockPart) -> dict[str, Any]:
    function = {"name": part.block.name, "arguments": "".join(part.pieces)}
    call_id = "call_" + part.id.partition("_")[2]
    return {"id": call_id, "type": "function", "function": function, "extra_content": extra_content(part.block.name)}


def _head(model: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{secrets.token_hex(12)}", "object": kind, "created": 1_767_225_600, "model": model}


def _chunk(head: dict[str, Any], delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    return _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})


def _event(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
