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

from deploy.standin.script import Block, Fault, Reply

SIGNING_KEY = b"stand-in"
MAX_PACE = 0.01
"""Shortest time between two events, in seconds. Faster paces send several tokens at a time."""


@dataclass
class Written:
    """The part of a block that is sent: pieces of four characters, a token each."""

    block: Block
    pieces: list[str]
    id: str


@dataclass
class Page:
    """A whole reply, with the reason for its end."""

    written: list[Written]
    stop_reason: str
    explanation: str | None
    pause: float

    @property
    def output_tokens(self) -> int:
        return sum(len(written.pieces) for written in self.written)


def signature(thinking: str) -> str:
    """Return a thinking block's signature."""
    return base64.b64encode(hmac.digest(SIGNING_KEY, thinking.encode(errors="surrogatepass"), hashlib.sha256)).decode()


def write(reply: Reply, max_tokens: int, fault: Fault | None) -> Page:
    """Return the reply, cut by the script, by `max_tokens`, or half-way by a fault in mid-stream."""
    page, left = Page([], reply.stop_reason, reply.explanation, reply.pause), max_tokens
    for block in reply.blocks:
        pieces = [block.text[at : at + 4] for at in range(0, len(block.text), 4)]
        page.written.append(Written(block, pieces[:left], f"toolu_{secrets.token_hex(12)}"))
        if len(pieces) > left:
            page.stop_reason = "max_tokens"
            return page
        left -= len(pieces)
    if page.written and (reply.cut or fault):
        last = page.written[-1]
        last.pieces = last.pieces[: len(last.pieces) // 2]
    return page


def message(page: Page, model: str, usage: dict[str, Any]) -> dict[str, Any]:
    """Return the reply as one message. A cut call has an empty input, as in the real API."""
    return {
        **_envelope(model, usage | {"output_tokens": page.output_tokens}),
        "content": [_whole(written) for written in page.written],
        **_ending(page),
    }


def stream(page: Page, model: str, usage: dict[str, Any], fault: Fault | None) -> Iterator[bytes | float]:
    """Yield server-sent events, and between them pauses in seconds. Ends at the place of a fault."""
    opening = {"type": "message_start", "message": _envelope(model, usage | {"output_tokens": 1})}
    yield _event(opening) + _event({"type": "ping"})
    for index, written in enumerate(page.written):
        yield written.block.pause
        yield _event({"type": "content_block_start", "index": index, "content_block": _empty(written)})
        yield from _deltas(index, written)
        if fault and written is page.written[-1]:
            return
        yield _closing(index, written)
    yield page.pause
    if not fault:
        ending = {"type": "message_delta", "delta": _ending(page), "usage": usage | {"output_tokens": page.output_tokens}}
        yield _event(ending) + _event({"type": "message_stop"})


def duration(page: Page) -> float:
    """Return the seconds that the whole reply takes."""
    paces = [len(written.pieces) / (written.block.tokens_per_second or math.inf) for written in page.written]
    return page.pause + sum(written.block.pause for written in page.written) + sum(paces)


def error_event(kind: str, _status: int, text: str) -> bytes:
    """Return an error event, for the middle of a stream."""
    return _event({"type": "error", "error": {"type": kind, "message": text}})


def _deltas(index: int, written: Written) -> Iterator[bytes | float]:
    kind = written.block.kind
    if kind == "compaction":
        delta = {"type": "compaction_delta", "content": "".join(written.pieces), "encrypted_content": None}
        yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        return
    yield from paced(written, partial(_delta, kind, index))


def paced(written: Written, delta: Callable[[str], bytes]) -> Iterator[bytes | float]:
    """Yield the block's pieces, each as a `delta`, at the block's pace, and between them pauses in seconds."""
    pace = written.block.tokens_per_second
    at_a_time = max(1, round(MAX_PACE * pace)) if pace else max(1, len(written.pieces))
    for start in range(0, len(written.pieces), at_a_time):
        yield b"".join([delta(piece) for piece in written.pieces[start : start + at_a_time]])
        yield at_a_time / pace if pace else 0.0


@lru_cache(maxsize=4096)
def _delta(kind: str, index: int, piece: str) -> bytes:
    deltas = {
        "text": {"type": "text_delta", "text": piece},
        "thinking": {"type": "thinking_delta", "thinking": piece},
        "tool_use": {"type": "input_json_delta", "partial_json": piece},
    }
    return _event({"type": "content_block_delta", "index": index, "delta": deltas[kind]})


def _closing(index: int, written: Written) -> bytes:
    stop = _event({"type": "content_block_stop", "index": index})
    if written.block.kind != "thinking":
        return stop
    delta = {"type": "signature_delta", "signature": signature("".join(written.pieces))}
    return _event({"type": "content_block_delta", "index": index, "delta": delta}) + stop


def _empty(written: Written) -> dict[str, Any]:
    if written.block.kind == "tool_use":
        return {"type": "tool_use", "id": written.id, "name": written.block.name, "input": {}}
    if written.block.kind == "thinking":
        return {"type": "thinking", "thinking": "", "signature": ""}
    if written.block.kind == "compaction":
        signed = signature("".join(written.pieces))
        return {"type": "compaction", "content": None, "encrypted_content": None, "signature": signed, "tool_changes": []}
    return {"type": "text", "text": ""}


def _whole(written: Written) -> dict[str, Any]:
    text = "".join(written.pieces)
    if written.block.kind == "tool_use":
        return _empty(written) | {"input": _readable(text) if text == written.block.text else {}}
    if written.block.kind == "thinking":
        return {"type": "thinking", "thinking": text, "signature": signature(text)}
    if written.block.kind == "compaction":
        return _empty(written) | {"content": text}
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


def _ending(page: Page) -> dict[str, Any]:
    refused = page.stop_reason == "refusal"
    details = {"type": "refusal", "category": None, "explanation": page.explanation} if refused else None
    return {"stop_reason": page.stop_reason, "stop_sequence": None, "stop_details": details}


def _event(data: dict[str, Any]) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
