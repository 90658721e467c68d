"""Errors of Anthropic's API, beyond what all wires have in common."""

import json
import os
from typing import Any

import pytest
from made_streams import BEGIN, delta, end, events, start, stop
from model_calls import Answering, RequestOf, UseModelAt, failure

from models.settings.providers import registry
from workers.providers import Provider, provider_for

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
    ],
)
def test_an_incomplete_or_malformed_stream_is_retryable(
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
def test_a_lack_of_money_is_its_own_kind_of_error(
    use_model_at: UseModelAt, answering: Answering, request_of: RequestOf, status: int, error: dict[str, Any]
) -> None:
    body = json.dumps({"type": "error", "error": error}).encode()
    address = answering(body, status, content_type="application/json")
    assert failure(use_model_at(address), request_of("hi")).kind == "billing"


@pytest.mark.parametrize(
    "message",
    ["prompt is too long: 208310 tokens > 200000 maximum", "input length and `max_tokens` exceed context limit: 9 + 1 > 9"],
)
def test_a_request_that_is_too_long_is_its_own_kind_of_error(
    use_model_at: UseModelAt, answering: Answering, request_of: RequestOf, message: str
) -> None:
    body = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": message}}).encode()
    address = answering(body, 400, content_type="application/json")
    assert failure(use_model_at(address), request_of("hi")).kind == "too_long"


@pytest.mark.parametrize("key", [None, ""])
def test_without_its_key_a_provider_uses_no_other_credential(
    monkeypatch: pytest.MonkeyPatch, provider: Provider, request_of: RequestOf, key: str | None
) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "somebody-else's")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    if key is not None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    error = failure(provider_for(registry()[0], os.environ.get("ANTHROPIC_API_KEY")), request_of("hi"))
    assert (error.kind, str(error)) == ("invalid", "ANTHROPIC_API_KEY is not set: provider anthropic needs a key")
