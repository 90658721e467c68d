"""For a model without Anthropic's compaction, the summary is requested in words, and a block of compaction is sent as text."""

from typing import Any

import httpx2
import pytest
from model_calls import RequestOf, ignore

from workers.providers import ModelError, Provider
from workers.providers.anthropic_reply import Draft
from workers.providers.neutral import summarized

HELLO: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "Hello."}]}


def test_a_refused_compaction_is_followed_by_a_request_in_words(
    provider: Provider, request_of: RequestOf, http: httpx2.Client
) -> None:
    request = request_of([HELLO], folds=True, model="old-1")
    for expected in ([True, False], [False]):  # compaction is tried once per model
        http.delete("/standin/requests")
        reply = provider.ask(request, ignore)
        assert (reply.content[0]["type"], "provider_data" in reply.content[0]) == ("summary", False)
        assert ["compaction" in sent for sent in http.get("/standin/requests").json()["data"]] == expected


def test_a_block_that_the_api_refuses_is_sent_as_text(provider: Provider, request_of: RequestOf, http: httpx2.Client) -> None:
    """Another account of the same provider may have signed it."""
    data = {"anthropic": {"compaction": {"type": "compaction", "content": "They met.", "signature": "another's"}}}
    summary = {"type": "summary", "text": "They met.", "provider_data": data}
    request = request_of([{"role": "user", "content": [summary, {"type": "text", "text": "say again"}]}])
    assert provider.ask(request, ignore).content[0]["text"] == "again"
    [sent] = http.get("/standin/requests", params={"last": 1}).json()["data"]
    assert "They met." in sent["messages"][0]["content"][0]["text"]


def test_a_summary_that_failed_is_an_error_with_its_usage() -> None:
    """The API returns a block without content if the model wrote no usable summary."""
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
