"""Events are stored together, listed in order, and filtered. Our own types are listed only on request."""

from typing import Any

from doors.served import Caller, bad, confirmation, good, message
from rows.stage import Stage, call, say


def test_sending_answers_with_the_events_as_stored(caller: Caller) -> None:
    session = caller.session()
    first, second = good(caller.tell(session["id"], message("One."), message("Two.")))["data"]
    assert (first["type"], first["processed_at"]) == ("user.message", None)
    assert first["content"] == [{"type": "text", "text": "One."}]
    assert second["id"] != first["id"]
    assert good(caller.get(f"/v1/sessions/{session['id']}"))["status"] == "running"


def test_a_whole_run_reads_in_order(caller: Caller, stage: Stage) -> None:
    session = caller.session()
    caller.say(session["id"])
    [tool_call] = stage.reply(session["id"], say("I will look."), call())
    good(caller.tell(session["id"], confirmation(tool_call.id)))
    stage.run_call(tool_call, "fine")
    stage.reply(session["id"], say("Done."))
    types = [e["type"] for e in caller.events(session["id"])]
    assert types[0] == "user.message"
    assert types[-1] == "session.status_idle"
    assert "approval.requested" not in types
    ours = [e["type"] for e in caller.events(session["id"], include="approvals")]
    assert [t for t in ours if not t.startswith("approval.")] == types
    assert [t for t in ours if t.startswith("approval.")] == ["approval.requested", "approval.decided"]


def test_pages_filters_and_both_orders(caller: Caller, stage: Stage) -> None:
    session = caller.session()
    for n in range(3):
        caller.say(session["id"], f"{n}")
        stage.reply(session["id"], say(f"{n}"))
    everything = caller.events(session["id"])
    assert caller.events(session["id"], order="desc") == everything[::-1]
    assert [e["content"][0]["text"] for e in caller.events(session["id"], **{"types[]": ["agent.message"]})] == ["0", "1", "2"]
    assert len(caller.events(session["id"], types="agent.message")) == 3
    listed: list[Any] = []
    page: str | None = ""
    while page is not None:
        query = {"limit": 4} | ({"page": page} if page else {})
        response = good(caller.get(f"/v1/sessions/{session['id']}/events", params=query))
        listed += response["data"]
        page = response["next_page"]
    assert listed == everything
    middle = everything[7]["processed_at"]
    late = caller.events(session["id"], **{"created_at[gt]": middle})
    early = caller.events(session["id"], **{"created_at[lte]": middle})
    assert early + late == everything


def test_a_queued_message_is_unprocessed_until_it_is_read(caller: Caller, stage: Stage) -> None:
    session = caller.session()
    caller.say(session["id"], "One.")
    turn = stage.claim(session["id"])
    caller.say(session["id"], "Two.")
    assert [bool(e["processed_at"]) for e in caller.events(session["id"], types="user.message")] == [True, False]
    stage.reply(session["id"], say("Done."), turn=turn)
    stage.claim(session["id"])
    assert [bool(e["processed_at"]) for e in caller.events(session["id"], types="user.message")] == [True, True]


def test_a_client_tool_s_result_is_taken_once(caller: Caller, stage: Stage) -> None:
    tool = {"type": "custom", "name": "look_up", "description": "d", "input_schema": {"type": "object"}}
    session = caller.session(caller.agent(tools=[tool]))
    caller.say(session["id"])
    [tool_call] = stage.reply(session["id"], call("look_up", n=1))
    result = {"type": "user.custom_tool_result", "custom_tool_use_id": tool_call.id, "content": [{"type": "text", "text": "42"}]}
    first = good(caller.tell(session["id"], result))
    assert good(caller.tell(session["id"], result)) == first
    bad(caller.tell(session["id"], {**result, "is_error": True}), 400, "events.0.custom_tool_use_id")


def test_an_interrupt_ends_the_run(caller: Caller, stage: Stage) -> None:
    session = caller.session()
    caller.say(session["id"])
    stage.reply(session["id"], call())
    good(caller.tell(session["id"], {"type": "user.interrupt"}))
    last = caller.events(session["id"])[-1]
    assert (last["type"], last["stop_reason"]["type"]) == ("session.status_idle", "end_turn")
    assert last["stop_reason"]["ended_by"].startswith("api_key:")
