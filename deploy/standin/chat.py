"""The stand-in's other wire: validates a Chat Completions request like the real API, and translates it into a Messages request.

The scripts are the same on both wires. Like Gemini's endpoint, the stand-in signs its calls (`extra_content`) and refuses a history
in which its own call lacks the signature. Like Mistral's, it refuses another provider's call unless its id is 9 letters and digits.
"""

import json
import re
from typing import Any

from deploy.standin.rules import RefusedError, check_tools, need
from deploy.standin.writing import signature

# fmt: off
FIELDS = {
    "model", "messages", "max_completion_tokens", "max_tokens", "tools", "tool_choice", "parallel_tool_calls", "stream",
    "stream_options", "temperature", "top_p", "stop", "seed", "user", "metadata", "reasoning_effort", "response_format", "n",
}
# fmt: on
MESSAGE_FIELDS = {
    "system": {"content"},
    "developer": {"content"},
    "user": {"content"},
    "assistant": {"content", "tool_calls", "reasoning_content", "refusal"},
    "tool": {"content", "tool_call_id"},
}
FOREIGN_ID = re.compile(r"[A-Za-z0-9]{9}")
ERROR = "Error: "
"""Begins a failed result, since this wire has no field for a failure."""


def translated(body: Any) -> dict[str, Any]:
    """Return the request as a Messages request, for `replying.next_reply`. Raises `RefusedError` for the first fault."""
    need(isinstance(body, dict), "We could not parse the JSON body of your request.")
    for name in body.keys() - FIELDS:
        raise RefusedError(f"Unrecognized request argument supplied: {name}")
    need(isinstance(body.get("model"), str) and body["model"], "you must provide a model parameter")
    messages = body.get("messages")
    need(isinstance(messages, list) and messages, "Missing required parameter: 'messages'.")
    limits = [body[name] for name in ("max_completion_tokens", "max_tokens") if name in body]
    need(len(limits) < 2, "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
    need(all(type(limit) is int and limit > 0 for limit in limits), "Invalid 'max_completion_tokens': expected a positive integer.")
    tools = [_tool(tool, at) for at, tool in enumerate(body.get("tools") or [])]
    check_tools(tools, None)
    need("parallel_tool_calls" not in body or tools, "'parallel_tool_calls' is only allowed when 'tools' are specified.")
    system, plain = _messages(messages)
    request = {"model": body["model"], "max_tokens": limits[0] if limits else 16_384, "messages": plain, "tools": tools}
    return request | ({"system": system} if system else {})


def _tool(tool: Any, at: int) -> dict[str, Any]:
    need(isinstance(tool, dict) and tool.get("type") == "function", f"Invalid value: 'tools[{at}].type' must be 'function'.")
    function = tool.get("function")
    need(isinstance(function, dict), f"Missing required parameter: 'tools[{at}].function'.")
    parameters = function.get("parameters") or {"type": "object"}
    return {"name": function.get("name"), "description": function.get("description") or "", "input_schema": parameters}


def _messages(messages: list[Any]) -> tuple[str, list[dict[str, Any]]]:
    """Return the system prompt and the other messages, and check that each call has its result."""
    system: list[str] = []
    plain: list[dict[str, Any]] = []
    waiting: list[str] = []
    for at, message in enumerate(messages):
        _check_message(message, at)
        role = message["role"]
        if role == "tool":
            call_id = message["tool_call_id"]
            need(call_id in waiting, f"messages[{at}]: 'tool' must be a response to a preceding message with 'tool_calls'.")
            waiting.remove(call_id)
            _append(plain, "user", [_result(message)])
            continue
        need(not waiting, _without_results(waiting))
        if role in ("system", "developer"):
            system.append(message["content"])
        elif role == "user":
            _append(plain, "user", _parts(message["content"], at))
        else:
            calls = [_call(call, at) for call in message.get("tool_calls") or []]
            waiting = [call["id"] for call in calls]
            _append(plain, "assistant", [*([{"type": "text", "text": t}] if (t := message.get("content")) else []), *calls])
    need(not waiting, _without_results(waiting))
    return "\n".join(system), plain


def _check_message(message: Any, at: int) -> None:
    need(isinstance(message, dict), f"Invalid type for 'messages[{at}]': expected an object.")
    role = message.get("role")
    need(role in MESSAGE_FIELDS, f"Invalid value: '{role}'. Supported values are: {sorted(MESSAGE_FIELDS)}")
    for name in message.keys() - MESSAGE_FIELDS[role] - {"role"}:
        raise RefusedError(f"Unknown parameter: 'messages[{at}].{name}'.")
    content = message.get("content")
    if role in ("system", "developer", "tool"):
        need(isinstance(content, str), f"Invalid type for 'messages[{at}].content': expected a string.")
    elif role == "user":
        need(content, f"Missing required parameter: 'messages[{at}].content'.")
    else:
        need(content or message.get("tool_calls"), f"Invalid value for 'content': messages[{at}] has neither content nor calls.")
    need(
        role != "tool" or isinstance(message.get("tool_call_id"), str),
        f"Missing required parameter: 'messages[{at}].tool_call_id'.",
    )


def _parts(content: Any, at: int) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks: list[dict[str, Any]] = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        need(kind in ("text", "image_url", "file"), f"Invalid value: '{kind}' in 'messages[{at}].content'.")
        blocks.append({"type": "text", "text": part["text"]} if kind == "text" else {"type": "image", "source": part})
    return blocks


def _call(call: Any, at: int) -> dict[str, Any]:
    need(isinstance(call, dict) and isinstance(call.get("function"), dict), f"Invalid 'messages[{at}].tool_calls'.")
    for name in call.keys() - {"id", "type", "function", "extra_content"}:
        raise RefusedError(f"Unknown parameter: 'messages[{at}].tool_calls[0].{name}'.")
    call_id, function = str(call.get("id")), call["function"]
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        raise RefusedError(f"messages[{at}]: the arguments of {call_id} are not JSON") from None
    if call_id.startswith("call_"):
        has_signature = call.get("extra_content") == extra_content(function["name"])
        need(has_signature, f"Function call is missing a thought_signature in functionCall parts: {function['name']}.")
    else:
        need(FOREIGN_ID.fullmatch(call_id), f"Tool call id was {call_id} but must be a-z, A-Z, 0-9, with a length of 9.")
        need("extra_content" not in call, "Corrupted thought signature.")
    return {"type": "tool_use", "id": call_id, "name": function["name"], "input": arguments}


def extra_content(name: str) -> dict[str, Any]:
    """Return the signature that a call of this tool carries, and must carry again in a later request."""
    return {"google": {"thought_signature": signature(name)}}


def _result(message: dict[str, Any]) -> dict[str, Any]:
    text = message["content"]
    content = [{"type": "text", "text": text.removeprefix(ERROR)}] if text else []
    return {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content, "is_error": text.startswith(ERROR)}


def _append(messages: list[dict[str, Any]], role: str, blocks: list[dict[str, Any]]) -> None:
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"] += blocks
    else:
        messages.append({"role": role, "content": blocks})


def _without_results(calls: list[str]) -> str:
    return (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(calls)}"
    )
