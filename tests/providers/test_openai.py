"""Replies, errors and requests of Chat Completions, in the forms of real servers."""

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from model_calls import BASH, Answering, RequestOf, UseModelAt, ignore, sent

from models.settings.providers import ProviderEntry
from workers.providers import ModelError, ModelReply, Provider, Usage, provider_for

JSON = "application/json"


@pytest.fixture
def wire() -> str:
    return "openai"


def chunks(*deltas: Any, finish: str | None = "stop", usage: Any = None, done: bool = True) -> bytes:
    """Return a stream of these deltas, as OpenAI's API sends it."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5.5-2026-01-01"}
    lines = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    if finish:
        lines.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage:
        lines.append({**head, "choices": [], "usage": usage})
    return b"".join(f"data: {json.dumps(line)}\n\n".encode() for line in lines) + (b"data: [DONE]\n\n" if done else b"")


def piece(index: int | None = 0, call_id: str | None = None, name: str | None = None, arguments: Any = None, **more: Any) -> Any:
    """Return a delta with a piece of a tool call."""
    function = {key: value for key, value in {"name": name, "arguments": arguments}.items() if value is not None}
    call = {"index": index, "id": call_id, "type": "function" if call_id else None, "function": function, **more}
    return {"tool_calls": [{key: value for key, value in call.items() if value is not None}]}


Ask = Callable[..., ModelReply]


@pytest.fixture
def ask(use_model_at: UseModelAt, answering: Answering, request_of: RequestOf) -> Ask:
    """A function that returns the reply for a response of these bytes."""

    def run(body: bytes, status: int = 200, *, model: str | None = None, **headers: str) -> ModelReply:
        request = request_of("hi", **({"model": model} if model else {}))
        return use_model_at(answering(body, status, **headers)).ask(request, ignore)

    return run


# Calls in pieces

N, HALF, REST = '{"n": 1}', '{"n":', " 1}"
CALLS = {
    "by index": [
        piece(0, "a", "bash", ""), piece(1, "b", "read", ""),
        piece(0, arguments=HALF), piece(1, arguments="{}"), piece(0, arguments=REST),
    ],
    "every index 0": [
        piece(0, "a", "bash", HALF), piece(0, arguments=REST), piece(0, "b", "read", ""), piece(0, arguments="{}"),
    ],
    "no index": [piece(None, "a", "bash", N), piece(None, "b", "read", "{}")],
    "whole calls, index 0": [piece(0, "a", "bash", N), piece(0, "b", "read", "{}")],
    "whole calls in one delta": [
        {"tool_calls": piece(0, "a", "bash", N)["tool_calls"] + piece(1, "b", "read")["tool_calls"]},
    ],
    "id and name in each piece": [
        piece(0, "a", "bash", HALF), piece(0, "a", "bash", REST), piece(1, "b", "read", "{"), piece(1, "b", "read", "}"),
    ],
    "no ids": [piece(0, None, "bash", N), piece(0, None, "read", "{}")],
    "empty ids": [piece(0, "", "bash", N), piece(0, "", "read", "{}")],
    "one id for both": [piece(0, "a", "bash", N), piece(1, "a", "read", "{}")],
    "an object for arguments": [piece(0, "a", "bash", {"n": 1}), piece(1, "b", "read", {})],
    "interleaved by id alone": [
        piece(0, "a", "bash", HALF), piece(0, "b", "read", "{"), piece(0, "a", None, REST), piece(0, "b", None, "}"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("deltas", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("finish", ["tool_calls", "stop"])
def test_the_pieces_of_calls_are_assembled(ask: Ask, deltas: list[Any], finish: str) -> None:
    reply = ask(chunks(*deltas, finish=finish))
    assert [(call["name"], call["input"]) for call in reply.content] == [("bash", {"n": 1}), ("read", {})]
    assert reply.stop_reason == "tool_use"
    assert all(isinstance(call["id"], str) and call["id"] for call in reply.content)


def test_two_calls_of_one_tool_without_ids_are_two(ask: Ask) -> None:
    reply = ask(chunks(piece(0, None, "read", '{"n": 1}'), piece(0, None, "read", '{"n": 2}')))
    assert [call["input"] for call in reply.content] == [{"n": 1}, {"n": 2}]


def test_a_piece_of_a_call_that_never_began_fails_the_reply(ask: Ask) -> None:
    with pytest.raises(ModelError, match="never began") as caught:
        ask(chunks(piece(0, None, None, "{}"), finish="tool_calls"))
    assert caught.value.kind == "failed"


# The end of a reply, and its counts


@pytest.mark.parametrize(
    ("finish", "stop_reason"),
    [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("tool_calls", "end_turn"),
        ("eos", "end_turn"),
    ],
)
def test_a_finish_reason_becomes_our_stop_reason(ask: Ask, finish: str, stop_reason: str) -> None:
    assert ask(chunks({"content": "Hi"}, finish=finish)).stop_reason == stop_reason


@pytest.mark.parametrize("finish", ["error", "MALFORMED_FUNCTION_CALL", None])
def test_an_incomplete_reply_is_retryable(ask: Ask, finish: str | None) -> None:
    with pytest.raises(ModelError) as caught:
        ask(chunks({"content": "Hi"}, finish=finish))
    assert (caught.value.kind, caught.value.retryable) == ("failed", True)


def test_a_stream_with_a_finish_reason_is_complete_without_its_last_line(ask: Ask) -> None:
    assert ask(chunks({"content": "Hi"}, done=False)).content == [{"type": "text", "text": "Hi"}]


def test_cached_tokens_are_counted_separately(ask: Ask) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10}}
    assert ask(chunks({"content": "Hi"}, usage=usage)).usage == Usage(30, 9, 60, 10)
    assert ask(chunks({"content": "Hi"})).usage == Usage()


def test_a_refusal_says_why(ask: Ask) -> None:
    reply = ask(chunks({"refusal": "I can"}, {"refusal": "not."}))
    assert (reply.stop_reason, reply.content) == ("refusal", [])
    assert reply.stop_details == {"type": "refusal", "category": None, "explanation": "I cannot."}


def test_a_gateway_that_does_not_stream_is_understood(ask: Ask) -> None:
    message = {"role": "assistant", "content": "Hi", "tool_calls": piece(0, "a", "bash", "{}")["tool_calls"]}
    body = {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    reply = ask(json.dumps(body).encode(), content_type=JSON)
    assert [block["type"] for block in reply.content] == ["text", "tool_use"]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_keeps_the_provider_s_field_name(ask: Ask, field: str) -> None:
    reply = ask(chunks({field: "Let me "}, {field: "see."}, {"content": "Hi"}))
    thinking, text = reply.content
    assert thinking == {"type": "thinking", "thinking": "Let me see.", "provider_data": {"openai": {field: "Let me see."}}}
    assert text == {"type": "text", "text": "Hi"}


# Errors: status, body, kind


def error(message: str, **fields: Any) -> dict[str, Any]:
    """Return an error's body as OpenAI's API sends it."""
    return {"error": {"message": message, **fields}}


GONE = "The model `gone-1` does not exist"
ERRORS: list[tuple[int, Any, str]] = [
    (401, error("Incorrect API key provided.", type="invalid_request_error", code="invalid_api_key"), "invalid"),
    (429, error("Rate limit reached", type="tokens", code="rate_limit_exceeded"), "rate_limited"),
    (429, error("You exceeded your quota", type="insufficient_quota", code="insufficient_quota"), "billing"),
    (404, error(GONE, type="invalid_request_error", code="model_not_found"), "gone"),
    (404, {"object": "error", "message": GONE, "type": "NotFoundError", "code": 404}, "gone"),
    (404, error('model "gone-1" not found, try pulling it first', type="api_error"), "gone"),
    (404, error("The API deployment does not exist.", code="DeploymentNotFound"), "gone"),
    (404, {"detail": "Not Found"}, "invalid"),
    (400, error("Too many tokens", code="context_length_exceeded"), "too_long"),
    (400, error("This model's maximum context length is 4096 tokens.", type="BadRequestError", code=400), "too_long"),
    (400, error("The request exceeds the available context size.", type="exceed_context_size_error", code=400), "too_long"),
    (400, [error("The input token count (9) exceeds the maximum number of tokens allowed (8).", code=400)], "too_long"),
    (422, error("Prompt contains 9 tokens, too large for model with 8 maximum context length"), "too_long"),
    (400, [error("Function call is missing a thought_signature", code=400, status="INVALID_ARGUMENT")], "unacceptable"),
]


@pytest.mark.parametrize(("status", "body", "kind"), ERRORS)
def test_an_error_has_its_kind(ask: Ask, status: int, body: Any, kind: str) -> None:
    with pytest.raises(ModelError) as caught:
        ask(json.dumps(body).encode(), status, model="gone-1", content_type=JSON)
    assert caught.value.kind == kind
    assert str(status) in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"message": "Provider returned error", "code": 429}, "rate_limited"),
        ({"message": "Overloaded", "type": "overloaded_error"}, "overloaded"),
        ({"message": "Upstream timed out", "code": 504}, "timed_out"),
        ({"message": "No money", "code": "insufficient_quota"}, "billing"),
        ({"message": "Your input exceeds the context window of this model.", "code": "invalid_prompt"}, "too_long"),
        ({"message": "What?"}, "failed"),
    ],
)
def test_an_error_inside_a_stream_has_its_kind(ask: Ask, fault: dict[str, Any], kind: str) -> None:
    with pytest.raises(ModelError) as caught:
        ask(chunks({"content": "H"}, finish=None, done=False) + f"data: {json.dumps({'error': fault})}\n\n".encode())
    assert (caught.value.kind, fault["message"] in str(caught.value)) == (kind, True)


def test_a_retry_after_in_milliseconds_is_read(ask: Ask) -> None:
    with pytest.raises(ModelError) as caught:
        ask(b"{}", 429, retry_after_ms="1500", content_type=JSON)
    assert caught.value.retry_after == 1.5


# Requests


def test_a_history_that_began_at_another_provider_goes_on_here(
    provider: Provider, request_of: RequestOf, http: httpx2.Client
) -> None:
    """Without thinking and signatures, and with an id that every provider accepts."""
    thinking = {"type": "thinking", "thinking": "hm", "provider_data": {"anthropic": {"signature": "c2ln"}}}
    call = {"type": "tool_use", "id": "sevt_1", "name": "bash", "input": {}, "provider_data": {"anthropic": {"id": "toolu_1"}}}
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    result = {"type": "tool_result", "tool_use_id": "sevt_1", "content": [{"type": "text", "text": "no"}, image], "is_error": True}
    history = [
        {"role": "user", "content": "call bash\nthen\nsay done"},
        {"role": "assistant", "content": [thinking, {"type": "text", "text": "so"}, call]},
        {"role": "user", "content": [result]},
    ]
    assert provider.ask(request_of(history, system="Be kind."), ignore).content[0]["text"] == "done"
    system, _, assistant, tool, after = sent(http)["messages"]
    assert system == {"role": "system", "content": "Be kind."}
    [spoken] = assistant["tool_calls"]
    assert assistant["content"] == "so"
    assert set(assistant) == {"role", "content", "tool_calls"}
    assert set(spoken) == {"id", "type", "function"}
    assert tool == {"role": "tool", "tool_call_id": spoken["id"], "content": "Error: no"}
    assert after["content"] == [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]


def test_a_history_that_began_here_goes_on_at_another_provider(
    provider: Provider, request_of: RequestOf, use_model_at: UseModelAt, standin: str
) -> None:
    """Without its signatures, because the other provider refuses unknown fields."""
    request = request_of('think first\nsay one\ncall bash {"n": 1}\nthen\nsay done')
    reply = provider.ask(request, ignore)
    ours = [{**block, "id": "sevt_1"} if block["type"] == "tool_use" else block for block in reply.content]
    result = {"type": "tool_result", "tool_use_id": "sevt_1", "content": "ok"}
    history = [*request.messages, {"role": "assistant", "content": ours}, {"role": "user", "content": [result]}]
    claude = use_model_at(standin, name="claude", kind="anthropic", base_url=standin)
    assert claude.ask(request_of(history), ignore).content == [{"type": "text", "text": "done"}]


def test_a_block_that_a_model_cannot_read_is_replaced_by_its_name(
    use_model_at: UseModelAt, request_of: RequestOf, http: httpx2.Client, standin: str
) -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}}
    text = {"type": "document", "title": "Notes", "source": {"type": "text", "media_type": "text/plain", "data": "Buy milk."}}
    history = [{"role": "user", "content": [{"type": "text", "text": "say hi"}, image, pdf, text]}]
    use_model_at(standin, abilities={"images": False}).ask(request_of(history), ignore)
    [message] = sent(http)["messages"]
    lines = message["content"].split("\n\n")
    assert [line.partition(" ")[0] for line in lines] == ["say", "(image", "(document", "Notes\nBuy"]


def test_effort_is_passed_on(provider: Provider, request_of: RequestOf, http: httpx2.Client) -> None:
    provider.ask(request_of("say hi", effort="high"), ignore)
    assert sent(http)["reasoning_effort"] == "high"


@pytest.mark.parametrize("parameter", ["parallel_tool_calls", "stream_options", "max_completion_tokens"])
def test_a_parameter_that_a_provider_refuses_is_left_out_from_then_on(
    use_model_at: UseModelAt, refusing: Callable[[str], tuple[str, list[dict[str, Any]]]], request_of: RequestOf, parameter: str
) -> None:
    address, bodies = refusing(parameter)
    provider, request = use_model_at(address), request_of("hi", tools=[BASH], parallel=False)
    assert provider.ask(request, ignore).stop_reason == "end_turn"
    assert provider.ask(request, ignore).stop_reason == "end_turn"
    assert [parameter in body for body in bodies] == [True, False, False]
    assert [body.get("max_tokens") for body in bodies[1:]] == [4000 if parameter == "max_completion_tokens" else None] * 2


def test_a_server_without_a_key_is_sent_none(
    use_model_at: UseModelAt, refusing: Callable[[str], tuple[str, list[dict[str, Any]]]], request_of: RequestOf
) -> None:
    address, bodies = refusing("nothing")
    entry = ProviderEntry(name="ollama", kind="openai", base_url=f"{address}/v1", models=["*"], headers={"x-team": "blue"})
    assert provider_for(entry, None).ask(request_of("hi"), ignore).content == [{"type": "text", "text": "Hi"}]
    assert (bodies[0]["header"], bodies[0]["team"]) == (None, "blue")
