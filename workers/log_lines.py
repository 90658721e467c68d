"""The log of workers and beat: the ids of the task that runs, and no line for a sweep that had nothing to do."""

import logging
from typing import Any

from celery import current_task

from models.operate import log_lines

_FIELDS = {"sesn": "session_id", "wrkspc": "workspace_id", "turn": "turn_id", "sevt": "call_id"}
"""The field of an id in a task's message, by the id's prefix."""


def ids() -> dict[str, str]:
    """Return the name and the id of the task that runs here, and the ids in its message."""
    if not current_task:
        return {}
    request = current_task.request
    fields = {"task": str(current_task.name), "task_id": str(request.id)}
    for value in request.args or ():
        if isinstance(value, str) and "_" in value:
            fields.setdefault(_FIELDS.get(value.partition("_")[0], "row_id"), value)
    return fields


class OnlyWhatActed(logging.Filter):
    """Drops the lines about sweeps that had nothing to do: beat starts about a hundred sweeps a minute."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return False for a line that says only that a sweep was sent, received, or did nothing."""
        if record.levelno > logging.INFO:
            return True
        if record.name == "celery.beat":
            return "Sending due task" not in record.msg
        data: dict[str, Any] = getattr(record, "data", None) or {}
        name = str(data.get("name", ""))
        if not name.startswith("sweep."):
            return True
        return name != "sweep.report" and data.get("return_value", "''") not in ("''", "None")


def use(logger: logging.Logger, **_: Any) -> None:
    """Configure the log of a worker or beat, after Celery has. At the level `debug` no line is dropped."""
    log_lines.use(logger.handlers, ids)
    for handler in [] if logger.isEnabledFor(logging.DEBUG) else logger.handlers:
        handler.addFilter(OnlyWhatActed())
