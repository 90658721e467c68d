"""What a turn may rely on when Claude does not answer."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from made_streams import BEGIN, delta, end, events, start, stop

from models.settings import settings
from workers.providers import ModelError, ModelRequest, Provider, anthropic

RequestOf = Callable[..., ModelRequest]
UseModelAt = Callable[[str], Provider]
Answering = Callable[..., str]


def ignore(index: int, text: str) -> None:
    pass


def failure(provider: Provider, request: ModelRequest) -> ModelError:
    with pytest.raises(ModelError) as caught:
        provider.ask(request, ignore)
    return caught.value


# Streams that break


def test_a_connection_that_drops_inside_a_call_gives_no_call_and_may_be_tried_again(
    provider: Provider, request_of: RequestOf
) -> None:
    request = request_of('call bash {"command": "ls"}\ndrop connection mid-stream 1 times')
    error = failure(provider, request)
    assert (error.kind, error.retryable) == ("failed", True)
    assert provider.ask(request, ignore).content[0]["input"] == {"command": "ls"}


@pytest.mark.parametrize(
    ("status", "kind"), [(529, "overloaded"), (429, "rate_limited"), (500, "failed"), (504, "failed"), (400, "unacceptable")]
)
def test_an_error_in_mid_stream_is_told_by_its_type(provider: Provider, request_of: RequestOf, status: int, kind: str) -> None:
    error = failure(provider, request_of(f"say something\nfail {status} mid-stream 1 times"))
    assert (error.kind, error.retryable) == (kind, kind != "unacceptable")


@pytest.mark.parametrize(
    "body",
    [
        events(BEGIN, start(0, type="text", text=""), delta("text_delta", 0, text="half")),
        events(BEGIN, start(0, type="text", text=""), delta("text_delta", 0, text="all"), stop(0), end("end_turn")[0]),
        events(BEGIN, b"event: content_block_start\ndata: {broken\n\n"),
        events(BEGIN, b"event: content_block_start\ndata: \xff\n\n"),
        events(BEGIN, delta("text_delta", 3, text="never started")),
        events(BEGIN, start(0, type="text"), delta("text_delta", 0, text=7)),
        events(BEGIN, start(0, type="tool_use"), stop(0), *end("tool_use")),
        events(b"event: error\ndata: 7\n\n"),
        events(b"event: message_start\ndata: []\n\n"),
        b"<html>no model here</html>",
        b"",
    ],
)
def test_a_stream_that_ends_early_or_makes_no_sense_may_be_tried_again(
    use_model_at: UseModelAt, answering: Answering, request_of: RequestOf, body: bytes
) -> None:
    error = failure(use_model_at(answering(body)), request_of("hi"))
    assert (error.kind, error.retryable) == ("failed", True)


def test_a_server_that_is_not_there_may_be_tried_again(use_model_at: UseModelAt, request_of: RequestOf) -> None:
    error = failure(use_model_at("http://127.0.0.1:9"), request_of("hi"))
    assert (error.kind, error.retryable) == ("failed", True)
    assert "127.0.0.1" not in str(error)


def test_a_reply_that_takes_too_long_is_given_up(
    monkeypatch: pytest.MonkeyPatch, standin: str, use_model_at: UseModelAt, request_of: RequestOf
) -> None:
    monkeypatch.setenv("ASSENT_MODEL_TIMEOUT_SECONDS", "0.2")
    error = failure(use_model_at(standin), request_of("say 100 tokens at 50/s"))
    assert (error.kind, str(error)) == ("failed", "The model took longer than 0.2 s")


def test_a_stream_that_falls_silent_is_given_up(
    monkeypatch: pytest.MonkeyPatch, standin: str, use_model_at: UseModelAt, request_of: RequestOf
) -> None:
    monkeypatch.setattr(anthropic, "READ_SECONDS", 0.3)
    anthropic._client.cache_clear()
    error = failure(use_model_at(standin), request_of("delay 1s\nsay late"))
    anthropic._client.cache_clear()
    assert (error.kind, "Timeout" in str(error)) == ("failed", True)


# Answers that are errors


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "unacceptable", False),
        (401, "invalid", False),
        (402, "billing", False),
        (403, "invalid", False),
        (404, "invalid", False),
        (413, "unacceptable", False),
        (429, "rate_limited", True),
        (500, "failed", True),
        (503, "failed", True),
        (529, "overloaded", True),
    ],
)
def test_a_status_says_whether_it_may_pass(
    provider: Provider, request_of: RequestOf, http: httpx.Client, status: int, kind: str, retryable: bool
) -> None:
    http.delete("/standin/requests")
    error = failure(provider, request_of(f"fail {status} always"))
    assert (error.kind, error.retryable) == (kind, retryable)
    assert str(status) in str(error)
    assert len(http.get("/standin/requests").json()["data"]) == 1  # tried once: retries are the turn's


@pytest.mark.parametrize(("header", "least", "most"), [("7", 7, 7), ("0.5", 0.5, 0.5), ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0)])
def test_the_wait_that_a_server_asks_for_is_told(
    use_model_at: UseModelAt, answering: Answering, request_of: RequestOf, header: str, least: float, most: float
) -> None:
    error = failure(use_model_at(answering(b"", 429, retry_after=header)), request_of("hi"))
    assert error.retry_after is not None
    assert least <= error.retry_after <= most


@pytest.mark.parametrize("header", ["soon", "nan", "", "inf"])
def test_a_wait_that_cannot_be_read_is_none(
    use_model_at: UseModelAt, answering: Answering, request_of: RequestOf, header: str
) -> None:
    assert failure(use_model_at(answering(b"", 429, retry_after=header)), request_of("hi")).retry_after is None


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (403, {"type": "billing_error", "message": "Pay first."}),
        (400, {"type": "invalid_request_error", "message": "Your credit balance is too low to access the API."}),
        (429, {"type": "rate_limit_error", "message": "x", "details": {"error_code": "enforced_spend_limit_reached"}}),
    ],
)
def test_a_lack_of_money_is_told_apart(
    use_model_at: UseModelAt, answering: Answering, request_of: RequestOf, status: int, error: dict[str, Any]
) -> None:
    body = json.dumps({"type": "error", "error": error}).encode()
    address = answering(body, status, content_type="application/json")
    assert failure(use_model_at(address), request_of("hi")).kind == "billing"


def test_an_error_never_shows_the_key(use_model_at: UseModelAt, answering: Answering, request_of: RequestOf) -> None:
    body = json.dumps({"type": "error", "error": {"type": "authentication_error", "message": "bad key: sk-test"}}).encode()
    error = failure(use_model_at(answering(body, 401, content_type="application/json")), request_of("hi"))
    assert "bad key: ***" in str(error)


@pytest.mark.parametrize("key", [None, ""])
def test_without_a_key_nothing_else_is_tried(
    monkeypatch: pytest.MonkeyPatch, provider: Provider, request_of: RequestOf, key: str | None
) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "somebody-else's")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    if key is not None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    settings.cache_clear()
    error = failure(provider, request_of("hi"))
    assert (error.kind, str(error)) == ("invalid", "ANTHROPIC_API_KEY is not set")
