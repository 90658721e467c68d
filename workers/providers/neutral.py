"""The neutral form of a history, and the parts of it that belong to one provider.

A block is one of the wire: `text`, `thinking`, `tool_use`, `tool_result`, `image`, `document`; or a `summary` at the beginning,
whose `text` replaces older turns. The id of a `tool_use` block is Assent's. A provider's own data about a block (its id of the
call, a signature, a summary in its own form) stands in `provider_data` under the provider's name. No other provider gets the data.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

from models.pure.text import words
from workers.providers import ModelError, ModelReply, ModelRequest

Block = dict[str, Any]


def with_data(block: Block, provider: str, **data: Any) -> Block:
    """Return the block with data that only this provider gets back. None values are left out."""
    own_data = {name: value for name, value in data.items() if value is not None}
    return {**block, "provider_data": {provider: own_data}} if own_data else block


def data_of(block: Block, provider: str) -> dict[str, Any]:
    """Return this provider's own data about the block."""
    data = (block.get("provider_data") or {}).get(provider)
    return data if isinstance(data, dict) else {}


def blocks_of(message: dict[str, Any]) -> list[Block]:
    """Return a message's blocks. A text stands for one text block."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def call_ids(messages: list[dict[str, Any]], provider: str, spell: Callable[[str], str]) -> dict[str, str]:
    """Return the provider's id of each call, by Assent's id.

    A call keeps the id that this provider gave it. A repeated id of a gateway, and a call of another provider, get the id that
    `spell` returns.
    """
    ids: dict[str, str] = {}
    ids_in_use: set[str] = set()
    for block in (block for message in messages for block in blocks_of(message) if block["type"] == "tool_use"):
        own = data_of(block, provider).get("id")
        ids[block["id"]] = own if isinstance(own, str) and own and own not in ids_in_use else spell(block["id"])
        ids_in_use.add(ids[block["id"]])
    return ids


def read_input(text: str) -> tuple[dict[str, Any], str | None]:
    """Return a call's input and None; or an empty input and the problem, if the text is not a JSON object."""
    try:
        value = json.loads(text or "{}", parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return {}, str(error)
    return (value, None) if isinstance(value, dict) else ({}, "it is not an object")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def asking_for_summary(request: ModelRequest) -> list[dict[str, Any]]:
    """Return the request's messages, followed by a message that asks the model to summarize them."""
    return [*request.messages, {"role": "user", "content": [{"type": "text", "text": words.summarize()}]}]


def summarized(reply: ModelReply) -> ModelReply:
    """Return the reply to a request for a summary with one block `summary`. Raises ModelError if there is none."""
    for block in reply.content:
        if block["type"] == "summary":
            return replace(reply, content=[block])
    text = "\n\n".join(block["text"] for block in reply.content if block["type"] == "text").strip()
    if not text or reply.stop_reason == "refusal":
        message = f"The model wrote no summary of the conversation ({reply.stop_reason})"
        raise ModelError("failed", message, usage=reply.usage)
    return replace(reply, content=[{"type": "summary", "text": text}])
