"""Answers about threads."""

from typing import Annotated, Literal

from pydantic import Field

from api.answers.agents import SessionAgent
from api.answers.base import Answer, Page, SessionId, ThreadId, Time
from api.answers.sessions import Usage


class Thread(Answer):
    """A session's own thread."""

    id: ThreadId
    type: Literal["session_thread"]
    session_id: SessionId
    parent_thread_id: None
    agent: SessionAgent
    status: Literal["idle", "running", "rescheduling", "terminated"]
    stats: Annotated[dict[str, int], Field(max_length=0)]
    usage: Usage
    created_at: Time
    updated_at: Time
    archived_at: Time | None


class ThreadPage(Page[Thread]):
    """The session's threads."""
