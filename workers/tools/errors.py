"""Errors of tools. `ToolError` is also what a team's functions raise."""

from assent import ToolError

__all__ = ["LAPSED", "OutcomeUnknown", "ToolError"]

LAPSED = "its worker did not renew its lease in time, so that others may have the call by now"


class OutcomeUnknown(Exception):
    """It is unknown whether the call's effect has ended. A person must settle the call."""
