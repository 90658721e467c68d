"""A model of Anthropic's API that does not know compaction: the summary is requested in words, and an own block goes as text."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from workers.providers import ModelError, ModelRequest, Provider
from workers.providers.anthropic_reply import Draft
from workers.providers.neutral import summarized

RequestOf = Callable[..., ModelRequest]
HELLO: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "Hello."}]}


def ignore(index: int, text: str) -> None:
    pass


def test_a_refused_compaction_is_followed_by_a_request_in_words(
    provider: Provider, request_of: RequestOf, http: httpx.Client
) -> None:
    """The stand-in refuses this block's signature, as the real API refuses compaction for older models."""
    data = {"anthropic": {"compaction": {"type": "compaction", "content": "They met.", "signature": "not ours"}}}
    messages = [{"role": "user", "content": [{"type": "summary", "text": "They met.", "provider_data": data}]}, HELLO]
    request = request_of(messages, folds=True)
    reply = provider.ask(request, ignore)
    assert reply.content[0]["type"] == "summary"
    assert "provider_data" not in reply.content[0]
    first, second = http.get("/standin/requests", params={"last": 2}).json()["data"]
    assert ("compaction" in first, "compaction" in second) == (True, False)
    provider.ask(request, ignore)
    third, fourth = http.get("/standin/requests", params={"last": 2}).json()["data"]
    assert ("compaction" in third, "compaction" in fourth) == (False, False), "it is not tried again for this model"


def test_a_summary_that_failed_is_an_error_with_its_usage() -> None:
    """The API returns a block without content if the model wrote no summary that it could use."""
    draft = Draft("anthropic")
    usage = {"input_tokens": 0, "output_tokens": 0}
    iterations = [{"type": "compaction", "input_tokens": 700, "output_tokens": 9}]
    for event in (
        {"type": "message_start", "message": {"model": "m", "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": None}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "compaction"}, "usage": usage | {"iterations": iterations}},
        {"type": "message_stop"},
    ):
        draft.add(event)
    with pytest.raises(ModelError, match="wrote no summary") as caught:
        summarized(draft.reply())
    assert caught.value.retryable
    assert caught.value.usage
    assert (caught.value.usage.input_tokens, caught.value.usage.output_tokens) == (700, 9)
