"""Runs one call of a tool: checks the input, and makes the result safe to store and to show."""

import json
import logging
from dataclasses import replace
from typing import Any

from assent import ToolError
from models.pure.json.fitting import misfit
from models.pure.json.storable import is_deep, storable
from models.pure.text.visible import visible_lines
from models.settings import settings
from workers.tools.clean import bounded
from workers.tools.kinds import Tool, ToolContext, ToolResult, text_result
from workers.tools.output import OutcomeUnknown

log = logging.getLogger(__name__)


def execute(tool: Tool, context: ToolContext, input: dict[str, Any]) -> ToolResult:  # noqa: A002 - the wire's word
    """Run one call. Returns a clean and bounded result, also for errors of the tool.

    Raises OutcomeUnknown alone. The caller has committed the attempt; this function retries nothing.
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
    """Return the question of a tool, safe to store and to show; an error for a question that is too long."""
    assert result.question
    requests = storable(result.question.requests)
    if len(json.dumps(requests)) > limit or len(result.question.state or "") > limit:
        return text_result("its question to the user is too long to be shown", is_error=True)
    visible_requests = {key: {**request, "message": visible_lines(str(request["message"]))} for key, request in requests.items()}
    return replace(result, question=replace(result.question, requests=visible_requests))


def _run(tool: Tool, context: ToolContext, input: dict[str, Any]) -> ToolResult:  # noqa: A002
    try:
        if problem := misfit(tool.input_schema, input):
            return text_result(f"{tool.name}: {problem}", is_error=True)
        if context.cancelled.is_set():
            return text_result(f"{tool.name}: cancelled before it began", is_error=True)
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
