"""Compaction on demand, like the real API's: a request for a summary, and the block that replaces old messages."""

import re
from typing import Any

from deploy.standin.rules import need
from deploy.standin.script import Block, ScriptedReply
from deploy.standin.writing import signature

BETA = "compact-2026-09-04"
OLD = "old-"
"""Models whose names begin with this text do not know compaction."""
_ASKS = re.compile(r"Write a summary of the conversation\b")
_EXCERPT = 200


def check(body: dict[str, Any], betas: str) -> None:
    """Raise `RefusedError` unless the request may compact, and any earlier block comes back first, alone and unchanged."""
    contents = [message["content"] for message in body["messages"] if isinstance(message["content"], list)]
    blocks = [block for content in contents for block in content if block["type"] == "compaction"]
    if "compaction" in body:
        is_old = body["model"].startswith(OLD)
        need(BETA in betas and not is_old, "compaction: Extra inputs are not permitted")
        need(body["compaction"] == {"type": "summarize"}, "compaction.type: Input should be 'summarize'")
    if not blocks:
        return
    need(BETA in betas, "messages: `compaction` blocks need the beta header")
    need(len(blocks) == 1, "messages: more than one `compaction` block with content")
    first = body["messages"][0]["content"]
    need(isinstance(first, list) and first[0] is blocks[0], "messages: the `compaction` block must be the first block")
    need(
        blocks[0].get("signature") == signature(str(blocks[0].get("content"))),
        "messages: the `compaction` block's signature is invalid",
    )


def reply_to(body: dict[str, Any]) -> ScriptedReply | None:
    """Return the summary, if the request asks for one by the API's parameter or in words; else None."""
    messages = body["messages"]
    if "compaction" in body:
        return ScriptedReply([Block("compaction", _summary(messages))], stop_reason="compaction")
    last = _texts(messages[-1]["content"])
    if messages[-1]["role"] == "user" and last and _ASKS.match(last[-1]):
        return ScriptedReply([Block("text", _summary(messages[:-1]))])
    return None


def _summary(messages: list[dict[str, Any]]) -> str:
    texts = [text for message in messages for text in _texts(message["content"]) if text.strip()]
    return f"{len(messages)} messages were summarized. They began: {texts[0][:_EXCERPT] if texts else 'without text'}"


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [block.get("text") or block.get("content") or "" for block in content if block["type"] in ("text", "compaction")]
