"""A request in OpenAI's format waits for a limited time, without a transaction, and keeps its connection alive meanwhile."""

from collections.abc import Iterator

import pytest
from doors.served import served
from rows.stage import Stage, say
from wire.talking import Talk, content, talking, user

from models.database.transactions import transaction
from models.workspace.api_key import ApiKey, NewKey


@pytest.fixture(scope="module")
def hasty(database_urls: object, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an API server whose requests wait for 2 s."""
    log = tmp_path_factory.mktemp("hasty") / "log"
    with served(log, ASSENT_CHAT_SECONDS="2", ASSENT_STREAM_COMMENT_SECONDS="0.3", ASSENT_STREAM_POLL_SECONDS="0.2") as url:
        yield url


@pytest.fixture
def talk(hasty: str, stage: Stage) -> Iterator[Talk]:
    """A client of an agent with the built-in tools, which ask."""
    with talking(hasty, stage) as client:
        yield client


@pytest.mark.parametrize("stream", [False, True])
def test_after_the_time_limit_the_next_request_goes_on_waiting(talk: Talk, *, stream: bool) -> None:
    answer = talk.create(user("Go."), stream=stream)
    session_id = talk.begun()
    message = {"role": "assistant", "content": content(answer) if stream else answer.choices[0].message.content}
    assert message["content"] == ""
    assert (answer[-1] if stream else answer).assent["running"] is True
    assert (answer[-1] if stream else answer).choices[0].finish_reason == "stop"
    more = talk.ask(user("Go."), message)
    talk.reply(say("Done."))
    assert more.result().choices[0].message.content == "Done."
    assert talk.said(session_id) == [["Go."]]


def test_a_waiting_request_keeps_no_transaction_open_and_sends_comments(talk: Talk) -> None:
    body = {"model": talk.model, "messages": [user("Go.")], "stream": True}
    with talk.caller.stream("POST", "/v1/chat/completions", json=body) as response:
        lines = response.iter_lines()
        assert [next(lines) for _ in range(6)].count(": ") >= 1
        with transaction(talk.stage.workspace_id) as db:
            idle = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'"
            assert db.value(idle) == 0
        assert list(lines)[-2] == "data: [DONE]"


def test_revoking_the_key_ends_the_wait_with_an_error(hasty: str, stage: Stage) -> None:
    with transaction(stage.workspace_id) as db:
        row, secret = ApiKey.create(db, NewKey("k", scopes=frozenset({"sessions", "read", "agents"})))
    with talking(hasty, stage) as talk:
        headers = {"x-api-key": secret}
        body = {"model": talk.model, "messages": [user("Go.")], "stream": True}
        with talk.caller.stream("POST", "/v1/chat/completions", json=body, headers=headers) as response:
            with transaction(stage.workspace_id) as db:
                ApiKey.revoke(db, row.id, by=stage.principal)
            text = "".join(response.iter_text())
    assert '"invalid_api_key"' in text
    assert "[DONE]" not in text
