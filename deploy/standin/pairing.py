"""Checks that the message after a tool call starts with its result, as the real Messages API does."""

from typing import Any

from deploy.standin.rules import need


def check_pairs(messages: list[dict[str, Any]]) -> None:
    """Raise `RefusedError` if a result is missing. Adjacent messages of one role count as one, as in the real API."""
    calls: dict[str, None] = {}
    call_ids: set[str] = set()
    for at, role, blocks in _merged(messages):
        if role == "user":
            _check_results(at, blocks, calls)
            calls = {}
        elif calls:
            need(False, _without_results(at - 1, list(calls)))
        for block in blocks:
            if block["type"] == "tool_use":
                need(block["id"] not in call_ids, "messages: `tool_use` ids must be unique")
                call_ids.add(block["id"])
                calls[block["id"]] = None


def _check_results(at: int, blocks: list[dict[str, Any]], calls: dict[str, None]) -> None:
    with_result: set[str] = set()
    leading = True
    for position, block in enumerate(blocks):
        if block["type"] != "tool_result":
            leading = False
            continue
        call = block["tool_use_id"]
        need(
            call in calls,
            f"messages.{at}.content.{position}: unexpected `tool_use_id` found in `tool_result` blocks: {call}. "
            "Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
        )
        need(
            call not in with_result,
            f"each tool_use must have a single result. Found multiple `tool_result` blocks with id: {call}",
        )
        if leading:
            with_result.add(call)
    missing = [call for call in calls if call not in with_result]
    need(not missing, _without_results(at - 1, missing))


def _without_results(at: int, calls: list[str]) -> str:
    return (
        f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(calls)}. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )


def _merged(messages: list[dict[str, Any]]) -> list[tuple[int, str, list[dict[str, Any]]]]:
    merged: list[tuple[int, str, list[dict[str, Any]]]] = []
    for at, message in enumerate(messages):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if merged and merged[-1][1] == message["role"]:
            merged[-1] = (merged[-1][0], message["role"], merged[-1][2] + blocks)
        else:
            merged.append((at, message["role"], blocks))
    return merged
