"""The lines of the log: one JSON object per line in production, with the ids of what is worked on and never a content."""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from models.settings import settings

Ids = Callable[[], Mapping[str, str]]
"""Returns the ids of the request or task that runs, by their fields' names. It is called for each line."""


class JsonLine(logging.Formatter):
    """Formats a record as one line: time, level, logger, message, ids, and the traceback of an error."""

    def __init__(self, ids: Ids) -> None:
        super().__init__()
        self._ids = ids

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **self._ids(),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False, default=str)


def use(handlers: Iterable[logging.Handler], ids: Ids) -> None:
    """Have these handlers write JSON lines, unless ASSENT_LOG_FORMAT or the environment says text."""
    if is_json():
        for handler in handlers:
            handler.setFormatter(JsonLine(ids))


def is_json() -> bool:
    """True if the log has JSON lines."""
    s = settings()
    return (s.log_format or ("json" if s.environment == "production" else "text")) == "json"
