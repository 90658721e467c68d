"""Promises of the stand-in model, most of them tested through the official client."""

import time
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import pytest

BASH: dict[str, Any] = {"name": "bash", "description": "Runs a command.", "input_schema": {"type": "object"}}
Ask = Callable[..., anthropic.types.Message]


@pytest.fixture
def ask(claude: anthropic.Anthropic) -> Ask:
    """A function that sends messages, and returns the reply."""

    def run(*messages: Any, **params: Any) -> anthropic.types.Message:
        history = [{"role": "user", "content": message} if isinstance(message, str) else message for message in messages]
        reply: anthropic.types.Message = claude.messages.create(
            **{"model": "stand-in", "max_tokens": 4000, "messages": history} | params
        )
        return reply

    return run


def refusal(ask: Ask, *messages: Any, **params: Any) -> str:
    """Assert that the request is refused. Returns the error's message."""
    with pytest.raises(anthropic.BadRequestError) as caught:
        ask(*messages, **params)
    assert caught.value.type == "invalid_request_error"
    assert caught.value.request_id
    return str(caught.value.api_message)


def called(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": one, "name": "bash", "input": {}} for one in ids]}


def answered(*ids: str, then: str = "", **more: Any) -> dict[str, Any]:
    results: list[Any] = [{"type": "tool_result", "tool_use_id": one, "content": f"result of {one}", **more} for one in ids]
    return {"role": "user", "content": results + ([{"type": "text", "text": then}] if then else [])}


def text_of(message: anthropic.types.Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


# The script


def test_say_gives_that_text(ask: Ask) -> None:
    message = ask("say Good morning")
    assert (text_of(message), message.stop_reason) == ("Good morning", "end_turn")


def test_several_calls_before_then_are_one_parallel_reply(ask: Ask) -> None:
    message = ask('call bash {"command": "ls"}\ncall read {"path": "a"}\nthen\nsay done')
    assert [(block.name, block.input) for block in message.content if block.type == "tool_use"] == [
        ("bash", {"command": "ls"}),
        ("read", {"path": "a"}),
    ]
    assert message.stop_reason == "tool_use"


def test_the_place_in_a_script_follows_from_the_conversation_alone(ask: Ask) -> None:
    script = "call bash\nthen\nsay second\ncall bash\nthen\nsay third"
    assert text_of(ask(script, called("a"), answered("a"))) == "second"
    assert text_of(ask(script, called("a"), answered("a"), called("b"), answered("b"))) == "third"


def test_a_failed_call_does_not_stop_a_script(ask: Ask) -> None:
    assert text_of(ask("call bash\nthen\nsay on we go", called("a"), answered("a", is_error=True))) == "on we go"


def test_a_new_message_starts_a_new_script_even_behind_results(ask: Ask) -> None:
    assert text_of(ask("call bash\nthen\nsay old", called("a"), answered("a", then="say new"))) == "new"


def test_after_a_script_it_says_the_results_of_the_tools(ask: Ask) -> None:
    assert "result of a" in text_of(ask("call bash", called("a"), answered("a")))


def test_a_looping_call_comes_again_whatever_the_results(ask: Ask) -> None:
    script = 'loop call bash {"n": 1}'
    for history in ([], [called("a"), answered("a", is_error=True)], [called("a"), answered("a"), called("b"), answered("b")]):
        assert ask(script, *history).stop_reason == "tool_use"


def test_thinking_is_signed_and_refused_when_changed(ask: Ask) -> None:
    thought = ask("think about it\nsay done").content[0].model_dump()
    assert thought["thinking"] == "about it"
    ask("hello", {"role": "assistant", "content": [thought]}, "say ok")
    changed = {"role": "assistant", "content": [{**thought, "thinking": "other"}]}
    assert "Invalid `signature`" in refusal(ask, "hello", changed, "say ok")


def test_a_refusal_says_why(ask: Ask) -> None:
    message = ask("refuse not today")
    assert message.stop_reason == "refusal"
    assert message.stop_details
    assert message.stop_details.explanation == "not today"


def test_max_tokens_is_kept_and_can_be_scripted(ask: Ask) -> None:
    message = ask("say 500 tokens", max_tokens=20)
    assert (message.stop_reason, message.usage.output_tokens, len(text_of(message))) == ("max_tokens", 20, 80)
    assert ask("say so\nmax_tokens").stop_reason == "max_tokens"


def test_slow_text_keeps_its_pace(claude: anthropic.Anthropic) -> None:
    began, prompt = time.monotonic(), {"role": "user", "content": "say 50 tokens at 100/s"}
    with claude.messages.stream(model="stand-in", max_tokens=100, messages=[prompt]) as stream:  # type: ignore[list-item]
        pieces = list(stream.text_stream)
    assert len(pieces) == 50
    assert time.monotonic() - began > 0.45


def test_a_failure_ends_after_the_scripted_number_of_tries(ask: Ask) -> None:
    for _ in range(2):
        with pytest.raises(anthropic.OverloadedError):
            ask("fail 529 2 times\nsay recovered")
    assert text_of(ask("fail 529 2 times\nsay recovered")) == "recovered"


def test_a_rate_limit_carries_its_retry_after(ask: Ask) -> None:
    with pytest.raises(anthropic.RateLimitError) as caught:
        ask("fail 429 1 times retry-after 3\nsay ok")
    assert caught.value.response.headers["retry-after"] == "3"
    assert text_of(ask("fail 429 1 times retry-after 3\nsay ok")) == "ok"


def test_a_dropped_connection_gives_no_answer(ask: Ask) -> None:
    with pytest.raises(anthropic.APIConnectionError):
        ask("drop connection 1 times\nsay back")
    assert text_of(ask("drop connection 1 times\nsay back")) == "back"


def test_a_reply_is_never_empty_unless_it_is_refused_or_cut(ask: Ask) -> None:
    assert text_of(ask("think about it"))
    assert text_of(ask("delay 0.01s"))


def test_an_invalid_directive_is_refused_by_its_line(ask: Ask) -> None:
    assert "line 2: the input of `call bash` is not a JSON object" in refusal(ask, 'hello\ncall bash {"a":')


# Without a script


def test_it_introduces_itself(ask: Ask) -> None:
    assert "stand-in model" in text_of(ask("Good morning!"))


def test_on_a_request_to_run_something_it_calls_bash_once_and_says_the_result(ask: Ask) -> None:
    message = ask("Please run a command", tools=[BASH])
    assert [block.name for block in message.content if block.type == "tool_use"] == ["bash"]
    after = ask("Please run a command", called("a"), answered("a"), tools=[BASH])
    assert after.stop_reason == "end_turn"
    assert "result of a" in text_of(after)


def test_after_a_denial_it_stops(ask: Ask) -> None:
    after = ask("Please run a command", called("a"), answered("a", is_error=True), tools=[BASH])
    assert after.stop_reason == "end_turn"
    assert "do not try it again" in text_of(after)


# Refusals, as by Anthropic's API


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([], "at least one message is required"),
        (["hi", called("a")], "must end with a user message"),
        ([called("a")], 'first message must use the "user" role'),
        ([{"role": "robot", "content": "hi"}], "messages.0.role"),
        ([{"role": "user", "content": ""}], "non-empty content"),
        ([{"role": "user", "content": []}], "non-empty content"),
        ([{"role": "user", "content": [{"type": "text", "text": ""}]}], "text content blocks must be non-empty"),
        (["  \n"], "non-whitespace"),
        ([{"role": "user", "content": [{"type": "text", "text": "a", "at": 1}]}], "at: Extra inputs are not permitted"),
        (["hi", called("a"), "and?"], "messages.1: `tool_use` ids were found without `tool_result` blocks"),
        (["hi", called("a", "b"), answered("a")], "immediately after: b"),
        (["hi", called("a"), answered("a"), answered("a")], "must have a single result"),
        (["hi", {"role": "assistant", "content": "ok"}, answered("a")], "unexpected `tool_use_id`"),
        (["hi", called("a"), answered("a"), called("a"), answered("a")], "ids must be unique"),
        (
            ["hi", called("a"), {"role": "user", "content": [{"type": "text", "text": "x"}, *answered("a")["content"]]}],
            "without `tool_result` blocks immediately after: a",
        ),
        (["hi", called("a"), {"role": "user", "content": [*answered("a", content="", is_error=True)["content"]]}], "empty"),
        ([{"role": "user", "content": called("a")["content"]}], "does not match any of the expected tags"),
    ],
)
def test_a_history_that_anthropic_s_api_refuses_is_refused(ask: Ask, messages: list[Any], why: str) -> None:
    assert why in refusal(ask, *messages)


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"max_tokens": 0}, "max_tokens: Input should be greater than 0"),
        ({"model": ""}, "model: "),
        ({"tools": [{**BASH, "name": "has space"}]}, "tools.0.custom.name"),
        ({"tools": [BASH, BASH]}, "must be unique"),
        ({"tools": [{"name": "bash"}]}, "tools.0.custom.input_schema: Field required"),
        ({"tools": [{**BASH, "input_schema": {"type": "string"}}]}, "input_schema.type"),
        ({"tools": [{**BASH, "input_schema": {"type": "object", "properties": 1}}]}, "JSON schema is invalid"),
        ({"tool_choice": {"type": "auto"}}, "while providing tools"),
        ({"system": [{"type": "text", "text": ""}]}, "system: text content blocks must be non-empty"),
        ({"cache_control": {"type": "ephemeral", "ttl": "2h"}}, "cache_control"),
        ({"extra_body": {"reasoning": 1}}, "reasoning: Extra inputs are not permitted"),
    ],
)
def test_params_that_anthropic_s_api_refuses_are_refused(ask: Ask, params: dict[str, Any], why: str) -> None:
    assert why in refusal(ask, "say hi", **params)


