"""Suggests patterns for a grant, from the call that waits: from narrow to wide."""

import json
from typing import Any

from models.pure.policy.patterns import Part, parts, patterns
from models.pure.shell import read
from models.session.approval.row import Approval


def suggested(approval: Approval) -> list[str]:
    """Return rule texts such as `bash(git push *)` and `edit(src/**)`. They come from the masked input and repeat no secret."""
    return patterns(approval.tool, _arguments(approval))


def parts_of(approval: Approval) -> list[Part]:
    """Return the commands of a line of several, each with rule texts that cover it; none for other calls."""
    return parts(approval.tool, _arguments(approval))


def why_none(approval: Approval) -> str:
    """Return why no pattern of commands can ever cover the call, in words; empty for a call that one can cover."""
    command = _arguments(approval).get("command")
    return read(command).doubt or "" if approval.tool == "bash" and isinstance(command, str) else ""


def commands_of(approval: Approval) -> int:
    """Return how many commands the call's line certainly runs; 0 if that is not certain, or for another tool."""
    command = _arguments(approval).get("command")
    if approval.tool != "bash" or not isinstance(command, str):
        return 0
    line = read(command)
    return 0 if line.doubt else len(line.commands)


def _arguments(approval: Approval) -> dict[str, Any]:
    masked_input = approval.masked
    arguments: dict[str, Any] = masked_input.arguments if masked_input.paths else json.loads(approval.input)
    return arguments
