"""A declared function as a tool: how a worker lists it, and one call of it."""

import json
import logging
import random
import re
import threading
from pathlib import Path
from typing import Any

from assent import Context, Declaration, ToolError, Toolset

from .returned import Result, result_of
from .signature import read

TRIES = 3
"""How often one call runs a function that fails with one of its `retry_on`."""
WAIT_SECONDS = 0.2
"""The longest wait before the second try; each further wait is twice as long."""
_FIELD = re.compile(r"\{(/?[\w.~/-]+)\}")


class RunnableTool:
    """One declared function. Raises TypeError and ValueError, which name the function, the fault and the remedy."""

    def __init__(self, toolset: str, declaration: Declaration) -> None:
        self._log = logging.getLogger(f"toolset.{toolset}")
        self._declaration = declaration
        self._signature = read(declaration.function, Context, declaration.masked, declaration.where)
        for field in _FIELD.findall(declaration.prompt):
            name = field.removeprefix("/").replace("/", ".").partition(".")[0]
            if name not in (*self._signature.parameters, "tool"):
                raise ValueError(f"{declaration.where}: prompt names {name!r}, which is {self._signature.no_parameter}")
        self.entry = self._entry()
        """The tool as JSON, for workers and for models: the worker's `Tool.as_entry`."""
        json.dumps(self.entry, allow_nan=False)

    def _entry(self) -> dict[str, Any]:
        declared = self._declaration
        cache, policy = declared.cache, declared.policy
        return {
            "name": declared.name,
            "description": self._signature.description,
            "input_schema": self._signature.input_schema,
            "effect": declared.effect,
            "idempotent": declared.idempotent,
            "seconds": declared.seconds,
            "prompt": declared.prompt,
            "cache": {"seconds": cache.seconds, "scope": cache.scope} if cache else None,
            "policy": {"type": policy} if isinstance(policy, str) else dict(policy) if policy is not None else None,
            "approval": declared.approval,
            "queue": declared.queue,
            "workdir": declared.workdir,
            "annotations": {},
        }

    def run(self, call: dict[str, Any], fields: dict[str, Any], cancelled: threading.Event) -> Result:
        """Run one call. `call` has the fields of `Context`. Raises ToolError, and those of the function."""
        arguments = self._signature.arguments(fields)
        folder = Path(call["folder"]) if self._declaration.workdir else None
        context = Context(**{**call, "folder": folder}, log=self._log, cancelled=cancelled)
        arguments |= dict.fromkeys(self._signature.contexts, context)
        for attempt in range(1, TRIES + 1):
            try:
                return result_of(self._declaration.function(**arguments))
            except ToolError:
                raise
            except self._declaration.retry_on as error:
                wait = WAIT_SECONDS * 2 ** (attempt - 1) * random.uniform(0.5, 1)  # noqa: S311 - jitter is not a secret
                if attempt == TRIES or cancelled.wait(wait):
                    raise
                self._log.warning("call %s: try %d failed (%s)", context.call_id, attempt, type(error).__name__)
        raise AssertionError("unreachable")


def tools_of(toolset: Toolset) -> dict[str, RunnableTool]:
    """Return the tools of a toolset by name. Raises TypeError and ValueError."""
    return {name: RunnableTool(toolset.name, declaration) for name, declaration in toolset.tools.items()}
