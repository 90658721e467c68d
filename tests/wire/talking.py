"""The OpenAI SDK as a client of agents; the test plays the worker."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from doors.served import Caller, key
from openai import DefaultHttpxClient, OpenAI
from rows.stage import Stage
from wire.running import SECONDS, until

from models.database.transactions import transaction
from models.session.tool_call import ToolCall

LOOK_UP: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Look up a number.",
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    },
}
"""A tool of the client's."""
TOOLSET = {"type": "agent_toolset_20260401"}


class Talk:
    """One client of a workspace's agent, whose requests wait in threads of their own."""

    def __init__(self, caller: Caller, stage: Stage, sdk: OpenAI, pool: ThreadPoolExecutor) -> None:
        self.caller, self.stage, self.sdk, self.pool = caller, stage, sdk, pool
        self.agent_id: str = self.caller.agent(tools=[TOOLSET])["id"]
        self.session_id = ""

    @property
    def model(self) -> str:
        """The agent as a model."""
        return f"assent/{self.agent_id}"

    def create(self, *messages: Any, **more: Any) -> Any:
        """The answer to a request: a ChatCompletion, or the list of chunks with `stream=True`."""
        metadata = {"session_id": self.session_id} if self.session_id else {}
        body: Any = {"model": self.model, "messages": list(messages), "metadata": metadata} | more
        answer = self.sdk.chat.completions.create(**body)
        return list(answer) if more.get("stream") else answer

    def ask(self, *messages: Any, **more: Any) -> "Future[Any]":
        """The answer that is still to come."""
        return self.pool.submit(self.create, *messages, **more)

    def begun(self) -> str:
        """The id of the workspace's newest session, once its turn is queued."""

        def found() -> str | None:
            with transaction(self.stage.workspace_id) as db:
                queued = "SELECT session_id FROM turn WHERE status = 'queued' ORDER BY created_at DESC LIMIT 1"
                session_id: str | None = db.value(queued)
                return session_id

        self.session_id = until(found, "a queued turn")
        return self.session_id

    def reply(self, *blocks: dict[str, Any], **more: Any) -> list[ToolCall]:
        """Play the worker's part of the next turn. Returns its calls."""
        return self.stage.reply(self.begun(), *blocks, **more)

    def said(self, session_id: str) -> list[list[str]]:
        """The texts of each message that the session got."""
        events = self.stage.events(session_id, "user.message")
        return [[block.get("text", "") for block in event.body["content"]] for event in events]

    def sessions(self) -> int:
        """How many sessions there are."""
        with transaction(self.stage.workspace_id) as db:
            number: int = db.value("SELECT count(*) FROM session")
            return number


@contextmanager
def talking(url: str, stage: Stage, **client: Any) -> Iterator[Talk]:
    """A strict SDK client of the server at `url`."""
    http = DefaultHttpxClient()
    options = {"max_retries": 0, "timeout": SECONDS, "_strict_response_validation": True, "http_client": http} | client
    secret = key(stage)
    with (
        ThreadPoolExecutor(4) as pool,
        OpenAI(api_key=secret, base_url=f"{url}/v1", **options) as sdk,
        Caller(url, secret) as caller,
    ):
        yield Talk(caller, stage, sdk, pool)


def user(text: str) -> dict[str, str]:
    """A message of the user."""
    return {"role": "user", "content": text}


def tool(call_id: str, text: str) -> dict[str, str]:
    """A result of a tool of the client's."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def content(chunks: list[Any]) -> str:
    """The text of a stream."""
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
