"""The tools by name: register, look up, list, validate, execute."""

import json
import logging
import re
from dataclasses import replace
from typing import Any

from models.pure.fitting import misfit
from models.pure.storable import is_deep, storable
from models.pure.visible import visible_lines
from models.settings import settings
from workers.tools.builtin.edit import EDIT
from workers.tools.builtin.find import GLOB
from workers.tools.builtin.grep import GREP
from workers.tools.builtin.read import READ
from workers.tools.builtin.shell import BASH, shell_ready
from workers.tools.builtin.write import WRITE
from workers.tools.clean import bounded
from workers.tools.errors import OutcomeUnknown, ToolError
from workers.tools.kinds import Tool, ToolContext, ToolResult, text_result
from workers.tools.output import OutputSoFar

__all__ = [
    "OutcomeUnknown", "OutputSoFar", "Tool", "ToolContext", "ToolError", "ToolResult",
    "execute", "listing", "look_up", "register", "shell_ready",
]  # fmt: skip

log = logging.getLogger(__name__)

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_tools: dict[str, Tool] = {}


def register(tool: Tool) -> Tool:
    """Register a tool. Errors: ValueError for a taken or malformed name, or a schema that is not closed."""
    if not _NAME.fullmatch(tool.name):
        raise ValueError(f"tool name {tool.name!r}: use 1 to 64 letters, digits, _ and -")
    if tool.name in _tools:
        raise ValueError(f"tool {tool.name!r} is registered already")
    if tool.input_schema.get("type") != "object" or tool.input_schema.get("additionalProperties") is not False:
        raise ValueError(f"tool {tool.name!r}: its schema must be an object with additionalProperties false")
    _tools[tool.name] = tool
    return tool


def look_up(name: str) -> Tool | None:
    """The tool of a name, None if there is none."""
    return _tools.get(name)


def listing() -> list[Tool]:
    """All tools, in the order of registration."""
    return list(_tools.values())


def execute(tool: Tool, context: ToolContext, input: dict[str, Any]) -> ToolResult:  # noqa: A002 - the wire's word
    """Run one call. Returns a clean and bounded result, also for errors of the tool.

    Errors: OutcomeUnknown alone. The caller has committed the attempt; this function retries nothing.
    """
    limits = settings()
    result = _run(tool, context, input)
    if result.question:
        return storable_question(result, limits.tool_output_bytes)
    content, whole = bounded(result.content, limits.tool_output_bytes, limits.tool_result_bytes, context.call_id)
    structured = None if is_deep(result.structured) else storable(result.structured)
    if structured is not None and len(json.dumps(structured)) > limits.tool_output_bytes:
        structured = None
    return replace(result, content=content, whole=whole, structured=structured)


def storable_question(result: ToolResult, limit: int) -> ToolResult:
    """The question of a tool, safe to store and to show; an error for a question that is too long."""
    assert result.question
    requests = storable(result.question.requests)
    if len(json.dumps(requests)) > limit or len(result.question.state or "") > limit:
        return text_result("its question to the user is too long to be shown", is_error=True)
    visible_requests = {key: {**request, "message": visible_lines(str(request["message"]))} for key, request in requests.items()}
    return replace(result, question=replace(result.question, requests=visible_requests))


def _run(tool: Tool, context: ToolContext, input: dict[str, Any]) -> ToolResult:  # noqa: A002
    if problem := misfit(tool.input_schema, input):
        return text_result(f"{tool.name}: {problem}", is_error=True)
    if context.cancelled.is_set():
        return text_result(f"{tool.name}: cancelled before it began", is_error=True)
    try:
        context.require_lease()
        return tool.run(context, input)
    except OutcomeUnknown:
        raise
    except ToolError as error:
        return text_result(f"{tool.name}: {error}", is_error=True)
    except Exception as error:  # noqa: BLE001 - a tool's failure is a result for the model, not a crash of the worker
        # The message may hold the call's input, which no log may show.
        log.error("tool %s failed inside, call %s: %s", tool.name, context.call_id, type(error).__name__)
        return text_result(f"{tool.name}: failed inside ({type(error).__name__})", is_error=True)


for _tool in (BASH, READ, WRITE, EDIT, GLOB, GREP):
    register(_tool)
