"""The SDK's helpers that run tools, each in its own thread or process."""

import asyncio
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from anthropic import Anthropic, AsyncAnthropic
from crashes.processes import wait_for
from doors.served import MODEL, key, message
from rows.stage import Stage

from models.database.transactions import transaction
from models.workspace.api_key import ApiKey, NewKey

SCHEMA: Any = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
SECONDS = 20
"""The longest wait for a thread or process of an SDK."""


def results(stage: Stage, session_id: str, count: int = 1, kind: str = "user.custom_tool_result") -> list[Any]:
    """Wait for `count` results of the client. Returns these events."""

    def enough() -> list[Any]:
        events = stage.events(session_id, kind)
        return events if len(events) >= count else []

    return wait_for(f"{count} {kind}", enough)


def prepare(sdk: Anthropic, **policy: Any) -> str:
    """Start a session with one client tool. Returns its id."""
    tool: Any = {"type": "custom", "name": "look_up", "description": "d", "input_schema": SCHEMA} | policy
    return begin(sdk, sdk.beta.environments.list().data[0].id, tool)


def begin(sdk: Anthropic, environment_id: str, *tools: Any) -> str:
    """Start a session with these tools. Returns its id."""
    agent = sdk.beta.agents.create(name="A", model=MODEL, tools=tools)
    first: Any = message("Go.")
    return sdk.beta.sessions.create(agent=agent.id, environment_id=environment_id, initial_events=[first]).id


class Runner:
    """The SDK's tool runner on one session. It ends by itself once the session is idle."""

    def __init__(self, api: str, stage: Stage, session_id: str, *tools: Any) -> None:
        self.dispatched: list[Any] = []
        self.failure: BaseException | None = None
        self.primary_thread_id: str | None = None
        """The thread that the runner takes for the session's own, once it has ended."""
        self._asked = (api, key(stage), session_id, tools)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            asyncio.run(asyncio.wait_for(self._collect(), SECONDS))
        except BaseException as error:  # noqa: BLE001 - shown by `join`
            self.failure = error

    async def _collect(self) -> None:
        api, secret, session_id, tools = self._asked
        async with AsyncAnthropic(api_key=secret, base_url=api) as client:
            runner = client.beta.sessions.events.tool_runner(session_id, tools=tools, max_idle=0.2)
            async for dispatched in runner:
                self.dispatched.append(dispatched)
            self.primary_thread_id = runner._primary_thread_id

    def join(self) -> list[Any]:
        """Wait for its end. Returns the dispatched calls."""
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        assert self.failure is None, repr(self.failure)
        return self.dispatched


def environment_key(stage: Stage, environment_id: str) -> str:
    """Create a key that is bound to this environment. Returns its secret."""
    with transaction(stage.workspace_id) as db:
        return ApiKey.create(db, NewKey("worker", environment_id=environment_id))[1]


@contextmanager
def npm_worker(folder: Path, api: str, stage: Stage, environment_id: str, workdir: Path) -> Iterator[None]:
    """Run the npm SDK's `EnvironmentWorker` with its own toolset, in a process, until the block ends."""
    env = {
        "ASSENT_URL": api,
        "ASSENT_ENVIRONMENT_ID": environment_id,
        "ASSENT_ENVIRONMENT_KEY": environment_key(stage, environment_id),
    }
    command, pipe = ["node", "worker.mjs", str(workdir)], subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, env=os.environ | env, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as node:
        try:
            yield
        finally:
            try:
                output = node.communicate(timeout=SECONDS)  # closes its input, which ends it
            finally:
                node.kill()
        assert node.returncode == 0, output


@contextmanager
def python_worker(api: str, stage: Stage, environment_id: str, workdir: Path) -> Iterator[None]:
    """Run the Python SDK's `EnvironmentWorker` with its own toolset, in a thread, until the block ends."""
    over, failures = threading.Event(), list[BaseException]()
    secret = environment_key(stage, environment_id)

    async def serve() -> None:
        async with AsyncAnthropic(api_key="unused", base_url=api) as client:
            worker = client.beta.environments.work.worker(
                environment_id=environment_id, environment_key=secret, workdir=str(workdir), max_idle=0.2
            )
            task = asyncio.ensure_future(worker.run())
            task.add_done_callback(lambda _: over.set())
            await asyncio.to_thread(over.wait)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001 - shown below
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(SECONDS)
    assert not thread.is_alive()
    assert not failures, failures
