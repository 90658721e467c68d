"""What a turn may rely on when it asks Claude."""

import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from made_streams import BEGIN, CALL, delta, end, events, start, stop

from workers.providers import ModelError, ModelRequest, Provider, Reply

BASH: dict[str, Any] = {"name": "bash", "description": "Runs a command.", "input_schema": {"type": "object"}}
RequestOf = Callable[..., ModelRequest]
UseModelAt = Callable[[str], Provider]
Answering = Callable[..., str]


def ignore(index: int, text: str) -> None:
    pass


def failure(provider: Provider, request: ModelRequest) -> ModelError:
    with pytest.raises(ModelError) as caught:
        provider.ask(request, ignore)
    return caught.value


def sent(http: httpx.Client) -> dict[str, Any]:
    body: dict[str, Any] = http.get("/standin/requests", params={"last": 1}).json()["data"][0]
    return body


# Replies


def test_text_arrives_while_it_is_written(provider: Provider, request_of: RequestOf) -> None:
    heard: list[tuple[float, int, str]] = []
    reply = provider.ask(request_of("say 40 tokens at 50/s"), lambda at, text: heard.append((time.monotonic(), at, text)))
    assert "".join(text for _, _, text in heard) == reply.content[0]["text"]
    assert heard[-1][0] - heard[0][0] > 0.4
    assert {at for _, at, _ in heard} == {0}


def test_texts_are_counted_from_0_whatever_stands_between_them(provider: Provider, request_of: RequestOf) -> None:
    heard: dict[int, str] = {}
    reply = provider.ask(
        request_of('think first\nsay one\ncall bash {"n": 1}\nsay two'),
        lambda at, text: heard.update({at: heard.get(at, "") + text}),
    )
    assert heard == {0: "one", 1: "two"}
    assert [block["type"] for block in reply.content] == ["thinking", "text", "tool_use", "text"]


def test_a_reply_is_taken_back_as_history(provider: Provider, request_of: RequestOf) -> None:
    request = request_of('think first\nsay one\ncall bash {"n": [1, "ü"]}\nthen\nsay done')
    reply = provider.ask(request, ignore)
    call = reply.content[2]
    assert call == {"type": "tool_use", "id": call["id"], "name": "bash", "input": {"n": [1, "ü"]}}
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "fine"}
    history = [*request.messages, {"role": "assistant", "content": reply.content}, {"role": "user", "content": [result]}]
    assert provider.ask(request_of(history), ignore).content == [{"type": "text", "text": "done"}]


def test_usage_model_and_stop_reason_are_told(provider: Provider, request_of: RequestOf) -> None:
    request = request_of("say four", system=f"{time.time()}" + "be brief " * 100)
    first, again = provider.ask(request, ignore), provider.ask(request, ignore)
    assert (first.stop_reason, first.model, first.usage.output_tokens) == ("end_turn", "stand-in", 1)
    assert first.usage.cache_creation_input_tokens > 200
    assert again.usage.cache_read_input_tokens == first.usage.cache_creation_input_tokens
    assert json.dumps(first.content)


def test_a_refusal_is_a_reply_with_its_details(provider: Provider, request_of: RequestOf) -> None:
    reply = provider.ask(request_of("refuse not today"), ignore)
    assert (reply.content, reply.stop_reason) == ([], "refusal")
    assert reply.stop_details == {"type": "refusal", "category": None, "explanation": "not today"}


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
    assert reply.content == [{"type": "redacted_thinking", "data": "xyz"}, {"type": "text", "text": "\nhi"}]
    assert heard == [(0, "\nhi")]


# Calls that were cut


def test_a_call_cut_by_max_tokens_is_left_out_and_the_whole_ones_stay(provider: Provider, request_of: RequestOf) -> None:
    reply = provider.ask(request_of('say so\ncall bash {"a": 1}\ncut call bash {"command": "rm -rf /tmp/x"}'), ignore)
    assert reply.stop_reason == "max_tokens"
    assert [block.get("input") for block in reply.content] == [None, {"a": 1}]


def test_a_call_cut_before_its_input_is_not_taken_for_a_call_without_input(
    use_model_at: UseModelAt, answering: Answering, request_of: RequestOf
) -> None:
    body = [BEGIN, start(0, **CALL), delta("input_json_delta", 0, partial_json=""), stop(0)]
    cut = use_model_at(answering(events(*body, *end("max_tokens")))).ask(request_of("hi"), ignore)
    assert cut.content == []
    meant = use_model_at(answering(events(*body, *end("tool_use")))).ask(request_of("hi"), ignore)
    assert meant.content == [CALL]


@pytest.mark.parametrize("text", ['{"command": "rm -rf /', "[1]", '"x"', '{"a": NaN}', "{}{}"])
def test_a_call_whose_input_does_not_parse_fails_the_reply(
    use_model_at: UseModelAt, answering: Answering, request_of: RequestOf, text: str
) -> None:
    body = [BEGIN, start(0, **CALL), delta("input_json_delta", 0, partial_json=text), stop(0)]
    error = failure(use_model_at(answering(events(*body, *end("tool_use")))), request_of("hi"))
    assert (error.kind, error.retryable) == ("failed", True)


# Stopping


def test_what_on_text_raises_comes_out_and_closes_the_stream(provider: Provider, request_of: RequestOf) -> None:
    class LeaseLost(Exception):
        pass

    def stop_now(_: int, __: str) -> None:
        raise LeaseLost

    began = time.monotonic()
    with pytest.raises(LeaseLost):
        provider.ask(request_of("say 500 tokens at 50/s"), stop_now)
    assert time.monotonic() - began < 2
    assert isinstance(provider.ask(request_of("say still there"), ignore), Reply)


# What the model is sent


def test_the_cache_lives_long_only_where_people_are_asked(provider: Provider, request_of: RequestOf, http: httpx.Client) -> None:
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


def test_calls_are_parallel_unless_the_agent_says_no(provider: Provider, request_of: RequestOf, http: httpx.Client) -> None:
    provider.ask(request_of("say hi", tools=[BASH]), ignore)
    assert "tool_choice" not in sent(http)
    provider.ask(request_of("say hi", tools=[BASH], parallel=False), ignore)
    assert sent(http)["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    provider.ask(request_of("say hi", parallel=False), ignore)
    assert not {"tool_choice", "tools", "system"} & sent(http).keys()
