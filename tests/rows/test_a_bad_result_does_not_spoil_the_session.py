"""After each way a run can end the next message gets a normal reply: also when a result is what the model does not accept."""

from typing import Any

from rows.stage import Stage, call

from models import flow
from models.session.tool_call import ToolCall

IMAGE: dict[str, Any] = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "bm8gaW1hZ2U="}}
"""A client's screenshot that is no image: the door takes it, the model answers 400."""


def test_a_result_that_the_model_refused_is_not_sent_again(stage: Stage) -> None:
    session_id = stage.session(custom=("screenshot",))
    stage.message(session_id)
    found = stage.reply(session_id, call("screenshot"))[0]
    stage.send(session_id, {"type": "user.custom_tool_result", "custom_tool_use_id": found.id, "content": [IMAGE]})
    turn = stage.claim(session_id)
    assert turn
    stage.fail(turn, retryable=False, leave_out=True)

    stage.message(session_id, "Never mind.")

    assert IMAGE not in [
        block
        for message in stage.history(session_id)
        for result in message["content"]
        if result["type"] == "tool_result"
        for block in result["content"]
    ], "every later message would fail as this one did"


def _blank(stage: Stage, session_id: str) -> list[str]:
    """Texts of results that the model would be sent and refuses: nothing but white space."""
    blocks = [block for message in stage.history(session_id) for block in message["content"] if block["type"] == "tool_result"]
    texts = [part["text"] for block in blocks for part in block["content"] if part["type"] == "text"]
    return [text for text in texts if not text.strip()]


def test_a_file_of_blanks_can_be_read(stage: Stage) -> None:
    session_id = stage.session(read="always_allow")
    stage.message(session_id)
    found = stage.reply(session_id, call("read", file_path="blank.txt"))[0]

    stage.run_call(found, " \n")

    assert not _blank(stage, session_id), "the model answers 400, now and to every later message"


def test_a_client_s_result_may_be_blank(stage: Stage) -> None:
    session_id = stage.session(custom=("ask",))
    stage.message(session_id)
    found = stage.reply(session_id, call("ask", n=1))[0]

    blank = [{"type": "text", "text": " "}]
    stage.send(session_id, {"type": "user.custom_tool_result", "custom_tool_use_id": found.id, "content": blank})

    assert not _blank(stage, session_id)


def test_a_person_s_word_for_what_happened_may_be_blank(stage: Stage) -> None:
    session_id = stage.session(bash="always_allow")
    stage.message(session_id)
    found = stage.reply(session_id, call())[0]
    held = stage.claim_call(found)
    assert held
    stage.locked(session_id, lambda db, session: flow.lose_call(db, session, ToolCall.held(db, held.id, held.fence)))

    stage.decide(stage.approvals(session_id)[0], outcome="happened", content=({"type": "text", "text": " "},))

    assert not _blank(stage, session_id)
