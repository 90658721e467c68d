"""The OpenAI SDK as a client of agents. The test plays the worker."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from crashes.processes import wait_for
from doors.served import Caller, key
from openai import DefaultHttpxClient, OpenAI
from rows.stage import Stage
from wire.running import SECONDS

from models.database.transactions import transaction
from models.session.tool_call.row import ToolCall

LOOK_UP: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Look up a number.",
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    },
}
"""A client tool."""
TOOLSET = {"type": "agent_toolset_20260401"}


class Talk:
    """A client of a workspace's agent. Its requests can wait in threads."""

    def __init__(self, caller: Caller, stage: Stage, sdk: OpenAI, pool: ThreadPoolExecutor) -> None:
        self.caller, self.stage, self.sdk, self.pool = caller, stage, sdk, pool
        self.agent_id: str = self.caller.agent(tools=[TOOLSET])["id"]
        self.session_id = ""

    @property
    def model(self) -> str:
        """The agent's name as a model."""
        return f"assent/{self.agent_id}"

    def create(self, *messages: Any, **more: Any) -> Any:
        """Send a request. Returns a ChatCompletion, or the list of chunks with `stream=True`."""
        metadata = {"session_id": self.session_id} if self.session_id else {}
        body: Any = {"model": self.model, "messages": list(messages), "metadata": metadata} | more
        response = self.sdk.chat.completions.create(**body)
        return list(response) if more.get("stream") else response

    def ask(self, *messages: Any, **more: Any) -> "Future[Any]":
        """Send a request in a thread. Returns the future response."""
        return self.pool.submit(self.create, *messages, **more)

    def begun(self) -> str:
        """Wait for a queued turn in the workspace. Returns the id of its session."""

        def newest() -> str:
            with transaction(self.stage.workspace_id) as db:
                return db.value("SELECT session_id FROM turn WHERE status = 'queued' ORDER BY created_at DESC LIMIT 1") or ""

        self.session_id = wait_for("a queued turn", newest, 60)  # a client in Node takes long to start on a busy machine
        return self.session_id

    def reply(self, *blocks: dict[str, Any], **more: Any) -> list[ToolCall]:
        """Run the next turn with this reply. Returns its calls."""
        return self.stage.reply(self.begun(), *blocks, **more)

    def said(self, session_id: str) -> list[list[str]]:
        """Return the texts of each user message of the session."""
        events = self.stage.events(session_id, "user.message")
        return [[block.get("text", "") for block in event.body["content"]] for event in events]

    def sessions(self) -> int:
        """Return the number of sessions."""
        with transaction(self.stage.workspace_id) as db:
            return int(db.value("SELECT count(*) FROM session"))


@contextmanager
def talking(url: str, stage: Stage, **client: Any) -> Iterator[Talk]:
    """Open a strict SDK client of the server at `url`."""
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
    """Return a message of the user."""
    return {"role": "user", "content": text}


def tool(call_id: str, text: str) -> dict[str, str]:
    """Return the result of a client tool."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def content(chunks: list[Any]) -> str:
    """Return the text of a stream."""
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
