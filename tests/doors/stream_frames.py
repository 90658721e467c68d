"""Frames of a session's stream, as workers publish them."""

import json
from typing import Any

import redis


def publish(redis_url: str, session_id: str, *frames: dict[str, Any], thread_id: str = "") -> None:
    """Publish these frames, as the worker of a turn does. Without a thread, they are those of the session's own."""
    with redis.Redis.from_url(redis_url) as client:
        client.publish(f"assent:session:{session_id}", json.dumps({"frames": frames, "thread": thread_id}))


def publish_so_far(redis_url: str, session_id: str, event_id: str, piece: str, text: str) -> None:
    """Publish a piece of a preview together with its whole text so far, as workers do once per second."""
    note = {"frames": [delta(event_id, piece)], "so_far": [start(event_id), delta(event_id, text)], "thread": ""}
    with redis.Redis.from_url(redis_url) as client:
        client.publish(f"assent:session:{session_id}", json.dumps(note))


def readers(redis_url: str, session_id: str) -> int:
    """Return how many processes read the session's stream."""
    with redis.Redis.from_url(redis_url) as client:
        [(_, count)] = client.pubsub_numsub(f"assent:session:{session_id}")
        return int(count)


def start(event_id: str) -> dict[str, Any]:
    """Return the first frame of a preview."""
    return {"type": "event_start", "event": {"id": event_id, "type": "agent.message"}}


def delta(event_id: str, text: str) -> dict[str, Any]:
    """Return a frame with text of a preview."""
    content = {"type": "text", "text": text}
    return {"type": "event_delta", "event_id": event_id, "delta": {"type": "content_delta", "index": 0, "content": content}}
