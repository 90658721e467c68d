"""The pieces of a stream are the text of the stored messages, each character once, whatever Redis loses or repeats."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from doors.served import good
from hypothesis import given
from hypothesis import strategies as st
from rows.stage import Stage, say
from wire.talking import Talk, talking, user

from api.chat.preview import APART, Preview
from models.session.event.row import Event


def frames(message_id: str, *blocks: list[str]) -> list[dict[str, Any]]:
    """Return the frames that a worker publishes while the model writes these texts, each in pieces."""
    offset, notes = 0, [{"type": "event_start", "event": {"id": message_id, "type": "agent.message"}}]
    for index, pieces in enumerate(blocks):
        for piece in pieces:
            delta = {"type": "content_delta", "index": index, "content": {"type": "text", "text": piece}}
            notes.append({"type": "event_delta", "event_id": message_id, "delta": delta, "offset": offset})
            offset += len(piece)
    return notes


PIECES = st.lists(st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=3), min_size=1, max_size=3)


@given(st.lists(st.tuples(PIECES, st.randoms(use_true_random=False)), min_size=1, max_size=3))
def test_whatever_is_lost_or_late_the_text_is_whole(messages: list[tuple[list[list[str]], Any]]) -> None:
    """Pieces are lost, and the pieces of earlier messages come late."""
    preview, sent, stored, late = Preview(), "", [], list[dict[str, Any]]()
    for number, (blocks, random) in enumerate(messages):
        came = [frame for frame in frames(str(number), *blocks) if random.random() < 0.8]
        cut = random.randint(0, len(came))
        for frame in [*late, *came[:cut]]:
            sent += preview.piece(frame)
        late = came[cut:]
        stored.append(APART.join("".join(pieces) for pieces in blocks).replace("\0", "\ufffd"))
        sent += preview.rest(str(number), stored[-1])
    assert sent == APART.join(stored)


@pytest.fixture
def talk(api: str, stage: Stage) -> Iterator[Talk]:
    """A client of an agent with the built-in tools, which ask."""
    with talking(api, stage) as client:
        yield client


def test_text_comes_while_the_model_writes(talk: Talk, redis_url: str) -> None:
    stream = talk.sdk.chat.completions.create(model=talk.model, messages=[user("Go.")], stream=True)  # type: ignore[list-item]
    session_id = talk.begun()
    turn = talk.stage.claim(session_id)
    notes = frames("sevt_early", ["Hel", "lo", " again"])
    with redis.Redis.from_url(redis_url) as client:
        client.publish(f"assent:session:{session_id}", json.dumps({"frames": notes[:2]}))
        client.publish(f"assent:session:{session_id}", json.dumps({"frames": notes[3:]}))  # "lo" is lost
    texts = (chunk.choices[0].delta.content for chunk in stream)
    assert next(text for text in texts if text) == "Hel"
    talk.stage.reply(session_id, say("Other."), turn=turn)
    rest = "".join(text or "" for text in texts)
    assert rest == f"{APART}Other.", "an attempt that did not end is followed by the one that did"
    [event] = talk.stage.events(session_id, "agent.message")
    assert isinstance(event, Event)
    assert good(talk.caller.get(f"/v1/sessions/{session_id}"))["status"] == "idle"
