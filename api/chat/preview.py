"""The text of a message while the model writes it, so that each character of a reply is sent once.

Pieces come over Redis, which may lose some. A piece is used only if all pieces before it came. The stored message brings the rest.
"""

from collections import deque
from dataclasses import dataclass, field

from api.streams.reader import SO_FAR, Frame
from models.pure.json.storable import storable

APART = "\n\n"
"""Between two texts of one reply."""


@dataclass
class Preview:
    """The text that was sent so far, of one reply."""

    sent: str = ""
    """Of the message that is being written."""
    _has_sent: bool = False
    """True once any text was sent."""
    _message_id: str = ""
    _block: int = 0
    """The block of the last piece."""
    _offset: int = 0
    """The number of characters that came."""
    _stored: deque[str] = field(default_factory=lambda: deque(maxlen=64))
    """Messages that are stored. Their late pieces are dropped."""

    def piece(self, frame: Frame) -> str:
        """Return the text to send for a frame of the hub; empty if there is none."""
        if frame["type"] == "event_start":
            event = frame["event"]
            if event["type"] == "agent.message" and event["id"] not in self._stored:
                self.sent, self._message_id, self._block, self._offset = "", event["id"], 0, 0
            return ""
        if frame["type"] == SO_FAR:
            return ""  # the stored message brings what was lost
        if frame["event_id"] != self._message_id or frame.get("offset") != self._offset:
            return ""
        delta = frame["delta"]
        self._offset += len(delta["content"]["text"])
        text: str = storable(delta["content"]["text"])
        if self.sent and delta["index"] != self._block:
            text = APART + text
        self._block = delta["index"]
        self.sent += text
        return self._apart(text, first=len(self.sent) == len(text))

    def rest(self, message_id: str, text: str) -> str:
        """Return the part of a stored message that was not sent yet."""
        before = self.sent if message_id == self._message_id else ""
        self.sent, self._message_id = "", ""
        self._stored.append(message_id)
        return self._apart(text.removeprefix(before), first=not before)

    def _apart(self, text: str, *, first: bool) -> str:
        """Return the text, after a separator if it begins a message and an earlier message was sent."""
        apart = APART if text and first and self._has_sent else ""
        self._has_sent = self._has_sent or bool(text)
        return apart + text
