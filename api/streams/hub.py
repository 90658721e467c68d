"""The hub, one per process, wakes streams that may have new events.

For all its streams, a process has one pub/sub connection to Redis, and reads their sessions' newest event numbers once per tick. A
wake-up carries no state: each stream reads its own events from Postgres, from its own position. So no event is lost or doubled,
even if Redis is down or sends wrong notes. The hub also passes on deltas, which are not stored. A slow reader loses deltas.
"""

import json
import logging
import os
import threading
import time
from collections import deque
from typing import Any

import redis

from api.door.errors import TooMany
from api.streams.reader import SO_FAR, Frame, Reader
from models.database.transactions import ERRORS, transaction
from models.people.sign_in import SignIn, Standing
from models.session.approval.row import Approval
from models.session.row import Session
from models.session.thread.row import own_id
from models.settings import broker, settings
from models.workspace import key_lookup
from workers.enqueue import channel

log = logging.getLogger("assent.api")

READY_SECONDS = 0.25
"""Longest wait of a new stream for its subscription. Without it the stream starts and may miss deltas that are under way."""
_NOTE_SECONDS = 0.025
"""Longest wait for a note. New readers wait as long for their subscription."""
_PING_SECONDS = 5.0
_SILENCE_SECONDS = 15.0
_RETRY_SECONDS = 1.0