def test_results_may_be_spread_over_neighbouring_messages_and_tools_may_be_unlisted(ask: Ask) -> None:
    assert text_of(ask("call bash\nthen\nsay ok", called("a", "b"), answered("a"), answered("b"))) == "ok"


def test_a_request_without_a_key_is_unauthorised(http: httpx2.Client) -> None:
    del http.headers["x-api-key"]
    answer = http.post("/v1/messages", json={})
    assert (answer.status_code, answer.json()["error"]["type"]) == (401, "authentication_error")
    assert http.post("/v1/messages", json={}, headers={"authorization": "Bearer k"}).status_code == 400


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff", b'{"model": "m", "max_tokens": true, "messages": []}'])
def test_a_malformed_body_is_refused(http: httpx2.Client, body: bytes) -> None:
    assert http.post("/v1/messages", content=body).status_code == 400


def test_it_looks_around_if_a_person_asks_in_plain_english(ask: Ask) -> None:
    message = ask("Please look around in your working directory, and tell me what you see.", tools=[BASH])
    [call] = [block for block in message.content if block.type == "tool_use"]
    assert (call.name, call.input) == ("bash", {"command": "pwd && ls -la && date"})


# Cache, recorded requests, other routes


def test_a_prefix_seen_before_is_read_from_the_cache(ask: Ask) -> None:
    long, cached = "word " * 400, {"system": f"{time.time()}", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    first = ask(f"say hello\n{long}", **cached).usage
    assert (first.cache_read_input_tokens, first.input_tokens) == (0, 0)
    assert first.cache_creation
    assert first.cache_creation.ephemeral_1h_input_tokens == first.cache_creation_input_tokens > 400
    second = ask(f"say hello\n{long}", {"role": "assistant", "content": "hello"}, "say more", **cached).usage
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens
    assert 0 < (second.cache_creation_input_tokens or 0) < 50


def test_requests_are_recorded_without_their_key_and_can_be_deleted(http: httpx2.Client, ask: Ask) -> None:
    http.delete("/standin/requests").raise_for_status()
    for word in ("one", "two", "three"):
        ask(f"say {word}")
    sent = http.get("/standin/requests", params={"last": 2}).json()["data"]
    assert [body["messages"][0]["content"] for body in sent] == ["say two", "say three"]
    assert "sk-test" not in http.get("/standin/requests").text
    http.delete("/standin/requests").raise_for_status()
    assert http.get("/standin/requests").json()["data"] == []


def test_models_and_health_answer(claude: anthropic.Anthropic, http: httpx2.Client) -> None:
    assert [model.id for model in claude.models.list()] == ["stand-in"]
    assert http.get("/healthz").json() == {"status": "ok"}
