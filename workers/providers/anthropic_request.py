"""Translates a neutral request into the parameters of the Messages API."""

from typing import Any

from models.pure.text import words
from workers.providers import ModelRequest
from workers.providers.neutral import Block, asking_for_summary, blocks_of, call_ids, data_of

COMPACTION = "compact-2026-09-04"
"""The beta of Anthropic's API with `compaction`: a request for a summary, and a block that replaces old turns."""


def params(request: ModelRequest, provider: str, *, compacts: bool) -> dict[str, Any]:
    """Return the parameters, with cache breakpoints after the system prompt and tools, and at the end.

    `compacts`: the API writes and reads summaries in its own form. Otherwise summaries are ordinary texts.
    """
    lifetime = {"type": "ephemeral", "ttl": "1h" if request.long_wait else "5m"}
    messages = asking_for_summary(request) if request.folds and not compacts else request.messages
    parameters: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "messages": _messages(messages, provider, compacts=compacts),
        "cache_control": lifetime,
    }
    tools = request.tools
    if request.system:
        parameters["system"] = [{"type": "text", "text": request.system, "cache_control": lifetime}]
    elif tools:
        tools = [*tools[:-1], {**tools[-1], "cache_control": lifetime}]
    if tools:
        parameters["tools"] = tools
        if not request.parallel:
            parameters["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": True}
        if request.folds and not compacts:
            parameters["tool_choice"] = {"type": "none"}
    if request.effort:
        parameters["output_config"] = {"effort": request.effort}
    if compacts and (request.folds or has_own_summary(request, provider)):
        parameters["betas"] = [COMPACTION]
        parameters |= {"compaction": {"type": "summarize"}} if request.folds else {}
    return parameters


def has_own_summary(request: ModelRequest, provider: str) -> bool:
    """True if the request holds a summary in the provider's own form."""
    return bool(request.messages) and any(_own_summary(block, provider) for block in blocks_of(request.messages[0]))


def _own_summary(block: Block, provider: str) -> Block | None:
    return data_of(block, provider).get("compaction") if block["type"] == "summary" else None


def _messages(messages: list[dict[str, Any]], provider: str, *, compacts: bool) -> list[dict[str, Any]]:
    ids = call_ids(messages, provider, spell=str)
    translated = []
    if compacts and messages and (own := _own_summary(blocks_of(messages[0])[0], provider)):
        translated.append({"role": "assistant", "content": [own]})  # verbatim, and first
        messages = [{**messages[0], "content": blocks_of(messages[0])[1:]}, *messages[1:]]
    for message in messages:
        blocks = [_block(_as_text(block), provider, ids) for block in blocks_of(message)]
        if known_blocks := [block for block in blocks if block]:
            translated.append({"role": message["role"], "content": known_blocks})
    return translated


def _as_text(block: Block) -> Block:
    """Return a summary as an ordinary text, and any other block as it is."""
    return {"type": "text", "text": words.summary(block["text"])} if block["type"] == "summary" else block


def _block(block: Block, provider: str, ids: dict[str, str]) -> Block | None:
    """Return the block in the Messages API's form; None if the API would refuse it, such as another provider's thinking."""
    own = data_of(block, provider)
    match block["type"]:
        case "tool_use":
            return {**own, "type": "tool_use", "id": ids[block["id"]], "name": block["name"], "input": block["input"]}
        case "tool_result":
            return {**block, "tool_use_id": ids.get(block["tool_use_id"], block["tool_use_id"])}
        case "text":
            return {**own, "type": "text", "text": block["text"]}
        case "thinking":
            signature = own.get("signature") or block.get("signature")
            return {"type": "thinking", "thinking": block["thinking"], "signature": signature} if signature else None
        case "image" | "document" | "search_result":
            return block
    whole = {name: value for name, value in block.items() if name != "provider_data"} | own
    return whole if len(whole) > 1 else None
