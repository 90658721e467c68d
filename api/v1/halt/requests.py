"""Requests about halts."""

from typing import Annotated

from pydantic import StringConstraints

from api.door.requests import Body, examples


class HaltStart(Body):
    """A halt of the workspace."""

    model_config = examples({"reason": "The refund tool pays twice."}, {})

    reason: Annotated[str, StringConstraints(min_length=1, max_length=1000)] | None = None
    """Shown to everybody while the workspace is halted."""
