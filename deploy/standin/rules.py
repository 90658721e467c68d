"""Validates a request like the real Messages API, with its error messages: fields, blocks, tools."""

import json
import re
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator, SchemaError

from deploy.standin.writing import signature

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
TOOL_USE_ID = re.compile(r"[a-zA-Z0-9_-]+")
# fmt: off
FIELDS = {
    "model", "messages", "max_tokens", "system", "tools", "tool_choice", "stream", "cache_control", "metadata",
    "stop_sequences", "temperature", "top_k", "top_p", "thinking", "output_config", "service_tier", "inference_geo",
    "container", "speed", "diagnostics", "compaction",
}
# fmt: on
BLOCK_FIELDS = {
    "text": {"text", "cache_control", "citations"},
    "tool_use": {"id", "name", "input", "cache_control", "caller", "toolset_name"},
    "tool_result": {"tool_use_id", "content", "is_error", "cache_control", "toolset_name"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
    "image": {"source", "cache_control"},
    "document": {"source", "title", "context", "citations", "cache_control"},
    "compaction": {"content", "encrypted_content", "signature", "tool_changes", "cache_control"},
}
ROLES = {
    "user": {"text", "tool_result", "image", "document"},
    "assistant": {"text", "tool_use", "thinking", "redacted_thinking", "compaction"},
    "system": {"text"},
}


class RefusedError(Exception):
    """The response is an error. `retry_after`, in seconds, becomes a header; Chat Completions have a `code`."""

    def __init__(self, message: str, status: int = 400, retry_after: int | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after, self.code = status, retry_after, code


def check(body: Any) -> None:
    """Raise `RefusedError` for the first fault that the real API reports. `pairing` checks calls and results."""
    need(isinstance(body, dict), "The request body is not a JSON object")
    for name in body.keys() - FIELDS:
        raise RefusedError(f"{name}: Extra inputs are not permitted")
    for name in ("model", "messages", "max_tokens"):
        need(name in body, f"{name}: Field required")
    need(isinstance(body["model"], str) and body["model"], "model: Input should be a non-empty string")
    max_tokens = body["max_tokens"]
    need(type(max_tokens) is int, "max_tokens: Input should be a valid integer")
    need(max_tokens > 0, "max_tokens: Input should be greater than 0")
    need(type(body.get("stream", False)) is bool, "stream: Input should be a valid boolean")
    check_system(body.get("system"))
    check_tools(body.get("tools"), body.get("tool_choice"))
    check_messages(body["messages"], compacts="compaction" in body)
    check_cache_control(body)


def need(condition: object, message: str) -> None:
    if not condition:
        raise RefusedError(message)


def check_system(system: Any) -> None:
    if system is not None and not isinstance(system, str):
        need(isinstance(system, list), "system: Input should be a valid string or list")
        for at, block in enumerate(system):
            check_block(block, f"system.{at}", {"text"})


def check_tools(tools: Any, choice: Any) -> None:
    need(tools is None or isinstance(tools, list), "tools: Input should be a valid list")
    names = set()
    for at, tool in enumerate(tools or []):
        need(isinstance(tool, dict), f"tools.{at}: Input should be a valid dictionary")
        name = tool.get("name")
        need(isinstance(name, str), f"tools.{at}.custom.name: Field required")
        need(TOOL_NAME.fullmatch(name), f"tools.{at}.custom.name: String should match pattern '^{TOOL_NAME.pattern}$'")
        need(name not in names, "tools: Tool names must be unique.")
        names.add(name)
        if tool.get("type", "custom") in (None, "custom"):
            check_input_schema(tool.get("input_schema"), f"tools.{at}.custom.input_schema")
            description = tool.get("description", "")
            need(isinstance(description, str), f"tools.{at}.custom.description: Input should be a valid string")
    if choice is not None:
        need(isinstance(choice, dict), "tool_choice: Input should be a valid dictionary")
        need(tools, "tool_choice: tool_choice may only be specified while providing tools")
        is_known = choice.get("type") in ("auto", "any", "tool", "none")
        need(is_known, "tool_choice.type: Input should be 'auto', 'any', 'tool' or 'none'")
        provided = choice["type"] != "tool" or str(choice.get("name")) in names
        need(provided, "tool_choice.name: Tool not found in provided tools")


def check_input_schema(schema: Any, where: str) -> None:
    need(schema is not None, f"{where}: Field required")
    need(isinstance(schema, dict), f"{where}: Input should be a valid dictionary")
    need(schema.get("type") == "object", f"{where}.type: Input should be 'object'")
    error = _schema_error(json.dumps(schema, sort_keys=True))
    need(not error, f"{where}: JSON schema is invalid. It must match JSON Schema draft 2020-12: {error}")


@lru_cache(maxsize=1024)
def _schema_error(schema: str) -> str | None:
    try:
        Draft202012Validator.check_schema(json.loads(schema))
    except SchemaError as error:
        return error.message
    return None


def check_messages(messages: Any, *, compacts: bool) -> None:
    need(isinstance(messages, list), "messages: Input should be a valid list")
    need(messages, "messages: at least one message is required")
    for at, message in enumerate(messages):
        need(isinstance(message, dict), f"messages.{at}: Input should be a valid dictionary")
        for name in ("role", "content"):
            need(name in message, f"messages.{at}.{name}: Field required")
        for name in message.keys() - {"role", "content"}:
            raise RefusedError(f"messages.{at}.{name}: Extra inputs are not permitted")
        is_known = isinstance(message["role"], str) and message["role"] in ROLES
        need(is_known, f"messages.{at}.role: Input should be 'user', 'assistant' or 'system'")
        check_content(message["content"], f"messages.{at}", ROLES[message["role"]])
    first = messages[0]["content"][0]
    is_summary = isinstance(first, dict) and first["type"] == "compaction"
    need(messages[0]["role"] == "user" or is_summary, 'messages: first message must use the "user" role')
    prefilled = messages[-1]["role"] == "assistant" and not compacts
    need(not prefilled, "This model does not support assistant message prefill. The conversation must end with a user message.")


def check_content(content: Any, where: str, kinds: set[str]) -> None:
    need(isinstance(content, str | list), f"{where}.content: Input should be a valid string or list")
    need(content, f"{where}: all messages must have non-empty content")
    if isinstance(content, str):
        need(content.strip(), "messages: text content blocks must contain non-whitespace text")
        return
    for at, block in enumerate(content):
        check_block(block, f"{where}.content.{at}", kinds)


def check_block(block: Any, where: str, kinds: set[str]) -> None:
    need(isinstance(block, dict), f"{where}: Input should be a valid dictionary")
    kind = block.get("type")
    need(
        isinstance(kind, str) and kind in kinds,
        f"{where}: Input tag {kind!r} found using 'type' does not match any of the expected tags: {sorted(kinds)}",
    )
    where = f"{where}.{kind}"
    for name in block.keys() - BLOCK_FIELDS[kind] - {"type"}:
        raise RefusedError(f"{where}.{name}: Extra inputs are not permitted")
    {"text": _text, "tool_use": _tool_use, "tool_result": _tool_result, "thinking": _thinking}.get(kind, _other)(block, where)


def _text(block: dict[str, Any], where: str) -> None:
    need(isinstance(block.get("text"), str), f"{where}.text: Input should be a valid string")
    place = where.partition(".")[0]
    need(block["text"], f"{place}: text content blocks must be non-empty")
    need(block["text"].strip(), f"{place}: text content blocks must contain non-whitespace text")


def _tool_use(block: dict[str, Any], where: str) -> None:
    for name, pattern in (("id", TOOL_USE_ID), ("name", TOOL_NAME)):
        value = block.get(name)
        need(isinstance(value, str), f"{where}.{name}: Field required")
        need(pattern.fullmatch(str(value)), f"{where}.{name}: String should match pattern '^{pattern.pattern}$'")
    need(isinstance(block.get("input"), dict), f"{where}.input: Input should be a valid dictionary")


def _tool_result(block: dict[str, Any], where: str) -> None:
    need(isinstance(block.get("tool_use_id"), str), f"{where}.tool_use_id: Field required")
    need(type(block.get("is_error", False)) is bool, f"{where}.is_error: Input should be a valid boolean")
    content = block.get("content", "")
    need(isinstance(content, str | list), f"{where}.content: Input should be a valid string or list")
    need(content or not block.get("is_error"), f"{where}: content cannot be empty if `is_error` is true")
    for at, part in enumerate(content if isinstance(content, list) else []):
        check_block(part, f"{where}.content.{at}", {"text", "image", "document"})


def _thinking(block: dict[str, Any], where: str) -> None:
    for name in ("thinking", "signature"):
        need(isinstance(block.get(name), str), f"{where}.{name}: Field required")
    need(block["signature"] == signature(block["thinking"]), f"{where}: Invalid `signature` in `thinking` block")


def _other(block: dict[str, Any], where: str) -> None:
    name = {"redacted_thinking": "data", "compaction": "content"}.get(block["type"], "source")
    need(block.get(name), f"{where}.{name}: Field required")


def check_cache_control(body: dict[str, Any]) -> None:
    marks = [block["cache_control"] for block in _cacheable(body) if block.get("cache_control")]
    marks += [body["cache_control"]] if body.get("cache_control") else []
    lifetimes = []
    for mark in marks:
        is_valid = isinstance(mark, dict) and mark.get("type") == "ephemeral" and mark.get("ttl", "5m") in ("5m", "1h")
        need(is_valid, "cache_control: Input should be {'type': 'ephemeral'}, with 'ttl' '5m' or '1h' if any")
        lifetimes.append(mark.get("ttl", "5m"))
    need(len(marks) <= 4, f"A maximum of 4 blocks with cache_control may be provided. Found {len(marks)}.")
    in_order = lifetimes == sorted(lifetimes)
    need(in_order, "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block.")


def _cacheable(body: dict[str, Any]) -> list[dict[str, Any]]:
    contents = [body.get("tools"), body.get("system"), *(message["content"] for message in body["messages"])]
    return [block for content in contents if isinstance(content, list) for block in content]