class Hub:
    """Readers by session, and the two threads (greenlets under gevent) that wake them. The threads end with the last reader."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers: dict[str, set[Reader]] = {}
        self._changed: deque[str] = deque()
        self._confirmed: set[str] = set()
        """Sessions whose subscription Redis has confirmed. Only the listening thread changes it."""
        self._threads: set[str] = set()
        self._redis_up = True

    def register(self, reader: Reader) -> None:
        """Add a reader to wake, also when its client leaves. Waits a moment for the subscription if Redis is up. Raises TooMany."""
        with self._lock:
            self._check_number(reader.key_id)
            self._readers.setdefault(reader.session_id, set()).add(reader)
            self._changed.append(reader.session_id)
            for name, work in (("poll", self._poll), ("listen", self._listen)):
                if name not in self._threads:
                    self._threads.add(name)
                    threading.Thread(target=work, name=f"assent-hub-{name}", daemon=True).start()
        reader.watch()
        if self._redis_up and reader.session_id not in self._confirmed and reader.ready.wait(READY_SECONDS):
            reader.look = False

    def unregister(self, reader: Reader) -> None:
        """Remove a reader. Idempotent."""
        reader.unwatch()
        with self._lock:
            readers = self._readers.get(reader.session_id, set())
            readers.discard(reader)
            if not readers and self._readers.pop(reader.session_id, None) is not None:
                self._changed.append(reader.session_id)

    def of(self, session_id: str) -> list[Reader]:
        """Return the readers of a session."""
        with self._lock:
            return list(self._readers.get(session_id, ()))

    def _check_number(self, key_id: str) -> None:
        """Raise TooMany if the key has as many open streams as the setting allows. The caller holds the lock."""
        most = settings().streams_per_key
        if most and sum(reader.key_id == key_id for readers in self._readers.values() for reader in readers) >= most:
            raise TooMany(
                f"This API key or person has {most} open streams, the most that this server allows (ASSENT_STREAMS_PER_KEY); "
                "close one first."
            )

    def _all(self) -> list[Reader]:
        with self._lock:
            return [reader for readers in self._readers.values() for reader in readers]

    def _ends(self, name: str) -> bool:
        """Return True if there are no readers, and mark the thread `name` as ended."""
        with self._lock:
            if self._readers:
                return False
            self._threads.discard(name)
            return True

    def _poll(self) -> None:
        while not self._ends("poll"):
            time.sleep(settings().stream_poll_seconds)
            readers = self._all()
            try:
                _disconnect_stalled(readers)
                _wake_readers(readers)
            except ERRORS as error:
                log.warning("streams: the database does not respond (%s)", type(error).__name__)
            except Exception:
                log.exception("streams: the poll failed")  # the loop continues, since every stream depends on it

    def _listen(self) -> None:
        while not self._ends("listen"):
            try:
                with connect() as client, client.pubsub() as pubsub:
                    self._relay(pubsub)
            except (redis.RedisError, OSError) as error:
                if self._redis_up:
                    log.warning("streams: Redis is away (%s); events come by polling", type(error).__name__)
                self._redis_up = False
                time.sleep(_RETRY_SECONDS)
            except Exception:
                log.exception("streams: listening failed")
                time.sleep(_RETRY_SECONDS)
            finally:
                self._confirmed.clear()

    def _relay(self, pubsub: "redis.client.PubSub") -> None:
        """Pass notes on until there are no readers. Raises RedisError if the connection is lost or silent."""
        received = pinged = time.monotonic()
        with self._lock:
            self._changed.extend(self._readers)
        while True:
            if not self._subscribe(pubsub):
                return
            note = pubsub.get_message(timeout=_NOTE_SECONDS)
            now = time.monotonic()
            if note:
                received, self._redis_up = now, True
                self._take(note)
            elif now - received > _SILENCE_SECONDS:
                raise redis.ConnectionError("no answer to a ping")
            if now - pinged > _PING_SECONDS:
                pubsub.ping()
                pinged = now

    def _subscribe(self, pubsub: "redis.client.PubSub") -> bool:
        """Subscribe to sessions with new readers, and unsubscribe from sessions without readers. Returns False without readers."""
        while self._changed:
            session_id = self._changed.popleft()
            if not self.of(session_id):
                self._confirmed.discard(session_id)
                pubsub.unsubscribe(channel(session_id))  # type: ignore[no-untyped-call]
            elif session_id not in self._confirmed:
                pubsub.subscribe(channel(session_id))
        with self._lock:
            return bool(self._readers)

    def _take(self, note: dict[str, Any]) -> None:
        session_id = _text(note["channel"]).removeprefix(channel("")) if note["channel"] else ""
        if note["type"] == "subscribe":
            self._confirmed.add(session_id)
            for reader in self.of(session_id):
                reader.look = True  # for events that were published before the subscription
                reader.ready.set()
                reader.wake.set()
        elif note["type"] == "message" and (message := _message(note["data"])) is not None:
            frames, thread_id, seq = message
            for reader in self.of(session_id):
                reader.receive(frames, thread_id or own_id(session_id), seq)


def _message(data: Any) -> tuple[list[Frame], str, int | None] | None:
    """Return a note's deltas, their thread, and the number of the newest event, if the note has one. None: it is malformed.

    The deltas are empty if the note only announces events.

    Behind the deltas may come a SO_FAR with the whole text so far. The thread is empty in a note of an earlier release, whose
    sessions have one thread.
    """
    try:
        note = json.loads(data)
        frames: list[Frame] = note.get("frames", [])
        so_far: list[Frame] = note.get("so_far", [])
        if not all(_is_delta(frame) for frame in (*frames, *so_far)) or (so_far and so_far[0]["type"] != "event_start"):
            return None
        seq = int(note["seq"]) if "seq" in note else None
        return [*frames, *([{"type": SO_FAR, "frames": so_far}] if so_far else [])], str(note.get("thread", "")), seq
    except (ValueError, TypeError, AttributeError, KeyError):
        return None


def _is_delta(frame: Frame) -> bool:
    if frame["type"] == "event_start":
        return isinstance(frame["event"]["id"], str) and isinstance(frame["event"]["type"], str)
    return frame["type"] == "event_delta" and isinstance(frame["event_id"], str)


def _disconnect_stalled(readers: list[Reader]) -> None:
    """Disconnect clients that read nothing for `stream_write_seconds`. They resume after the last event that they read."""
    limit = time.monotonic() - settings().stream_write_seconds
    for reader in readers:
        if 0 < reader.writing < limit:
            log.info("stream of %s: its client does not read", reader.session_id)
            reader.disconnect()


def _wake_readers(readers: list[Reader]) -> None:
    """Wake each reader with new events, and end the streams of deleted sessions, revoked keys and ended sign-ins."""
    sessions = list({reader.session_id for reader in readers if not reader.is_page})
    keys = list({reader.key_id for reader in readers if not reader.sign_in_id})
    with transaction(only_reads=True) as db:
        heads = Session.heads(db, sessions)
        valid_keys = set(key_lookup.good(db, keys))
    standings: dict[str, Standing] = {}
    marks: dict[str, str] = {}
    for workspace_id in {reader.workspace_id for reader in readers if reader.sign_in_id}:
        people = [reader for reader in readers if reader.workspace_id == workspace_id]
        with transaction(workspace_id, only_reads=True) as db:
            standings |= SignIn.standings(db, {reader.sign_in_id for reader in people})
            if any(reader.is_page for reader in people):
                marks[workspace_id] = Approval.mark(db)
    for reader in readers:
        if reader.standing is None:
            reader.refused = reader.key_id not in valid_keys
        else:
            reader.refused = standings.get(reader.sign_in_id) != reader.standing
        if reader.is_page:
            mark = marks.get(reader.workspace_id, reader.mark)
            reader.look = reader.look or reader.mark not in {"", mark}
            reader.mark = mark
        else:
            reader.gone = reader.session_id not in heads
            reader.look = reader.look or heads.get(reader.session_id, 0) > reader.seq
        if reader.gone or reader.refused or reader.look:
            reader.wake.set()


def connect() -> "redis.Redis":
    """Return a client of Redis whose calls wait at most `publish_seconds`."""
    return broker.client(settings().publish_seconds)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


_hubs: dict[int, Hub] = {}


def hub() -> Hub:
    """Return this process's hub. Created at first use, so a fork never shares it."""
    return _hubs.setdefault(os.getpid(), Hub())
