"""The output of a running tool, in bounded memory, and the error for a call with an unknown outcome."""

import codecs
import threading

from models.settings import settings
from workers.tools import clean


class OutcomeUnknown(Exception):
    """It is unknown whether the call's effect has ended. A person must settle the call."""


class Clip:
    """Head and tail of a stream of bytes, in at most about 1.5 times `limit` bytes of memory."""

    def __init__(self, limit: int) -> None:
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0
        """Bytes added so far."""

    def add(self, data: bytes) -> None:
        """Add the next bytes of the stream."""
        self.total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    def text(self, limit: int) -> str:
        """Return the head and tail as visible text in at most `limit` bytes, with a line that counts the bytes left out."""
        size = len(self._head) + len(self._tail)
        if self.total == size <= limit:
            return clean.shorten(clean.escape_controls(clean.decode(bytes(self._head + self._tail))), limit)
        # A cut may split a character: both halves are dropped, not shown as invalid.
        whole = self._head + self._tail if self.total == size else None
        head = codecs.getincrementaldecoder("utf-8")("replace").decode((whole or self._head)[:limit])
        tail = bytes((whole or self._tail)[-limit:]).lstrip(bytes(range(0x80, 0xC0)))
        return clean.join_ends(clean.escape_controls(head), clean.escape_controls(clean.decode(tail)), self.total, limit)


class OutputSoFar:
    """Standard output and standard error of a running tool. One thread adds, any thread reads."""

    def __init__(self, limit: int | None = None, whole_limit: int | None = None) -> None:
        """Set the limits in bytes of the shown text and of the stored text."""
        self._limit = settings().tool_output_bytes if limit is None else limit
        self._whole_limit = max(settings().tool_result_bytes if whole_limit is None else whole_limit, self._limit)
        self._lock = threading.Lock()
        self._streams = {"stdout": Clip(self._whole_limit), "stderr": Clip(self._whole_limit)}

    def add(self, stream: str, data: bytes) -> None:
        """Add the next bytes of `stdout` or `stderr`."""
        with self._lock:
            self._streams[stream].add(data)

    def texts(self, reserve: int = 0) -> dict[str, str]:
        """Return `stdout` and `stderr`, without empty ones, together within the shown limit less `reserve` bytes."""
        return self._texts(self._limit, self._limit - reserve)

    def whole(self) -> dict[str, str]:
        """Return `stdout` and `stderr`, without empty ones, each and together within the limit of the stored text."""
        return self._texts(self._whole_limit, self._whole_limit)

    def _texts(self, limit: int, together: int) -> dict[str, str]:
        with self._lock:
            clips = {name: clip for name, clip in self._streams.items() if clip.total}
            # An escape can take four bytes for one: only the text itself has its size.
            texts = {name: clip.text(limit) for name, clip in clips.items()}
            sizes = [len(text.encode()) for text in texts.values()]
            parts = clean.shares(sizes, max(together, 0))
            return {
                name: text if size <= share else clips[name].text(share)
                for (name, text), size, share in zip(texts.items(), sizes, parts, strict=True)
            }
