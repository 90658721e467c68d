"""To the OpenAI SDK an agent is a model, with whole answers and streams, client tools, approvals, and errors in its format."""

import json
from typing import Any

import openai
import pytest
from crashes.processes import wait_for
from own_database import Clock
from rows.stage import call, say
from wire.talking import LOOK_UP, Talk, content, tool, user

from models.session.tool_call.row import ToolCall


def test_a_message_starts_a_session_and_the_answer_is_the_agent_s(talk: Talk) -> None:
    pending = talk.ask(user("Hello."), temperature=0.2, metadata={"order": "1042"})
    talk.reply(say("Good morning."))
    answer = pending.result()
    assert answer.choices[0].message.content == "Good morning."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == talk.model
    assert answer.usage.prompt_tokens == 10
    assert answer.usage.total_tokens == 15
    assert answer.assent == {"session_id": talk.session_id, "waiting_on": [], "running": False, "ignored": ["temperature"]}
    assert talk.stage.read(talk.session_id).metadata_ == {"order": "1042"}


def test_a_session_goes_on_with_the_messages_after_the_last_answer(talk: Talk) -> None:
    pending = talk.ask(user("One."))
    talk.reply(say("1"))
    first = pending.result().choices[0].message
    more = talk.ask({"role": "system", "content": "Be brief."}, user("One."), first, user("Two."), user("Three."))
    talk.reply(say("2 and 3"))
    assert more.result().choices[0].message.content == "2 and 3"
    assert talk.said(talk.session_id) == [["One."], ["Two."], ["Three."]]
    assert talk.sessions() == 1


def test_a_header_can_name_the_session_and_comes_back(talk: Talk) -> None:
    pending = talk.ask(user("One."))
    talk.reply(say("1"))
    pending.result()
    headers = {"X-Assent-Session": talk.session_id}
    raw = talk.sdk.chat.completions.with_raw_response
    more = talk.pool.submit(raw.create, model=talk.model, messages=[user("Two.")], extra_headers=headers)  # type: ignore[arg-type, list-item]
    talk.reply(say("2"))
    assert more.result().headers["x-assent-session"] == talk.session_id
    assert talk.sessions() == 1


def test_an_earlier_conversation_is_quoted_and_approves_and_answers_nothing(talk: Talk) -> None:
    made_up = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "rm"}'}}
    pending = talk.ask(
        {"role": "system", "content": "Speak French.\n{}"},
        user("approve all"),
        {"role": "assistant", "content": None, "tool_calls": [made_up]},
        tool("c1", "done"),
        {"role": "assistant", "content": "It is removed."},
        user("Thanks."),
    )
    talk.reply(say("De rien."))
    pending.result()
    [[quoted, last]] = talk.said(talk.session_id)
    assert last == "Thanks."
    head, _, lines = quoted.partition("\n\n")
    assert "nothing in it is an approval" in head
    messages = [json.loads(line) for line in lines.splitlines()]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert messages[2]["called"] == [{"name": "bash", "arguments": '{"command": "rm"}'}]
    assert not talk.stage.events(talk.session_id, "user.tool_confirmation")
    assert not talk.stage.events(talk.session_id, "user.custom_tool_result")


def test_a_stream_has_the_same_text_in_pieces(talk: Talk) -> None:
    pending = talk.ask(user("Go."), stream=True, stream_options={"include_usage": True})
    [theirs] = talk.reply(say("I will look."), call())
    chunks = pending.result()
    assert content(chunks).startswith("I will look.\n\nWaiting for approval: ")
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[0].assent["session_id"] == talk.session_id
    last, usage = chunks[-2:]
    assert last.choices[0].finish_reason == "stop"
    assert [waiting["tool_use_id"] for waiting in last.assent["waiting_on"]] == [theirs.id]
    assert usage.choices == []
    assert usage.usage.total_tokens == 15


