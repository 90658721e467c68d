"""Promises that hold for every wire. The stand-in speaks all of them, with the same scripts."""

import json
import time
from typing import Any

import httpx2
import pytest
from model_calls import BASH, Answering, RequestOf, UseModelAt, failure, ignore, sent

from workers.providers import ModelReply, Provider


@pytest.fixture(params=["anthropic", "openai"])
def wire(request: pytest.FixtureRequest) -> str:
    """Each wire in turn."""
    return str(request.param)


# Replies


def test_text_arrives_while_it_is_written(provider: Provider, request_of: RequestOf) -> None:
    heard: list[tuple[float, int, str]] = []
    reply = provider.ask(request_of("say 20 tokens at 50/s"), lambda at, text: heard.append((time.monotonic(), at, text)))
    assert "".join(text for _, _, text in heard) == reply.content[0]["text"]
    assert heard[-1][0] - heard[0][0] > 0.2
    assert {at for _, at, _ in heard} == {0}


def test_a_reply_is_accepted_as_history(provider: Provider, request_of: RequestOf) -> None:
    """With its thinking, its signatures, the provider's own ids and our ids of the calls."""
    request = request_of('think first\nsay one\ncall bash {"n": [1, "ü"]}\ncall read\nthen\nsay done')
    reply = provider.ask(request, ignore)
    assert [block["type"] for block in reply.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert reply.stop_reason == "tool_use"
    ours = [{**block, "id": f"sevt_{at}"} if block["type"] == "tool_use" else block for at, block in enumerate(reply.content)]
    results = [{"type": "tool_result", "tool_use_id": block["id"], "content": "ok"} for block in ours[2:]]
    history = [*request.messages, {"role": "assistant", "content": ours}, {"role": "user", "content": results}]
    assert [block["text"] for block in provider.ask(request_of(history), ignore).content] == ["done"]


def test_the_input_of_a_call_is_complete(provider: Provider, request_of: RequestOf) -> None:
    reply = provider.ask(request_of('call bash {"n": [1, "ü"]}\ncall read\ncall bash {"n": 2}'), ignore)
    assert [(call["name"], call["input"]) for call in reply.content] == [
        ("bash", {"n": [1, "ü"]}),
        ("read", {}),
        ("bash", {"n": 2}),
    ]


def test_a_reply_has_usage_model_and_stop_reason(provider: Provider, request_of: RequestOf) -> None:
    request = request_of("say four", system=f"{time.time()}" + "be brief " * 100)
    first, again = provider.ask(request, ignore), provider.ask(request, ignore)
    assert (first.stop_reason, first.model, first.usage.output_tokens) == ("end_turn", request.model, 1)
    assert first.usage.input_tokens + first.usage.cache_creation_input_tokens > 200
    assert again.usage.cache_read_input_tokens > 200
    assert json.dumps(first.content)


def test_a_refusal_is_a_reply_with_its_details(provider: Provider, request_of: RequestOf) -> None:
    reply = provider.ask(request_of("refuse not today"), ignore)
    assert (reply.content, reply.stop_reason) == ([], "refusal")
    assert reply.stop_details == {"type": "refusal", "category": None, "explanation": "not today"}


def test_a_call_cut_by_max_tokens_is_left_out_and_complete_calls_stay(provider: Provider, request_of: RequestOf) -> None:
    reply = provider.ask(request_of('say so\ncall bash {"a": 1}\ncut call bash {"command": "rm -rf /tmp/x"}'), ignore)
    assert reply.stop_reason == "max_tokens"
    assert [block.get("input") for block in reply.content] == [None, {"a": 1}]


@pytest.mark.parametrize("text", ['{"command": "rm -rf /', "[1]", '"x"', '{"a": NaN}', "{}{}"])
def test_a_call_whose_input_is_no_json_object_has_a_problem_and_no_input(
    provider: Provider, request_of: RequestOf, text: str
) -> None:
    reply = provider.ask(request_of(f'call read {{"n": 1}}\nbroken call bash {text}'), ignore)
    good, broken = reply.content
    assert (good["input"], "problem" in good, broken["input"]) == ({"n": 1}, False, {})
    assert broken["problem"]
    assert reply.stop_reason == "tool_use"


# Requests


def test_calls_are_parallel_unless_the_agent_forbids_it(provider: Provider, request_of: RequestOf, http: httpx2.Client) -> None:
    only_one = {"parallel_tool_calls": False}, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}
    for parallel, tools in ((True, [BASH]), (False, [BASH]), (False, [])):
        provider.ask(request_of("say hi", tools=tools, parallel=parallel), ignore)
        body = sent(http)
        chosen = {name: body[name] for name in ("parallel_tool_calls", "tool_choice") if name in body}
        assert chosen in only_one if tools and not parallel else chosen == {}


