"""A client sends and then streams, as the SDKs' examples do, or streams and then sends. Both SDKs get each event once.

The tests play the workers' part, so that a run certainly ends before its stream is opened. Two web processes serve.
"""

import os
import subprocess
from collections.abc import Callable, Iterator
from json import loads
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic
from doors.reading import stream
from doors.served import MODEL, Caller, key, served
from rows.stage import Stage, say
from wire.running import SECONDS

SILENCE = 10
"""Seconds of silence after which a stream has lost something. Shorter than the time between two comments."""
RUN = ["session.status_running", "span.model_request_start", "agent.message", "span.model_request_end", "session.status_idle"]
"""The events after a message, without the usage."""


@pytest.fixture(scope="module")
def other_api(database_urls: object, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A second web process on the same database."""
    with served(tmp_path_factory.mktemp("other") / "log", ASSENT_STREAM_POLL_SECONDS="0.2") as url:
        yield url


@pytest.fixture
def secret(stage: Stage) -> str:
    """The API key of all clients."""
    return key(stage)


@pytest.fixture
def clients(api: str, other_api: str, secret: str) -> Iterator[list[Anthropic]]:
    """One strict client of each web process."""
    options: Any = {"api_key": secret, "max_retries": 0, "timeout": SILENCE, "_strict_response_validation": True}
    with Anthropic(base_url=api, **options) as one, Anthropic(base_url=other_api, **options) as other:
        yield [one, other]


@pytest.fixture
def session_id(clients: list[Anthropic]) -> str:
    """An idle session."""
    beta = clients[0].beta
    agent = beta.agents.create(name="A", model=MODEL)
    return beta.sessions.create(agent=agent.id, environment_id=beta.environments.list().data[0].id).id


def send(client: Anthropic, session_id: str, text: str) -> None:
    """Post one message."""
    client.beta.sessions.events.send(session_id, events=[{"type": "user.message", "content": [{"type": "text", "text": text}]}])


def read(opened: Any) -> list[tuple[str, str]]:
    """Read a stream up to idle, as the examples do. Returns the ids and types of the events."""
    events = []
    for event in opened:
        events.append((event.id, event.type))
        if event.type == "session.status_idle":
            break
    return events


def check(stage: Stage, session_id: str, streamed: list[tuple[str, str]], runs: int) -> None:
    """Assert that each stored event was streamed once, apart from the messages themselves."""
    stored = [(event.id, event.type) for event in stage.events(session_id)]
    answers = [event for event in stored if event[1] != "user.message"]
    assert [event for event in streamed if event[1] != "user.message"] == answers
    assert [kind for _, kind in answers if kind != "session.usage"] == RUN * runs


def send_then_stream(clients: list[Anthropic], stage: Stage, session_id: str, text: str) -> list[tuple[str, str]]:
    """The idiom of examples/agents.py. Each request goes to the other web process."""
    send(clients[0], session_id, text)
    stage.reply(session_id, say(text))
    clients.reverse()
    with clients[0].beta.sessions.events.stream(session_id) as opened:
        return read(opened)


def stream_then_send(clients: list[Anthropic], stage: Stage, session_id: str, text: str) -> list[tuple[str, str]]:
    """The idiom of our README."""
    clients.reverse()
    with clients[0].beta.sessions.events.stream(session_id) as opened:
        send(clients[1], session_id, text)
        stage.reply(session_id, say(text))
        return read(opened)


Idiom = Callable[[list[Anthropic], Stage, str, str], list[tuple[str, str]]]


@pytest.mark.parametrize(
    "idioms",
    [
        [send_then_stream] * 3,
        [stream_then_send] * 3,
        [send_then_stream, stream_then_send, send_then_stream],
        [stream_then_send, send_then_stream, stream_then_send],
    ],
    ids=lambda idioms: " and ".join(idiom.__name__ for idiom in idioms),
)
def test_each_event_comes_once_over_several_messages_and_processes(
    clients: list[Anthropic], stage: Stage, session_id: str, idioms: list[Idiom]
) -> None:
    streamed = [event for idiom in idioms for event in idiom(clients, stage, session_id, "Hello.")]
    check(stage, session_id, streamed, runs=len(idioms))


@pytest.mark.parametrize("idiom", [send_then_stream, stream_then_send])
def test_the_stream_of_another_principal_changes_nothing(
    api: str, clients: list[Anthropic], stage: Stage, session_id: str, idiom: Idiom
) -> None:
    """Somebody else streams all the time, and sees each run end before the sender opens a stream."""
    with Caller(api, key(stage)) as other, stream(other, session_id) as watched:
        streamed, seen = [], []
        for text in ("One.", "Two."):
            streamed += idiom(clients, stage, session_id, text)
            seen += [(frame.data["id"], frame.event) for frame in watched.until("session.status_idle")]
    check(stage, session_id, streamed, runs=2)
    check(stage, session_id, seen, runs=2)


@pytest.mark.parametrize("idiom", ["send-then-stream", "stream-then-send"])
def test_the_npm_sdk_gets_each_event_once(api: str, stage: Stage, secret: str, session_id: str, npm_sdk: Path, idiom: str) -> None:
    env = os.environ | {"ASSENT_URL": api, "ASSENT_API_KEY": secret}
    command, pipe = ["node", "sending.mjs", idiom, session_id], subprocess.PIPE
    with subprocess.Popen(command, cwd=npm_sdk, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as node:
        assert node.stdin
        assert node.stdout
        try:
            for text in ("One.", "Two."):
                assert node.stdout.readline() == "sent\n"
                stage.reply(session_id, say(text))
                node.stdin.write("ended\n")
                node.stdin.flush()
            out, err = node.communicate(timeout=SECONDS)
        finally:
            node.kill()
    assert node.returncode == 0, err
    check(stage, session_id, [tuple(event) for event in loads(out)], runs=2)
