"""What a worker and a runner say to each other: JSON objects, each behind its length, on a socket of their own."""

import json
from collections.abc import Iterator
from typing import Any

MOST_BYTES = 64_000_000
"""Of one frame."""
_HEAD = 8

Frame = dict[str, Any]


def packed(frame: Frame) -> bytes:
    """The frame as it is sent. ASCII, so that even half characters pass."""
    data = json.dumps(frame).encode("ascii")
    return len(data).to_bytes(_HEAD, "big") + data


class Unpacker:
    """Bytes as they come in, to frames."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are whole with these bytes. Errors: ValueError for what no runner of ours says."""
        self._data += data
        while len(self._data) >= _HEAD:
            size = int.from_bytes(self._data[:_HEAD], "big")
            if size > MOST_BYTES:
                raise ValueError("a frame is too long")
            if len(self._data) < _HEAD + size:
                return
            frame = json.loads(self._data[_HEAD : _HEAD + size])
            del self._data[: _HEAD + size]
            if not isinstance(frame, dict):
                raise ValueError("a frame is no object")
            yield frame
