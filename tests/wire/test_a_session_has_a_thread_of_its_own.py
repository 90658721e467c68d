"""A session's own thread, through the strict SDK: a stable id, and the session's status, events and end."""

import threading
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic
from doors.served import key
from rows.stage import Stage, call, say
from wire.running import SECONDS, begin

TOOLSET: Any = {"type": "agent_toolset_20260401"}


@pytest.fixture
def session_id(sdk: Anthropic) -> str:
    """A running session."""
    return begin(sdk, sdk.beta.environments.list().data[0].id, TOOLSET)


def test_it_is_listed_and_found(sdk: Anthropic, session_id: str) -> None:
    [thread] = sdk.beta.sessions.threads.list(session_id)
    assert (thread.id, thread.session_id, thread.parent_thread_id) == ("sthr_" + session_id[5:], session_id, None)
    again = sdk.beta.sessions.threads.retrieve(thread.id, session_id=session_id)
    assert again.model_copy(update={"stats": thread.stats, "usage": thread.usage}) == thread, (
        "the statistics alone, which have ages, may differ"
    )
    assert thread.agent.type == "agent"
    assert thread.agent.name == "A"
    assert [t.id for t in sdk.beta.sessions.threads.list(session_id, statuses=["running"])] == [thread.id]
    assert list(sdk.beta.sessions.threads.list(session_id, statuses=["idle", "terminated"])) == []


def test_its_events_and_usage_are_the_session_s(sdk: Anthropic, stage: Stage, session_id: str) -> None:
    [thread] = sdk.beta.sessions.threads.list(session_id)
    with sdk.beta.sessions.threads.events.stream(thread.id, session_id=session_id) as stream:
        streamed: list[Any] = []
        reader = threading.Thread(target=streamed.extend, args=(stream,), daemon=True)
        reader.start()
        stage.reply(session_id, call())
        sdk.beta.sessions.events.send(session_id, events=[{"type": "user.interrupt", "session_thread_id": thread.id}])
        sdk.beta.sessions.archive(session_id)
        reader.join(SECONDS)
        assert not reader.is_alive()
    listed = list(sdk.beta.sessions.threads.events.list(thread.id, session_id=session_id, limit=3))
    assert listed == list(sdk.beta.sessions.events.list(session_id))
    assert [e.id for e in streamed] == [e.id for e in listed][-len(streamed) :]
    used = sdk.beta.sessions.threads.retrieve(thread.id, session_id=session_id).usage
    assert used
    assert used.output_tokens == 5


def test_its_archive_is_the_session_s(sdk: Anthropic, stage: Stage, session_id: str) -> None:
    [thread] = sdk.beta.sessions.threads.list(session_id)
    with pytest.raises(anthropic.ConflictError, match="running"):
        sdk.beta.sessions.threads.archive(thread.id, session_id=session_id)
    stage.reply(session_id, say("Done."))
    archived = sdk.beta.sessions.threads.archive(thread.id, session_id=session_id)
    assert archived.status == "terminated"
    assert archived.archived_at == sdk.beta.sessions.retrieve(session_id).archived_at


def test_every_other_thread_is_unknown(sdk: Anthropic, api: str, session_id: str) -> None:
    other = begin(sdk, sdk.beta.environments.list().data[0].id)
    stranger = Stage()
    threads = sdk.beta.sessions.threads
    with Anthropic(api_key=key(stranger), base_url=api, max_retries=0) as elsewhere:
        for client, thread_id in ((threads, "sthr_" + other[5:]), (elsewhere.beta.sessions.threads, "sthr_" + session_id[5:])):
            for act in (client.retrieve, client.archive, client.events.list, client.events.stream):
                with pytest.raises(anthropic.NotFoundError):
                    act(thread_id, session_id=session_id)
    with pytest.raises(anthropic.BadRequestError, match="session_thread_id"):
        sdk.beta.sessions.events.send(session_id, events=[{"type": "user.interrupt", "session_thread_id": "sthr_" + other[5:]}])
