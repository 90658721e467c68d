"""Decides how a request that is too long for its model becomes shorter. No I/O.

Lengths are tokens, and a part is one turn of the history, or the summary of all turns before the others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from models.pure.json.codec import encode
from models.pure.pricing.usage import estimated_tokens
from models.pure.text import words

RESULT_CHARACTERS = 2_000
"""Characters that remain of an old result that is cut."""
MOST_FOLDS = 10
"""Summaries that one turn may request in a row."""
_BLOCK_CHARACTERS = 30
"""What the JSON of a block of text adds to the text."""
_MEDIA_TOKENS = 2_000
"""An estimate for an image, and the least for a document."""
_DOCUMENT_CHARACTERS_PER_TOKEN = 40
"""An estimate for a document in base64."""

Messages = list[dict[str, Any]]


@dataclass(frozen=True)
class Part:
    """The messages of one turn, or the summary of all turns up to it."""

    number: int
    """The turn's number, or that of the last turn that the summary covers."""
    seq: int
    """The number, among the session's events, of the last message that these turns read."""
    messages: Messages
    is_summary: bool = False

    @property
    def waits(self) -> bool:
        """True if it ends with results that no reply followed yet, or with a message."""
        return bool(self.messages) and self.messages[-1]["role"] == "user"


def limit(window: int) -> int:
    """Return the longest input for a window: the last quarter is left for the reply, and for errors of the estimate."""
    return window * 3 // 4


def longest_reply(window: int) -> int:
    """Return the longest reply for a window."""
    return max(1, window // 4)


def tokens_of(content: Any) -> int:
    """Return an estimate of the tokens in messages, tools or text."""
    media = list(_media(content))
    characters = len(encode(content)) - sum(len(data) for _, data in media)
    return estimated_tokens(characters) + sum(
        max(_MEDIA_TOKENS, 0 if kind == "image" else len(data) // _DOCUMENT_CHARACTERS_PER_TOKEN) for kind, data in media
    )


def _media(content: Any) -> Iterator[tuple[str, str]]:
    """Yield the kind and the base64 text of each image and document."""
    if isinstance(content, list):
        for each in content:
            yield from _media(each)
    elif isinstance(content, dict):
        source = content.get("source")
        if content.get("type") in ("image", "document") and isinstance(source, dict) and source.get("type") == "base64":
            yield content["type"], source["data"]
        else:
            yield from _media(content.get("content"))


def leading(parts: Sequence[Part], tokens: int, window: int) -> int:
    """Return how many of the first parts a summary shall replace, for a request of so many tokens. 0: none can be replaced.

    The last part, which is the turn itself, stays, and so does the part before it if its results wait for the reply. Newer parts
    stay as far as they fit into a quarter of the window. The replaced parts must fit into one request.
    """
    sizes = scaled(parts, tokens)
    most = len(parts) - (2 if len(parts) > 1 and parts[-2].waits else 1)
    least = 2 if parts and parts[0].is_summary else 1
    if most < least:
        return 0
    count, rest_tokens = most, sum(sizes[most:])
    while count > least and rest_tokens + sizes[count - 1] <= window // 4:
        count -= 1
        rest_tokens += sizes[count]
    while count > least and sum(sizes[:count]) > limit(window):
        count -= 1
    return count


def scaled(parts: Sequence[Part], tokens: int) -> list[int]:
    """Return the parts' sizes, in proportion to an estimate from their text, as shares of so many tokens."""
    sizes = [tokens_of(part.messages) for part in parts]
    total = sum(sizes) or 1
    return [size * max(tokens, total) // total for size in sizes]


def cut(part: Part) -> Part:
    """Return the part with its long results cut to their beginnings. The part itself if none is long."""
    messages = [_cut_message(message) for message in part.messages]
    is_cut = any(after is not before for after, before in zip(messages, part.messages, strict=True))
    return Part(part.number, part.seq, messages, part.is_summary) if is_cut else part


def _cut_message(message: dict[str, Any]) -> dict[str, Any]:
    content = [_cut_result(block) if block["type"] == "tool_result" else block for block in message["content"]]
    is_cut = any(after is not before for after, before in zip(content, message["content"], strict=True))
    return {**message, "content": content} if is_cut else message


def _cut_result(block: dict[str, Any]) -> dict[str, Any]:
    """Return a long result as its beginning and one note, which together are short: so cutting again changes nothing."""
    content = block["content"]
    if sum(map(_length, content)) <= 2 * RESULT_CHARACTERS:
        return block
    whole = "\n".join(part["text"] for part in content if part["type"] == "text")
    beginning = whole[:RESULT_CHARACTERS]
    missing, kinds = len(whole) - len(beginning), [part["type"] for part in content if part["type"] != "text"]
    note = words.left_out_when_old(missing, kinds) if missing or kinds else ""
    return {**block, "content": [{"type": "text", "text": text} for text in (beginning, note) if text.strip()]}


def _length(block: dict[str, Any]) -> int:
    """Return the characters of a block. A text counts as it reads, because its JSON may be six times as long."""
    return _BLOCK_CHARACTERS + len(block["text"]) if block["type"] == "text" else len(encode(block))