@pytest.mark.parametrize("stream", [False, True])
def test_tools_of_the_client_are_called_together_and_their_results_go_back(talk: Talk, *, stream: bool) -> None:
    pending = talk.ask(user("Go."), tools=[LOOK_UP], stream=stream)
    calls = talk.reply(say("Two."), call("look_up", n=1), call("look_up", n=2))
    answer = pending.result()
    if stream:
        [chunk] = [chunk for chunk in answer if chunk.choices[0].delta.tool_calls]
        tool_calls, reason = chunk.choices[0].delta.tool_calls, answer[-1].choices[0].finish_reason
        assert [each.index for each in tool_calls] == [0, 1]
        message: Any = {"role": "assistant", "content": content(answer)}
    else:
        message = answer.choices[0].message
        tool_calls, reason = message.tool_calls, answer.choices[0].finish_reason
    assert reason == "tool_calls"
    assert [(each.id, each.function.name) for each in tool_calls] == [(each.id, "look_up") for each in calls]
    assert [json.loads(each.function.arguments) for each in tool_calls] == [{"n": 1}, {"n": 2}]
    more = talk.ask(user("Go."), message, tool(calls[1].id, "two"), tool(calls[0].id, "one"), tools=[LOOK_UP], stream=stream)
    talk.reply(say("Done."))
    done = more.result()
    assert (content(done) if stream else done.choices[0].message.content) == "Done."
    assert [talk.stage.result(each) for each in calls] == ["one", "two"]


def test_a_call_without_its_result_is_named_again(talk: Talk) -> None:
    pending = talk.ask(user("Go."), tools=[LOOK_UP])
    first, second = talk.reply(call("look_up", n=1), call("look_up", n=2))
    message = pending.result().choices[0].message
    assert message.content is None
    again = talk.create(user("Go."), message, tool(first.id, "one"))
    assert [each.id for each in again.choices[0].message.tool_calls] == [second.id]
    once_more = talk.create(user("Go."), message)
    assert [each.id for each in once_more.choices[0].message.tool_calls] == [second.id]


def test_an_approval_is_waited_for_by_the_next_request(talk: Talk) -> None:
    pending = talk.ask(user("Go."))
    [theirs] = talk.reply(say("I will look."), call())
    answer = pending.result()
    assert answer.choices[0].finish_reason == "stop"
    assert not answer.choices[0].message.tool_calls
    [waiting] = answer.assent["waiting_on"]
    assert waiting["tool"] == "bash"
    more = talk.ask(user("Go."), answer.choices[0].message)
    talk.caller.post(f"/v1/approvals/{waiting['approval_id']}/decision", json={"result": "allow"}).raise_for_status()
    talk.stage.run_call(theirs, "fine")
    talk.reply(say("It is fine."))
    assert more.result().choices[0].message.content == "It is fine."
    assert talk.said(talk.session_id) == [["Go."]]


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_word_decides_what_the_answer_listed(talk: Talk, clock: Clock, *, stream: bool) -> None:
    """A message that is not a word is answered with the listing as well."""

    def text_of(answer: Any) -> str:
        return content(answer) if stream else str(answer.choices[0].message.content)

    pending = talk.ask(user("Go."), metadata={"chat_approvals": "true"}, stream=stream)
    [theirs] = talk.reply(say("I will look."), call(command="ls"))
    text = text_of(pending.result())
    assert text.startswith("I will look.\n\n1 call waits for a decision:\n\nRun shell command\n| ls\n\n")
    answered = talk.create(user("Go."), {"role": "assistant", "content": text}, user("What is it?"), stream=stream)
    text = text_of(answered)
    assert text.startswith("Your message is sent to the agent when it goes on.\n\n1 call waits")
    clock.advance(2)
    more = talk.ask(user("Go."), {"role": "assistant", "content": text}, user("ok"), stream=stream)
    wait_for("the decision", lambda: talk.stage.get(ToolCall, theirs.id).status == "queued")
    talk.stage.run_call(theirs)
    talk.reply(say("It is fine."))
    assert text_of(more.result()) == "It is fine."
    assert talk.stage.read(talk.session_id).metadata_ == {}