def test_an_exception_of_on_text_is_raised_and_closes_the_stream(provider: Provider, request_of: RequestOf) -> None:
    class LeaseLost(Exception):
        pass

    def stop_now(_: int, __: str) -> None:
        raise LeaseLost

    began = time.monotonic()
    with pytest.raises(LeaseLost):
        provider.ask(request_of("say 500 tokens at 50/s"), stop_now)
    assert time.monotonic() - began < 2
    assert isinstance(provider.ask(request_of("say still there"), ignore), ModelReply)


# Streams that break


def test_a_connection_that_drops_inside_a_call_is_retryable_and_gives_no_call(provider: Provider, request_of: RequestOf) -> None:
    request = request_of('call bash {"command": "ls"}\ndrop connection mid-stream 1 times')
    error = failure(provider, request)
    assert (error.kind, error.retryable) == ("failed", True)
    assert provider.ask(request, ignore).content[0]["input"] == {"command": "ls"}


@pytest.mark.parametrize(
    ("status", "kind"), [(529, "overloaded"), (429, "rate_limited"), (500, "failed"), (504, "timed_out"), (400, "unacceptable")]
)
def test_an_error_inside_a_stream_has_its_kind(provider: Provider, request_of: RequestOf, status: int, kind: str) -> None:
    error = failure(provider, request_of(f"say something\nfail {status} mid-stream 1 times"))
    assert (error.kind, error.retryable) == (kind, kind != "unacceptable")


RECORDED = {
    "anthropic": ("/v1/messages", {"max_tokens": 100}),
    "openai": ("/v1/chat/completions", {"max_completion_tokens": 100}),
}


@pytest.mark.parametrize("eighth", range(8))
def test_a_stream_that_ends_anywhere_is_no_reply(
    use_model_at: UseModelAt, answering: Answering, request_of: RequestOf, http: httpx2.Client, wire: str, eighth: int
) -> None:
    """Not even if all received calls are complete: others may have been cut off."""
    path, limit = RECORDED[wire]
    prompt = {"role": "user", "content": 'say so\ncall bash {"command": "rm -rf /tmp/x"}\ncall read {"n": 1}'}
    body = http.post(path, json={"model": "m", "messages": [prompt], "stream": True, **limit}).content
    calls = body[: body.rindex(b"message_delta" if wire == "anthropic" else b'"finish_reason":"tool_calls"')]
    error = failure(use_model_at(answering(calls[: len(calls) * (eighth + 1) // 8])), request_of("hi"))
    assert (error.kind, error.retryable) == ("failed", True)


@pytest.mark.parametrize("body", [b"", b"data: \n\n", b"data: {broken\n\n", b"data: [1]\n\n", b"data: \xff\n\n", b": nothing\n\n"])
def test_an_empty_or_malformed_stream_is_retryable(
    use_model_at: UseModelAt, answering: Answering, request_of: RequestOf, body: bytes
) -> None:
    error = failure(use_model_at(answering(body)), request_of("hi"))
    assert (error.kind, error.retryable) == ("failed", True)


@pytest.mark.parametrize("status", [200, 404, 502])
def test_a_page_of_html_is_no_reply_and_its_error_says_where_to_look(
    use_model_at: UseModelAt, answering: Answering, request_of: RequestOf, status: int
) -> None:
    address = answering(b"<html><body>Welcome to nginx!</body></html>", status, content_type="text/html; charset=utf-8")
    error = failure(use_model_at(address), request_of("hi"))
    assert error.kind == {200: "failed", 404: "invalid", 502: "overloaded"}[status]
    assert ("base_url" in str(error)) == (status != 502)
    assert len(str(error)) < 300


@pytest.mark.parametrize("chunk", [b"data: {}\n\n", b"x" * 1000], ids=["of events", "of one line"])
def test_a_stream_without_an_end_is_given_up_at_its_limit(
    use_model_at: UseModelAt, answering: Answering, request_of: RequestOf, chunk: bytes
) -> None:
    error = failure(use_model_at(answering(chunk, times=1_000_000), limits={"response_bytes": 20_000}), request_of("hi"))
    assert error.retryable
    assert "malformed" in str(error) or str(error) == "The model's response is longer than 20000 bytes"


def test_a_reply_that_takes_too_long_is_given_up(standin: str, use_model_at: UseModelAt, request_of: RequestOf) -> None:
    error = failure(use_model_at(standin, limits={"seconds": 0.2}), request_of("say 100 tokens at 50/s"))
    assert (error.kind, str(error)) == ("timed_out", "The model took longer than 0.2 s")


def test_a_stream_that_falls_silent_is_given_up(standin: str, use_model_at: UseModelAt, request_of: RequestOf) -> None:
    error = failure(use_model_at(standin, limits={"silence_seconds": 0.3}), request_of("delay 1s\nsay late"))
    assert (error.kind, "Timeout" in str(error)) == ("timed_out", True)


def test_a_server_that_is_down_is_retryable(use_model_at: UseModelAt, request_of: RequestOf) -> None:
    error = failure(use_model_at("http://127.0.0.1:9"), request_of("hi"))
    assert (error.kind, error.retryable) == ("timed_out", True)
    assert "127.0.0.1" not in str(error)


# Answers that are errors


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "unacceptable", False),
        (401, "invalid", False),
        (402, "billing", False),
        (403, "invalid", False),
        (404, "invalid", False),
        (413, "too_long", False),
        (429, "rate_limited", True),
        (500, "failed", True),
        (503, "overloaded", True),
        (529, "overloaded", True),
    ],
)
def test_a_status_has_its_kind_of_error_and_is_tried_once(
    provider: Provider, request_of: RequestOf, http: httpx2.Client, status: int, kind: str, retryable: bool
) -> None:
    http.delete("/standin/requests")
    error = failure(provider, request_of(f"fail {status} always"))
    assert (error.kind, error.retryable) == (kind, retryable)
    assert str(status) in str(error)
    assert len(http.get("/standin/requests").json()["data"]) == 1  # the turn retries, not the provider


@pytest.mark.parametrize(("header", "least", "most"), [("7", 7, 7), ("0.5", 0.5, 0.5), ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0)])
def test_the_error_has_the_server_s_retry_after(
    use_model_at: UseModelAt, answering: Answering, request_of: RequestOf, header: str, least: float, most: float
) -> None:
    error = failure(use_model_at(answering(b"", 429, retry_after=header)), request_of("hi"))
    assert error.retry_after is not None
    assert least <= error.retry_after <= most


