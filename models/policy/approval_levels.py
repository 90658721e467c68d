"""The levels at which an agent, or its workspace, says how people are asked."""

from collections.abc import Iterator, Mapping
from typing import Any

Settings = Mapping[str, Any]


def approval_levels(agent: Settings, workspace: Settings) -> Iterator[tuple[str, list[Settings]]]:
    """Yield the path of every place in `agent` that may have an `approval`, with all levels that hold there, in the order of
    `models.pure.offer.LEVELS`.

    `workspace` is `{"policy": ..., "approval": ...}`.
    """
    over = [workspace.get("approval") or {}, agent.get("approval") or {}]
    yield "approval", over
    for index, tool in enumerate(agent.get("tools") or ()):
        if tool["type"] == "custom":
            yield f"tools.{index}.approval", [*over, {}, tool.get("approval") or {}]
            continue
        toolset = [*over, tool["default_config"].get("approval") or {}]
        yield f"tools.{index}.default_config.approval", toolset
        for config in tool["configs"]:
            yield f"tools.{index}.configs.{config['name']}.approval", [*toolset, config.get("approval") or {}]


def may_need_four_eyes(agent: Settings, workspace: Settings) -> bool:
    """True if calls of some tool need four eyes, tools that are not listed yet included."""
    return any(level.get("four_eyes") for _, levels in approval_levels(agent, workspace) for level in levels)