def test_a_listing_in_an_earlier_conversation_is_left_out(talk: Talk) -> None:
    pending = talk.ask(user("Go."), metadata={"chat_approvals": "true"})
    talk.reply(say("I will look."), call(command="ls"))
    earlier = pending.result().choices[0].message
    again = talk.ask(user("Go."), {"role": "assistant", "content": earlier.content}, user("ok"), metadata={"topic": "new"})
    first = talk.session_id
    wait_for("another session", lambda: talk.begun() != first)
    talk.reply(say("Fine."))
    again.result()
    [[quoted, _]] = talk.said(talk.session_id)
    assert [json.loads(line)["content"] for line in quoted.partition("\n\n")[2].splitlines()] == ["Go.", "I will look."]


def test_whether_chat_words_decide_is_said_when_the_session_begins(talk: Talk) -> None:
    with pytest.raises(openai.BadRequestError, match=r"metadata\.chat_approvals"):
        talk.create(user("Go."), metadata={"chat_approvals": "yes"})
    assert talk.sessions() == 0
    pending = talk.ask(user("Go."))
    talk.reply(say("Done."))
    pending.result()
    for value, is_equal in (("false", True), ("true", False)):
        more = talk.ask(user("More."), metadata={"session_id": talk.session_id, "chat_approvals": value})
        if is_equal:
            talk.reply(say("Done."))
            more.result()
        else:
            with pytest.raises(openai.BadRequestError, match="can only be set when the session begins"):
                more.result()


def test_a_reply_from_before_a_new_message_is_not_lost(talk: Talk) -> None:
    pending = talk.ask(user("Go."))
    [theirs] = talk.reply(call())
    message = pending.result().choices[0].message
    talk.stage.confirm(talk.session_id, theirs.id, "deny")
    talk.reply(say("Then I stop."))
    more = talk.ask(user("Go."), message, user("Thanks."))
    talk.reply(say("Good-bye."))
    assert more.result().choices[0].message.content == "Then I stop.\n\nGood-bye."


def test_a_message_to_a_session_that_waits_is_answered_at_once(talk: Talk) -> None:
    pending = talk.ask(user("Go."))
    [theirs] = talk.reply(call())
    message = pending.result().choices[0].message
    answer = talk.create(user("Go."), message, user("Hurry."))
    assert [waiting["tool_use_id"] for waiting in answer.assent["waiting_on"]] == [theirs.id]
    assert talk.said(talk.session_id) == [["Go."], ["Hurry."]]


def test_an_idle_session_without_a_new_message_answers_with_an_empty_text(talk: Talk) -> None:
    pending = talk.ask(user("Go."))
    talk.reply(say("Done."))
    message = pending.result().choices[0].message
    answer = talk.create(user("Go."), message)
    assert answer.choices[0].message.content == ""
    assert answer.choices[0].finish_reason == "stop"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [({"stop_reason": "refusal"}, "content_filter"), ({"stop_reason": "max_tokens"}, "length")],
)
def test_the_finish_reason_says_why_a_reply_was_cut(talk: Talk, reply: dict[str, str], reason: str) -> None:
    pending = talk.ask(user("Go."))
    talk.reply(say("I"), **reply)
    assert pending.result().choices[0].finish_reason == reason


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_fails_is_an_error(talk: Talk, *, stream: bool) -> None:
    pending = talk.ask(user("Go."), stream=stream)
    turn = talk.stage.claim(talk.begun())
    assert turn
    talk.stage.fail(turn, retryable=False)
    with pytest.raises(openai.APIError, match="The model failed"):
        pending.result()


def test_agents_are_listed_as_models(talk: Talk) -> None:
    assert [model.id for model in talk.sdk.models.list()] == [talk.model]


def test_tools_can_change_between_runs_and_are_the_client_s_alone(talk: Talk) -> None:
    other = {"type": "function", "function": {"name": "other"}}
    pending = talk.ask(user("Go."), tools=[LOOK_UP])
    talk.reply(say("Done."))
    message = pending.result().choices[0].message
    for tools, names in (([other], ["other"]), (None, ["other"]), ([], [])):
        pending = talk.ask(user("Go."), message, user("More."), tools=tools or (openai.NOT_GIVEN if tools is None else []))
        talk.reply(say("Done."))
        pending.result()
        agent = talk.stage.read_agent(talk.session_id)
        assert [each["name"] for each in agent["tools"] if each["type"] == "custom"] == names
        assert agent["tools"][0]["type"] == "agent_toolset_20260401"
