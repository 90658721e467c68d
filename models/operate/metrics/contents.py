"""Contents of requests, replies and calls for spans, only if ASSENT_TRACE_CONTENT is true: masked and cut.

The attributes have the form of OpenTelemetry's conventions for generative AI. A content that cannot be written is left out: no turn
and no call fails because of its span.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from models.database import trace
from models.database.trace import Attributes
from models.pure.json.codec import encode
from models.pure.masking import Echoes, mask
from models.settings import settings

log = logging.getLogger(__name__)

LONGEST = 20_000
"""Most characters of one attribute, before they are masked and written as JSON."""

Blocks = Sequence[dict[str, Any]]


def is_on() -> bool:
    """True if the spans of this worker's present run have contents."""
    return trace.present.get() is not None and settings().trace_content


def of_messages(name: str, messages: Blocks) -> Attributes:
    """Return the attribute of the last messages, whole ones and as many as fit; empty unless contents are sent."""
    return _attribute(name, lambda: _last(messages))


def _last(messages: Blocks) -> str:
    last: list[dict[str, Any]] = []
    room = LONGEST
    for message in reversed(messages):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        entry = {"role": message["role"], "parts": [_part(block) for block in blocks]}
        room -= len(encode(entry))
        if room < 0 and last:
            break
        last.insert(0, entry)
    return encode(mask({"messages": last}).arguments["messages"])


def of_call(call_input: dict[str, Any], schema: dict[str, Any]) -> Attributes:
    """Return the attribute of a call's input; empty unless contents are sent."""
    return _attribute("gen_ai.tool.call.arguments", lambda: _cut(encode(mask(call_input, schema).arguments)))


def of_result(content: Blocks, call_input: dict[str, Any], schema: dict[str, Any]) -> Attributes:
    """Return the attribute of a tool's result, in which the secrets of its input are masked too; empty unless contents are sent."""

    def write() -> str:
        echoes = Echoes(mask(call_input, schema).secrets)
        return encode(echoes.value(mask({"result": [_part(block) for block in content]}).arguments["result"]))

    return _attribute("gen_ai.tool.call.result", write)


def _attribute(name: str, write: Callable[[], str]) -> Attributes:
    if not is_on():
        return {}
    try:
        return {name: write()}
    except Exception as error:  # noqa: BLE001 - whatever the content holds, the work goes on
        log.warning("%s is left out of a span (%s)", name, type(error).__name__)
        return {}


def _part(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block of a message as the conventions have it. Of other blocks than texts, calls and results, the type alone."""
    match block["type"]:
        case "text":
            return {"type": "text", "content": _cut(block["text"])}
        case "tool_use":
            return {"type": "tool_call", "id": block["id"], "name": block["name"], "arguments": _cut(encode(block["input"]))}
        case "tool_result":
            content = block["content"] if isinstance(block["content"], str) else encode(block["content"])
            return {"type": "tool_call_response", "id": block["tool_use_id"], "response": _cut(content)}
        case kind:
            return {"type": kind}


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
