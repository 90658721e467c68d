"""Names of tools for people."""

from models.pure.text.visible import visible


def tool_in_words(tool: str) -> str:
    """Return a tool's name as people read it: `shop refund` for `mcp__shop__refund`."""
    return visible(" ".join(tool.removeprefix("mcp__").split("__")) if tool.startswith("mcp__") else tool)
