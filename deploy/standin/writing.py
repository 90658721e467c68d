"""Renders a reply as the Messages API sends it: as server-sent events of about a token each, or as one message."""

import base64
import hashlib
import hmac
import json
import math
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from deploy.standin.script import Block, Fault, ScriptedReply

SIGNING_KEY = b"stand-in"
MAX_PACE = 0.01
"""Shortest time between two events, in seconds. Faster paces send several tokens at a time."""


@dataclass
class BlockPart:
    """The part of a block that is sent: pieces of four characters, a token each."""

    block: Block
    pieces: list[str]
    id: str


@dataclass
class WholeReply:
    """A whole reply, with the reason for its end."""

    parts: list[BlockPart]
    stop_reason: str
    explanation: str | None
    pause: float

    @property
    def output_tokens(self) -> int:
        return sum(len(part.pieces) for part in self.parts)


def signature(thinking: str) -> str:
    """Return a thinking block's signature."""
    return base64.b64encode(hmac.digest(SIGNING_KEY, thinking.encode(errors="surrogatepass"), hashlib.sha256)).decode()


def write(reply: ScriptedReply, max_tokens: int, fault: Fault | None) -> WholeReply:
    """Return the reply, cut by the script, by `max_tokens`, or half-way by a fault in mid-stream."""
    page, tokens = WholeReply([], reply.stop_reason, reply.explanation, reply.pause), max_tokens
    for block in reply.blocks:
        pieces = [block.text[at : at + 4] for at in range(0, len(block.text), 4)]
        page.parts.append(BlockPart(block, pieces[:tokens], f"toolu_{secrets.token_hex(12)}"))
        if len(pieces) > tokens:
            page.stop_reason = "max_tokens"
            return page
        tokens -= len(pieces)
    if page.parts and (reply.cut or fault):
        last = page.parts[-1]
        last.pieces = last.pieces[: len(last.pieces) // 2]
    return page


def message(page: WholeReply, model: str, usage: dict[str, Any]) -> dict[str, Any]:
    """Return the reply as one message. A cut call has an empty input, as in the real API."""
    return {
        **_envelope(model, usage | {"output_tokens": page.output_tokens}),
        "content": [_whole(part) for part in page.parts],
        **_ending(page),
    }


def stream(page: WholeReply, model: str, usage: dict[str, Any], fault: Fault | None) -> Iterator[bytes | float]:
    """Yield server-sent events, and between them pauses in seconds. Ends at the place of a fault."""
    opening = {"type": "message_start", "message": _envelope(model, usage | {"output_tokens": 1})}
    yield _event(opening) + _event({"type": "ping"})
    for index, part in enumerate(page.parts):
        yield part.block.pause
        yield _event({"type": "content_block_start", "index": index, "content_block": _empty(part)})
        yield from _deltas(index, part)
        if fault and part is page.parts[-1]:
            return
        yield _closing(index, part)
    yield page.pause
    if not fault:
        ending = {"type": "message_delta", "delta": _ending(page), "usage": usage | {"output_tokens": page.output_tokens}}
        yield _event(ending) + _event({"type": "message_stop"})


def duration(page: WholeReply) -> float:
    """Return the seconds that the whole reply takes."""
    paces = [len(part.pieces) / (part.block.tokens_per_second or math.inf) for part in page.parts]
    return page.pause + sum(part.block.pause for part in page.parts) + sum(paces)


def error_event(kind: str, _status: int, text: str) -> bytes:
    """Return an error event, for the middle of a stream."""
    return _event({"type": "error", "error": {"type": kind, "message": text}})


def _deltas(index: int, part: BlockPart) -> Iterator[bytes | float]:
    kind = part.block.kind
    if kind == "compaction":
        delta = {"type": "compaction_delta", "content": "".join(part.pieces), "encrypted_content": None}
        yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        return
    yield from paced(part, partial(_delta, kind, index))


def paced(part: BlockPart, delta: Callable[[str], bytes]) -> Iterator[bytes | float]:
    """Yield the block's pieces, each as a `delta`, at the block's pace, and between them pauses in seconds."""
    pace = part.block.tokens_per_second
    at_a_time = max(1, round(MAX_PACE * pace)) if pace else max(1, len(part.pieces))
    for start in range(0, len(part.pieces), at_a_time):
        yield b"".join([delta(piece) for piece in part.pieces[start : start + at_a_time]])
        yield at_a_time / pace if pace else 0.0


@lru_cache(maxsize=4096)
def _delta(kind: str, index: int, piece: str) -> bytes:
    deltas = {
        "text": {"type": "text_delta", "text": piece},
        "thinking": {"type": "thinking_delta", "thinking": piece},
        "tool_use": {"type": "input_json_delta", "partial_json": piece},
    }
    return _event({"type": "content_block_delta", "index": index, "delta": deltas[kind]})


def _closing(index: int, part: BlockPart) -> bytes:
    stop = _event({"type": "content_block_stop", "index": index})
    if part.block.kind != "thinking":
        return stop
    delta = {"type": "signature_delta", "signature": signature("".join(part.pieces))}
    return _event({"type": "content_block_delta", "index": index, "delta": delta}) + stop


def _empty(part: BlockPart) -> dict[str, Any]:
    if part.block.kind == "tool_use":
        return {"type": "tool_use", "id": part.id, "name": part.block.name, "input": {}}
    if part.block.kind == "thinking":
        return {"type": "thinking", "thinking": "", "signature": ""}
    if part.block.kind == "compaction":
        own_signature = signature("".join(part.pieces))
        return {"type": "compaction", "content": None, "encrypted_content": None, "signature": own_signature, "tool_changes": []}
    return {"type": "text", "text": ""}


def _whole(part: BlockPart) -> dict[str, Any]:
    text = "".join(part.pieces)
    if part.block.kind == "tool_use":
        return _empty(part) | {"input": _readable(text) if text == part.block.text else {}}
    if part.block.kind == "thinking":
        return {"type": "thinking", "thinking": text, "signature": signature(text)}
    if part.block.kind == "compaction":
        return _empty(part) | {"content": text}
    return {"type": "text", "text": text}


def _readable(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {}


def _envelope(model: str, usage: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"msg_{secrets.token_hex(12)}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "usage": usage,
    }


def _ending(page: WholeReply) -> dict[str, Any]:
    is_refusal = page.stop_reason == "refusal"
    details = {"type": "refusal", "category": None, "explanation": page.explanation} if is_refusal else None
    return {"stop_reason": page.stop_reason, "stop_sequence": None, "stop_details": details}


def _event(data: dict[str, Any]) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
