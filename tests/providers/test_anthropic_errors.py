"""What a turn may rely on when Claude does not answer."""

import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from made_streams import BEGIN, delta, end, events, start, stop

from models.settings.providers import registry
from workers.providers import ModelError, ModelRequest, Provider, provider_for

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


# Answers that are errors


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


@pytest.mark.parametrize(
    "message",
    ["prompt is too long: 208310 tokens > 200000 maximum", "input length and `max_tokens` exceed context limit: 9 + 1 > 9"],
)
def test_a_request_that_is_too_long_is_told_apart(
    use_model_at: UseModelAt, answering: Answering, request_of: RequestOf, message: str
) -> None:
    body = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": message}}).encode()
    address = answering(body, 400, content_type="application/json")
    assert failure(use_model_at(address), request_of("hi")).kind == "too_long"


@pytest.mark.parametrize("key", [None, ""])
def test_without_a_key_nothing_else_is_tried(
    monkeypatch: pytest.MonkeyPatch, provider: Provider, request_of: RequestOf, key: str | None
) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "somebody-else's")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    if key is not None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    error = failure(provider_for(registry()[0], os.environ.get("ANTHROPIC_API_KEY")), request_of("hi"))
    assert (error.kind, str(error)) == ("invalid", "ANTHROPIC_API_KEY is not set: provider anthropic needs a key")
