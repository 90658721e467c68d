"""Replies of and requests to Claude, beyond what all wires have in common."""

import httpx2
from made_streams import BEGIN, CALL, delta, end, events, start, stop
from model_calls import BASH, Answering, RequestOf, UseModelAt, ignore, sent

from workers.providers import Provider

# Replies


def test_texts_are_numbered_from_0_without_the_other_blocks(provider: Provider, request_of: RequestOf) -> None:
    heard: dict[int, str] = {}
    reply = provider.ask(
        request_of('think first\nsay one\ncall bash {"n": 1}\nsay two'),
        lambda at, text: heard.update({at: heard.get(at, "") + text}),
    )
    assert heard == {0: "one", 1: "two"}
    assert [block["type"] for block in reply.content] == ["thinking", "text", "tool_use", "text"]


def test_blank_text_unsigned_thinking_and_nulls_do_not_enter_the_history(
    use_model_at: UseModelAt, answering: Answering, request_of: RequestOf
) -> None:
    body = events(
        BEGIN,
        start(0, type="thinking", thinking="", signature=""), delta("thinking_delta", 0, thinking="hm"), stop(0),
        start(1, type="text", text=""), delta("text_delta", 1, text=" \n"), stop(1),
        start(2, type="redacted_thinking", data="xyz"), stop(2),
        start(3, type="text", text="\n", citations=None), delta("text_delta", 3, text="hi"), stop(3),
        *end("end_turn"),
    )  # fmt: skip
    heard: list[tuple[int, str]] = []
    reply = use_model_at(answering(body)).ask(request_of("hi"), lambda *piece: heard.append(piece))
    assert reply.content == [
        {"type": "redacted_thinking", "provider_data": {"anthropic": {"data": "xyz"}}},
        {"type": "text", "text": "\nhi"},
    ]
    assert heard == [(0, "\nhi")]


# Calls that were cut


def test_a_call_that_was_cut_before_its_input_is_left_out(
    use_model_at: UseModelAt, answering: Answering, request_of: RequestOf
) -> None:
    body = [BEGIN, start(0, **CALL), delta("input_json_delta", 0, partial_json=""), stop(0)]
    cut = use_model_at(answering(events(*body, *end("max_tokens")))).ask(request_of("hi"), ignore)
    assert cut.content == []
    meant = use_model_at(answering(events(*body, *end("tool_use")))).ask(request_of("hi"), ignore)
    assert meant.content == [CALL | {"provider_data": {"anthropic": {"id": "toolu_1"}}}]


# What the model is sent


def test_the_prompt_cache_lives_long_only_where_people_are_asked(
    provider: Provider, request_of: RequestOf, http: httpx2.Client
) -> None:
    for long_wait, ttl in ((False, "5m"), (True, "1h")):
        provider.ask(request_of("say hi", system="be kind", tools=[BASH], long_wait=long_wait), ignore)
        body, mark = sent(http), {"type": "ephemeral", "ttl": ttl}
        assert body["cache_control"] == mark
        assert body["system"] == [{"type": "text", "text": "be kind", "cache_control": mark}]
        assert body["tools"] == [BASH]
    request = request_of("say hi", tools=[BASH, {**BASH, "name": "read"}])
    provider.ask(request, ignore)
    assert ["cache_control" in tool for tool in sent(http)["tools"]] == [False, True]
    assert "cache_control" not in request.tools[1]
