"""Translates a neutral request into the parameters of Chat Completions."""

import hashlib
import json
from typing import Any

from models.pure.text import words
from models.settings.providers import ProviderEntry
from workers.providers import ModelRequest
from workers.providers.neutral import Block, asking_for_summary, blocks_of, call_ids, data_of

OPTIONAL = ("parallel_tool_calls", "stream_options", "max_completion_tokens")
"""Parameters that a request can omit or send under an older name. Some providers refuse them."""
_OLDER = {"max_completion_tokens": "max_tokens"}
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def params(request: ModelRequest, entry: ProviderEntry, refusals: frozenset[str]) -> dict[str, Any]:
    """Return the parameters. `refusals` are those of OPTIONAL that the provider refused before."""
    parameters: dict[str, Any] = {
        "model": request.model,
        "messages": _messages(request, entry),
        "stream_options": {"include_usage": True},
        "max_completion_tokens": request.max_tokens,
    }
    if request.tools and not request.folds:
        parameters["tools"] = [_tool(tool) for tool in request.tools]
        if not request.parallel and entry.abilities.parallel_tool_calls:
            parameters["parallel_tool_calls"] = False
    if request.effort:
        parameters["reasoning_effort"] = request.effort
    for name in refusals & parameters.keys():
        value = parameters.pop(name)
        if name in _OLDER:
            parameters[_OLDER[name]] = value
    return parameters


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    function = {"name": tool["name"], "description": tool["description"], "parameters": tool["input_schema"]}
    return {"type": "function", "function": function}


def _messages(request: ModelRequest, entry: ProviderEntry) -> list[dict[str, Any]]:
    ids = call_ids(request.messages, entry.name, spell=short_id)
    messages: list[dict[str, Any]] = [{"role": "system", "content": request.system}] if request.system else []
    for message in asking_for_summary(request) if request.folds else request.messages:
        blocks = blocks_of(message)
        messages += _from_user(blocks, ids, entry) if message["role"] == "user" else _from_assistant(blocks, ids, entry.name)
    return messages


def short_id(call_id: str) -> str:
    """Return an id of nine letters and digits for a call that another provider made: the only form that all providers accept."""
    number = int.from_bytes(hashlib.sha256(call_id.encode()).digest()[:8])
    return "".join(_LETTERS[number // len(_LETTERS) ** place % len(_LETTERS)] for place in range(9))


def _from_assistant(blocks: list[Block], ids: dict[str, str], provider: str) -> list[dict[str, Any]]:
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    calls = [_call(block, ids, data_of(block, provider)) for block in blocks if block["type"] == "tool_use"]
    if not texts and not calls:
        return []
    message: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(texts) or None}
    for block in blocks:
        if block["type"] in ("text", "thinking"):
            message |= data_of(block, provider)
    return [message | ({"tool_calls": calls} if calls else {})]


def _call(block: Block, ids: dict[str, str], data: dict[str, Any]) -> dict[str, Any]:
    function = {"name": block["name"], "arguments": json.dumps(block["input"], ensure_ascii=False)}
    return {**data, "id": ids[block["id"]], "type": "function", "function": function}


def _from_user(blocks: list[Block], ids: dict[str, str], entry: ProviderEntry) -> list[dict[str, Any]]:
    """Return a message for each result, then one for the user's other blocks. That message also has the results' images."""
    results: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    for block in blocks:
        if block["type"] != "tool_result":
            parts += _parts(block, entry)
            continue
        content = blocks_of({"content": block.get("content") or []})
        inner = [part for inner_block in content for part in _parts(inner_block, entry)]
        text = "\n\n".join(part["text"] for part in inner if part["type"] == "text")
        if block.get("is_error"):
            text = f"Error: {text}"
        call_id = ids.get(block["tool_use_id"], block["tool_use_id"])
        results.append({"role": "tool", "tool_call_id": call_id, "content": text})
        parts += [part for part in inner if part["type"] != "text"]
    if not parts:
        return results
    if all(part["type"] == "text" for part in parts):
        return [*results, {"role": "user", "content": "\n\n".join(part["text"] for part in parts)}]
    return [*results, {"role": "user", "content": parts}]


def _parts(block: Block, entry: ProviderEntry) -> list[dict[str, Any]]:
    """Return a user's block as parts of a message. A block that the provider cannot read becomes a note."""
    text = _text(block)
    if text is not None:
        return [{"type": "text", "text": text}]
    match block["type"], block["source"]:
        case "image", {"type": "base64", "media_type": media_type, "data": data} if entry.abilities.images:
            return [{"type": "image_url", "image_url": {"url": f"data:{media_type};base64,{data}"}}]
        case "image", {"type": "url", "url": url} if entry.abilities.images:
            return [{"type": "image_url", "image_url": {"url": url}}]
        case "document", {"type": "base64", "media_type": media_type, "data": data} if entry.reads_documents:
            file = {"filename": block.get("title") or "document.pdf", "file_data": f"data:{media_type};base64,{data}"}
            return [{"type": "file", "file": file}]
    return [{"type": "text", "text": words.left_out(block["type"])}]


def _text(block: Block) -> str | None:
    """Return the text of a block; None for an image, and for a document without text."""
    match block["type"], block.get("source"):
        case "text", _:
            return str(block["text"])
        case "summary", _:
            return words.summary(block["text"])
        case "document", {"type": "text", "data": data}:
            return "\n".join(filter(None, [block.get("title"), data]))
        case "search_result", source:
            return "\n".join([block["title"], str(source), *(one["text"] for one in block["content"])])
    return None
