"""While the model writes, notes repeat the whole text so far, for readers who join late."""

import json
from typing import Any

import pytest
import redis
from crashes.processes import wait_for
from rows.stage import Stage, say

from models.settings import settings
from workers import turn
from workers.providers import ModelReply, choosing

PIECES = ["On", "ce ", "upon ", "a time"]


def text_of(frames: list[dict[str, Any]]) -> str:
    """Return the text of the deltas among these frames."""
    return "".join(frame["delta"]["content"]["text"] for frame in frames if frame["type"] == "event_delta")


def test_each_note_has_its_piece_and_the_text_so_far(stage: Stage, clean_redis: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session_id = stage.session()
    stage.message(session_id)
    notes: list[dict[str, Any]] = []
    with redis.Redis.from_url(clean_redis) as client, client.pubsub() as readers:
        readers.subscribe(f"assent:session:{session_id}")

        def is_read(number: int) -> bool:
            note = readers.get_message(timeout=0.1)
            if note and note["type"] == "message" and "frames" in (body := json.loads(note["data"])):
                notes.append(body)
            return len(notes) == number

        class Provider:
            def ask(self, _request: object, on_text: Any) -> ModelReply:
                for number, piece in enumerate(PIECES, 1):
                    on_text(0, piece)
                    wait_for("the note of the piece", lambda number=number: is_read(number))
                return ModelReply([say("".join(PIECES))], "end_turn")

        monkeypatch.setattr(choosing, "provider_for", lambda *_: Provider())
        monkeypatch.setenv("ASSENT_DELTA_SECONDS", "0")
        monkeypatch.setenv("ASSENT_PREVIEW_SECONDS", "0.000001")
        settings.cache_clear()
        assert turn.run(stage.thread(session_id).turn_id, session_id, stage.workspace_id) == "replied: end_turn"
    assert [text_of(note["frames"]) for note in notes] == PIECES
    assert [text_of(note["so_far"]) for note in notes] == ["On", "Once ", "Once upon ", "Once upon a time"]
    [message] = stage.events(session_id, "agent.message")
    assert {note["so_far"][0]["event"]["id"] for note in notes} == {message.id}
