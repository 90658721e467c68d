"""Translates a neutral request into the parameters of the Messages API."""

from typing import Any

from workers.providers import ModelRequest
from workers.providers.neutral import Block, blocks_of, call_ids, data_of


def params(request: ModelRequest, provider: str) -> dict[str, Any]:
    """Return the parameters, with cache breakpoints after the system prompt and tools, and at the end."""
    lifetime = {"type": "ephemeral", "ttl": "1h" if request.long_wait else "5m"}
    parameters: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "messages": _messages(request.messages, provider),
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
    if request.effort:
        parameters["output_config"] = {"effort": request.effort}
    return parameters


def _messages(messages: list[dict[str, Any]], provider: str) -> list[dict[str, Any]]:
    ids = call_ids(messages, provider, spelled=str)
    translated = []
    for message in messages:
        blocks = [_block(block, provider, ids) for block in blocks_of(message)]
        if kept := [block for block in blocks if block]:
            translated.append({"role": message["role"], "content": kept})
    return translated


def _block(block: Block, provider: str, ids: dict[str, str]) -> Block | None:
    """Return the block as the Messages API has it; None if the API refuses it, such as another provider's thinking."""
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
