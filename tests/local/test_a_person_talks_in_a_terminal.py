"""`assent chat`: a person talks with an agent and decides in one place, leaves, and goes on from another terminal."""

from typing import Any

import pytest
from crashes.processes import wait_for
from doors.served import Caller, good
from doors.stream_frames import delta, publish, readers, start
from doors.waiting import agent_with
from faults.proxy import proxied
from local.conftest import Assent
from local.terminal import terminal
from people import member
from rows.stage import Stage, call, say


def started(caller: Caller) -> str:
    """Wait for a session. Returns its id."""
    rows: list[dict[str, Any]] = wait_for("a session", lambda: good(caller.get("/v1/sessions"))["data"])
    session_id: str = rows[0]["id"]
    return session_id


def test_it_talks_and_decides_in_one_place(caller: Caller, stage: Stage) -> None:
    agent_with(caller)
    with terminal("chat", "Agent", columns=40) as screen:
        screen.wait_for("you> ")
        screen.type("List the files.\n")
        screen.wait_for("\n")
        session_id = started(caller)
        first, second = stage.reply(session_id, say("I look."), call(command="ls"), call(command="pwd"))
        assert "agent> I look." in screen.wait_for("Run shell command: ls")
        screen.wait_for("q quit")
        screen.wait_for("Your choice: ")
        screen.type("1\n1\n")  # the second line comes before its question, so it answers nothing
        screen.wait_for("Decided.")
        screen.wait_for("Run shell command: pwd")
        screen.wait_for("Your choice: ")
        screen.type("5\n")
        screen.wait_for("Tell the agent: ")
        screen.type("Not that one.\n")
        screen.wait_for("Decided.")
        stage.run_call(first, "a.txt")
        screen.wait_for("result: a.txt")
        assert "Not that one." in stage.result(second)
        stage.reply(session_id, say("One file: a.txt."))
        screen.wait_for("agent> One file: a.txt.")
        screen.wait_for("you> ")
        screen.type("\x04")
        screen.wait_for(f"Go on with: assent chat --session {session_id}")


def test_another_terminal_goes_on_and_is_asked_once(caller: Caller, stage: Stage) -> None:
    session_id = caller.session(agent_with(caller))["id"]
    caller.say(session_id, "Look.")
    [tool_call] = stage.reply(session_id, say("I look."), call(command="ls"))
    with terminal("chat", "--session", session_id) as screen:
        assert "you> Look.\nagent> I look." in screen.wait_for("Run shell command: ls")
        screen.wait_for("Your choice: ")
        screen.type("9\n")
        screen.wait_for("Watching. Ctrl-C for more.")
        assert good(caller.tell(session_id, {"type": "user.tool_confirmation", "tool_use_id": tool_call.id, "result": "deny"}))
        assert "Your choice" not in screen.wait_for("✗ Denied by the key “")
        screen.type("\x03")
        screen.wait_for("Your choice: ")
        screen.type("3\n")
        screen.wait_for("you> ")
        assert stage.read(session_id).status == "idle"


def test_it_says_what_waits_for_others(caller: Caller, stage: Stage) -> None:
    for _ in range(2):
        member(stage, "approver")
    session_id = caller.session(agent_with(caller, required_approvals=2))["id"]
    caller.say(session_id)
    stage.reply(session_id, call(command="ls"))
    with terminal("chat", "--session", session_id) as screen:
        screen.wait_for("Waits for others: Run shell command: ls")
        assert "0 of 2 approvals" in screen.wait_for("people sign in and vote, and this API key cannot")
        screen.wait_for("people    2 people (")
        screen.wait_for("Watching.")


def test_without_a_terminal_it_says_what_to_do(assent: Assent) -> None:
    assert "needs a terminal" in assent("chat", code=1)


@pytest.mark.parametrize(("words", "text"), [(["chat", "Nobody"], "no agent is named 'Nobody': give the id"), (["chat"], "you> ")])
def test_an_agent_is_found_by_its_name(caller: Caller, words: list[str], text: str) -> None:
    caller.agent()
    with terminal(*words) as screen:
        screen.wait_for(text)


def test_a_text_whose_stream_breaks_off_is_shown_whole_once_the_api_answers_again(
    api: str, caller: Caller, stage: Stage, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_with(caller)
    with proxied(int(api.rpartition(":")[2])) as proxy:
        monkeypatch.setenv("ASSENT_URL", f"http://127.0.0.1:{proxy.port}")
        with terminal("chat", "Agent") as screen:
            screen.wait_for("you> ")
            screen.type("Go.\n")
            session_id = started(caller)
            wait_for("a reader", lambda: readers(redis_url, session_id))
            publish(redis_url, session_id, start("sevt_1"), delta("sevt_1", "I lo"))
            screen.wait_for("agent> I lo")
            proxy.hang_up()
            screen.wait_for("the stream broke off")
            stage.reply(session_id, say("I look."))
            assert screen.wait_for("agent> I look.").count("agent>") == 0
            screen.wait_for("you> ")
            screen.type("\x04")
            screen.wait_for("Go on with: ")
