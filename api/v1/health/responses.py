"""Responses about the health of a web process."""

from typing import Literal

from pydantic import Field

from api.door.responses import ResponseModel


class Alive(ResponseModel):
    """The process is alive."""

    status: Literal["ok"]


class Ready(ResponseModel):
    """Whether the process can serve requests. The other fields are only for keys with the scope `admin`.

    A server that is not ready cannot look up keys: it says in `database`, to everybody, what is wrong and what to do.
    """

    status: Literal["ok", "not ready"]
    database: str = ""
    redis: str = ""
    held_back: list[str] = Field(default_factory=list)
    """The reasons why queued work waits."""
    audit: str = ""
    """`ok`, or the reason why the workspace's audit is not sealed: it may have been rewritten, or no process can seal it."""
