"""What a web process says of itself."""

from typing import Literal

from api.answers.base import Answer


class Alive(Answer):
    """The process answers."""

    status: Literal["ok"]


class Ready(Answer):
    """Whether it can do its work, and what waits for which reason."""

    status: Literal["ok", "not ready"]
    database: str
    redis: str
    held_back: list[str]
    audit: list[str]
    """Why workspaces are not sealed: somebody may have rewritten the audit."""