@pytest.mark.parametrize("header", ["soon", "nan", "", "inf"])
def test_an_invalid_retry_after_is_ignored(
    use_model_at: UseModelAt, answering: Answering, request_of: RequestOf, header: str
) -> None:
    assert failure(use_model_at(answering(b"", 429, retry_after=header)), request_of("hi")).retry_after is None


def test_a_redirect_is_not_followed_with_the_key(use_model_at: UseModelAt, answering: Answering, request_of: RequestOf) -> None:
    error = failure(use_model_at(answering(b"", 307, location="http://127.0.0.1:9/elsewhere")), request_of("hi"))
    assert (error.kind, "307" in str(error)) == ("invalid", True)


def test_an_error_never_shows_the_key(use_model_at: UseModelAt, answering: Answering, request_of: RequestOf) -> None:
    body = json.dumps({"type": "error", "error": {"type": "authentication_error", "message": "bad key: sk-test"}}).encode()
    error = failure(use_model_at(answering(body, 401, content_type="application/json")), request_of("hi"))
    assert "bad key: ***" in str(error)


def test_the_models_of_a_provider_are_listed(provider: Provider) -> None:
    assert provider.models() == ["stand-in"]


# Summaries of long histories


HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "Sweep the floor."}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "sevt_1", "name": "bash", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "sevt_1", "content": [{"type": "text", "text": "ok"}]}]},
    {"role": "assistant", "content": [{"type": "text", "text": "Swept."}]},
]


def test_a_history_is_summarized_and_the_summary_is_accepted_as_history(
    provider: Provider, request_of: RequestOf, http: httpx2.Client, wire: str
) -> None:
    """On Claude by the API's own compaction, whose block is sent back verbatim. Elsewhere by a request in words."""
    reply = provider.ask(request_of(HISTORY, tools=[BASH], folds=True), ignore)
    [summary] = reply.content
    assert (summary["type"], "4 messages were summarized" in summary["text"]) == ("summary", True)
    assert reply.usage.context_tokens > 0
    request = request_of([{"role": "user", "content": [summary, {"type": "text", "text": "say again"}]}], tools=[BASH])
    assert provider.ask(request, ignore).content[0]["text"] == "again"
    for_summary, for_reply = http.get("/standin/requests", params={"last": 2}).json()["data"]
    if wire == "anthropic":
        assert for_summary["compaction"] == {"type": "summarize"}
        assert for_reply["messages"][0] == {"role": "assistant", "content": [summary["provider_data"]["anthropic"]["compaction"]]}
    else:
        assert "tools" not in for_summary
        assert summary["text"] in for_reply["messages"][0]["content"]


def test_another_provider_s_summary_is_sent_as_text(provider: Provider, request_of: RequestOf, http: httpx2.Client) -> None:
    data = {"elsewhere": {"compaction": {"type": "compaction", "content": "They swept.", "signature": "theirs"}}}
    summary = {"type": "summary", "text": "They swept.", "provider_data": data}
    provider.ask(request_of([{"role": "user", "content": [summary, {"type": "text", "text": "say again"}]}]), ignore)
    assert "They swept." in json.dumps(sent(http)["messages"][0])
    assert "theirs" not in json.dumps(sent(http))
