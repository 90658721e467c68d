"""Whatever a model's side says, the turn ends: no session is held for ever by a write that the database will never take."""

import json
import threading

import pytest
from rows.stage import Stage

from models.session.turn import Turn
from workers import turn as task
from workers.providers import ModelError, Reply, choosing


def _run(stage: Stage, session_id: str) -> bool:
    """Whether the turn's task came to an end within 5 s."""
    turn = stage.read(session_id).turn_id
    done = threading.Thread(target=task.run, args=(turn, session_id, stage.workspace_id), daemon=True)
    done.start()
    done.join(5)
    ended = not done.is_alive()
    if not ended:
        # Let the thread go: a raised fence is the only way out today.
        stage.send(session_id, {"type": "user.interrupt"})
        done.join(5)
    return ended


class _Says:
    def __init__(self, said: Reply | Exception) -> None:
        self.said = said

    def ask(self, *_: object) -> Reply:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


SAID = {
    "a NUL in an error's message": ModelError("invalid", "a gateway says \x00"),
    "a NUL in why it refused": Reply([], "refusal", {"type": "refusal", "explanation": "no\x00"}),
    "a NUL in a call's own id": Reply(
        [{"type": "tool_use", "id": "toolu_\x00", "name": "bash", "input": {"command": "true"}}], "tool_use"
    ),
    "a call's id that is a number": Reply(
        [{"type": "tool_use", "id": 7, "name": "bash", "input": {"command": "true"}}], "tool_use"
    ),
    "half a character in an error's message": ModelError("invalid", "a gateway says \ud800"),
    "a stop reason with a NUL": Reply([{"type": "text", "text": "hi"}], "end\x00turn"),
    "an input of lists in lists in lists": Reply(
        [{"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": json.loads("[" * 900 + "]" * 900)}}], "tool_use"
    ),
}


@pytest.mark.parametrize("said", SAID.values(), ids=SAID.keys())
def test_a_turn_ends_whatever_the_models_side_says(stage: Stage, monkeypatch: pytest.MonkeyPatch, said: Reply | Exception) -> None:
    session_id = stage.session()
    stage.message(session_id)
    monkeypatch.setattr(choosing, "provider_for", lambda *_: _Says(said))

    assert _run(stage, session_id), "the task still tries to write what Postgres refuses, and renews its lease meanwhile"

    assert stage.get(Turn, stage.read(session_id).turn_id or "").status != "running"
    stage.check(session_id)
