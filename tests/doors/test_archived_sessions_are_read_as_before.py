"""Every route reads an archived session as it did before: lists, streams, threads, messages, secrets."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from doors.reading import stream
from doors.served import Caller, bad, good
from own_database import Clock
from rows.archived import MONTH, archive, conversation, parts
from rows.crew import Crew, send
from rows.stage import Stage, call, say

from models.database.transactions import transaction
from models.flow.begin import sessions
from models.operate import archiving

Reading = Callable[[], Any]


def readings(caller: Caller, session_id: str) -> dict[str, Reading]:
    """Requests that read the session, by name."""
    path = f"/v1/sessions/{session_id}"

    def pages(**query: Any) -> list[Any]:
        rows, page = [], None
        while True:
            answer = good(caller.get(f"{path}/events", params=query | ({"page": page} if page else {})))
            rows += answer["data"]
            page = answer["next_page"]
            if not page:
                return rows

    def streamed(last: int | None) -> list[Any]:
        with stream(caller, session_id, last) as opened:
            return [(frame.id, frame.data) for frame in opened.until("session.status_terminated")]

    everything = good(caller.get(f"{path}/events", params={"limit": 1000}))["data"]
    middle = everything[len(everything) // 2]["processed_at"]
    return {
        "pages": lambda: pages(limit=3),
        "backwards": lambda: pages(limit=3, order="desc"),
        "types": lambda: pages(types=["user.message", "agent.tool_result"], limit=1),
        "times": lambda: pages(**{"created_at[gte]": middle}),
        "before": lambda: pages(**{"created_at[lt]": middle}),
        "approvals": lambda: pages(include="approvals"),
        "secrets": lambda: pages(reveal="true"),
        "stream": lambda: streamed(0),
        "the end of the stream": lambda: streamed(None),
        "messages": lambda: good(caller.get(f"{path}/messages", params={"format": "openai"})),
        "a page of messages": lambda: good(caller.get(f"{path}/messages", params={"format": "openai", "limit": 1})),
    }


def test_each_request_has_the_same_response(stage: Stage, caller: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    session = conversation(stage)
    stage.locked(session, sessions.archive)
    requests = readings(caller, session)
    before = {name: read() for name, read in requests.items()}
    clock.advance(MONTH)
    monkeypatch.setattr(archiving, "PART_BYTES", 1_500)
    assert archive(stage, session) > 2
    for name, read in requests.items():
        assert read() == before[name], name
    good(caller.delete(f"/v1/sessions/{session}"))


def test_the_thread_of_a_sub_agent_is_read_as_before(stage: Stage, caller: Caller, clock: Clock) -> None:
    crew = Crew.begin(stage)
    crew.lead_replies(send("Reader", "Read it."))
    crew.lead_replies(say("I wait."))
    crew.replies(say("It says 42."))
    stage.reply(crew.session_id, say("The answer is 42."))
    thread_id = crew.thread().id
    path = f"/v1/sessions/{crew.session_id}/threads/{thread_id}"
    good(caller.post(f"{path}/archive", json={}))

    def read() -> Any:
        with stream(caller, crew.session_id, path=f"{path}/stream") as opened:
            return good(caller.get(f"{path}/events")), opened.next().data

    before = read()
    clock.advance(MONTH)
    assert archive(stage, crew.session_id)
    assert read() == before


def test_a_chat_request_goes_on_behind_archived_events(stage: Stage, caller: Caller, clock: Clock) -> None:
    """The client did not read the end of its last run, which is archived now. The next reply begins with that end."""
    agent = caller.agent()
    session = caller.session(agent)["id"]
    caller.say(session)
    stage.reply(session, say("Nobody read this."))
    clock.advance(MONTH)
    assert archive(stage, session)
    messages = [{"role": "user", "content": "And now?"}]
    body = {"model": f"assent/{agent['id']}", "messages": messages, "metadata": {"session_id": session}, "stream": True}
    with caller.stream("POST", "/v1/chat/completions", json=body) as response:
        stage.reply(session, say("Now this."))
        *lines, done = [line.removeprefix("data: ") for line in response.iter_lines() if line.startswith("data: ")]
    deltas = [choice["delta"] for line in lines for choice in json.loads(line)["choices"]]
    assert "".join(delta.get("content") or "" for delta in deltas) == "Nobody read this.\n\nNow this."
    assert done == "[DONE]"


def test_a_missing_part_is_one_error_among_the_events(stage: Stage, caller: Caller, clock: Clock) -> None:
    session, other = conversation(stage), conversation(stage)
    clock.advance(MONTH)
    archive(stage, session)
    archive(stage, other)
    [part] = parts(stage, session)
    with transaction(stage.workspace_id) as db:
        db.write("DELETE FROM archive_content WHERE part_id = %(id)s", id=part.id)
    [error] = good(caller.get(f"/v1/sessions/{session}/events"))["data"]
    assert (error["type"], part.id in error["error"]["message"]) == ("session.error", True)
    assert f"part {part.id}" in str(good(caller.get(f"/v1/sessions/{session}/messages", params={"format": "openai"})))
    assert len(good(caller.get(f"/v1/sessions/{other}/events"))["data"]) > 5
    caller.say(session, "Go on.")
    stage.reply(session, call())
    assert len(good(caller.get(f"/v1/sessions/{session}/events"))["data"]) > 3


def test_a_workspace_says_when_sessions_are_archived(caller: Caller) -> None:
    def change(**days: int | None) -> Any:
        return good(caller.post("/v1/policy", json={"retention": days}))["retention"]

    assert change(archive_after_days=90) == {"archive_after_days": 90}
    assert change(archive_after_days=None, audit_days=730) == {"archive_after_days": None, "audit_days": 730}, "never"
    assert good(caller.get("/v1/policy"))["retention"]["archive_after_days"] is None
    assert change(archive_after_days=30) is None, "as by default"
    bad(caller.post("/v1/policy", json={"retention": {"archive_after_days": 0}}), 400, "retention.archive_after_days")
