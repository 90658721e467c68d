"""A turn ends whatever the provider answers, even if the database cannot store the answer."""

import json
import threading
from collections.abc import Callable

import pytest
from rows.stage import Stage

from models.session.turn.row import Turn
from workers import turn as task
from workers.providers import ModelError, ModelReply


def _run(stage: Stage, session_id: str) -> bool:
    """Run the turn's task. Returns whether it ended within 5 s."""
    turn = stage.thread(session_id).turn_id
    thread = threading.Thread(target=task.attempt, args=(turn, session_id, stage.workspace_id), daemon=True)
    thread.start()
    thread.join(5)
    ended = not thread.is_alive()
    if not ended:
        stage.send(session_id, {"type": "user.interrupt"})  # raises the fence, which ends the thread
        thread.join(5)
    return ended


ANSWERS = {
    "a NUL in an error's message": ModelError("invalid", "a gateway answers \x00"),
    "a NUL in the explanation of a refusal": ModelReply([], "refusal", {"type": "refusal", "explanation": "no\x00"}),
    "a NUL in a call's id": ModelReply(
        [{"type": "tool_use", "id": "toolu_\x00", "name": "bash", "input": {"command": "true"}}], "tool_use"
    ),
    "a call's id that is a number": ModelReply(
        [{"type": "tool_use", "id": 7, "name": "bash", "input": {"command": "true"}}], "tool_use"
    ),
    "a lone surrogate in an error's message": ModelError("invalid", "a gateway answers \ud800"),
    "a stop reason with a NUL": ModelReply([{"type": "text", "text": "hi"}], "end\x00turn"),
    "an input of deeply nested lists": ModelReply(
        [{"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": json.loads("[" * 900 + "]" * 900)}}], "tool_use"
    ),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_a_turn_ends_whatever_the_provider_answers(
    stage: Stage, answers: Callable[..., None], answer: ModelReply | Exception
) -> None:
    session_id = stage.session()
    stage.message(session_id)
    answers(answer)

    assert _run(stage, session_id), "the task retries a write that Postgres refuses, and renews its lease meanwhile"

    assert stage.get(Turn, stage.thread(session_id).turn_id or "").status != "running"
    stage.check(session_id)
