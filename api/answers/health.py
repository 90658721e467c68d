"""What a web process says of itself."""

from typing import Literal

from pydantic import Field

from api.answers.base import Answer


class Alive(Answer):
    """The process answers."""

    status: Literal["ok"]


class Ready(Answer):
    """Whether it can do its work. The rest is for a key with the scope `admin`: what it stands on, and why work waits."""

    status: Literal["ok", "not ready"]
    database: str = ""
    redis: str = ""
    held_back: list[str] = Field(default_factory=list)
    audit: str = ""
    """`ok`, or the reason why the workspace's audit is not sealed: the audit may have been rewritten."""
