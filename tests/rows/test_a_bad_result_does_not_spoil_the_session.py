"""A result that the model does not accept does not break the session: later messages get normal replies."""

from typing import Any

from rows.stage import Stage, call

from models.flow.run.results import lose_call

IMAGE: dict[str, Any] = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "bm8gaW1hZ2U="}}
"""A client's screenshot that is not an image: the API takes it, the model answers 400."""


def test_a_result_that_the_model_refused_is_not_sent_again(stage: Stage) -> None:
    session_id = stage.session(custom=("screenshot",))
    tool_call = stage.propose(session_id, call("screenshot"))
    stage.send(session_id, {"type": "user.custom_tool_result", "custom_tool_use_id": tool_call.id, "content": [IMAGE]})
    turn = stage.begin(session_id)
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
    """Texts of white space among the results that the model would be sent. The model refuses them."""
    blocks = [block for message in stage.history(session_id) for block in message["content"] if block["type"] == "tool_result"]
    texts = [part["text"] for block in blocks for part in block["content"] if part["type"] == "text"]
    return [text for text in texts if not text.strip()]


def test_a_file_of_blanks_can_be_read(stage: Stage) -> None:
    session_id = stage.session(read="always_allow")
    tool_call = stage.propose(session_id, call("read", file_path="blank.txt"))

    stage.run_call(tool_call, " \n")

    assert not _blank(stage, session_id), "the model answers 400, now and to every later message"


def test_a_client_s_result_may_be_blank(stage: Stage) -> None:
    session_id = stage.session(custom=("ask",))
    tool_call = stage.propose(session_id, call("ask", n=1))

    blank = [{"type": "text", "text": " "}]
    stage.send(session_id, {"type": "user.custom_tool_result", "custom_tool_use_id": tool_call.id, "content": blank})

    assert not _blank(stage, session_id)


def test_a_person_s_account_of_the_outcome_may_be_blank(stage: Stage) -> None:
    session_id = stage.session(bash="always_allow")
    tool_call = stage.propose(session_id)
    held = stage.begin_call(tool_call)
    stage.worked(held, lambda locked: lose_call(locked, held.as_held(locked.db)))

    stage.decide(stage.approvals(session_id)[0], outcome="happened", content=({"type": "text", "text": " "},))

    assert not _blank(stage, session_id)
