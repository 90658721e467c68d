"""A request in OpenAI's format may be retried while it waits. Its messages are added once."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from crashes.processes import wait_for
from doors.served import FIRST, RETRY, good
from rows.stage import Stage, call, say
from wire.proxy import Proxy
from wire.talking import LOOK_UP, Talk, talking, tool, user

PATH = "/v1/chat/completions"


def body(talk: Talk) -> dict[str, Any]:
    """Return a request's body."""
    return {"model": talk.model, "messages": [user("Go.")]}


def test_the_sdk_s_own_retry_waits_for_the_same_run(proxy: Proxy, stage: Stage) -> None:
    with talking(proxy.url, stage, max_retries=3) as talk:
        pending = talk.ask(user("Go."))
        session_id = talk.begun()
        before = proxy.connections
        proxy.cut()
        wait_for("a retry", lambda: proxy.connections > before)
        talk.reply(say("Done."))
        assert pending.result().choices[0].message.content == "Done."
        assert talk.said(session_id) == [["Go."]]
        assert talk.sessions() == 1


def test_a_retry_after_the_run_gets_its_answer(talk: Talk) -> None:
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(talk.caller.post, PATH, json=body(talk), headers=FIRST)
        talk.reply(say("Done."))
        first.result()
    answer = good(talk.caller.post(PATH, json=body(talk), headers=RETRY))
    assert answer["choices"][0]["message"]["content"] == "Done."
    assert answer["assent"]["session_id"] == talk.session_id
    assert talk.sessions() == 1


def test_a_tool_result_that_is_sent_again_gets_the_same_answer(talk: Talk) -> None:
    pending = talk.ask(user("Go."), tools=[LOOK_UP])
    [theirs] = talk.reply(call("look_up", n=1))
    message = pending.result().choices[0].message
    more = talk.ask(user("Go."), message, tool(theirs.id, "1"))
    talk.reply(say("It is 1."))
    again = talk.create(user("Go."), message, tool(theirs.id, "1"))
    assert more.result().choices[0].message.content == again.choices[0].message.content == "It is 1."
    assert len(talk.stage.events(talk.session_id, "user.custom_tool_result")) == 1


def test_an_idempotency_key_holds_for_equal_requests(talk: Talk) -> None:
    headers = {"Idempotency-Key": "k"}
    pending = talk.ask(user("Go."), extra_headers=headers)
    talk.reply(say("Done."))
    first = pending.result()
    talk.session_id = ""
    again = talk.create(user("Go."), extra_headers=headers)
    assert again.choices[0].message.content == first.choices[0].message.content == "Done."
    assert talk.sessions() == 1


def test_a_retry_while_the_first_request_waits_gets_the_same_run(talk: Talk) -> None:
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(talk.caller.post, PATH, json=body(talk), headers=FIRST)
        talk.begun()
        again = pool.submit(talk.caller.post, PATH, json=body(talk), headers=RETRY)
        talk.reply(say("Done."))
        for answer in (first, again):
            assert good(answer.result())["choices"][0]["message"]["content"] == "Done."
    assert talk.sessions() == 1


def test_requests_of_two_users_are_told_apart_by_the_field_user(talk: Talk) -> None:
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(talk.caller.post, PATH, json=body(talk) | {"user": "anna"}, headers=FIRST)
        talk.reply(say("Hello Anna."))
        first.result()
        second = pool.submit(talk.caller.post, PATH, json=body(talk) | {"user": "bob"}, headers=RETRY)
        wait_for("a session of the second user's", lambda: talk.sessions() == 2)
        talk.reply(say("Hello Bob."))
        assert good(second.result())["choices"][0]["message"]["content"] == "Hello Bob."


def test_a_client_that_hangs_up_ends_its_wait_and_not_the_run(talk: Talk) -> None:
    stream = talk.sdk.chat.completions.create(model=talk.model, messages=[user("Go.")], stream=True)  # type: ignore[list-item]
    next(stream)
    stream.close()
    talk.reply(say("Done."))
    answer = talk.create({"role": "assistant", "content": ""})
    assert answer.choices[0].message.content == "Done."
    assert talk.said(talk.session_id) == [["Go."]]
