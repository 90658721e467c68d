"""Puts the events of one stream together into a reply. No I/O."""

from dataclasses import dataclass, field
from typing import Any

from models.pure.pricing.usage import COUNTS, NOTHING, Usage, estimated_tokens
from workers.providers import ModelError, ModelReply
from workers.providers.neutral import read_input, with_data

PIECES = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
MALFORMED = (KeyError, TypeError, AttributeError, ValueError)
"""The exceptions that an event raises if it is JSON but not of the API's shape."""


@dataclass
class _Block:
    start: dict[str, Any]
    pieces: list[str] = field(default_factory=list)
    signature: str = ""
    stopped: bool = False
    text_index: int | None = None


class Draft:
    """A reply while the model writes it. `provider` is the provider's name."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._blocks: dict[int, _Block] = {}
        self._texts = 0
        self._model = ""
        self._usage: dict[str, int] = {}
        self._compaction: dict[str, int] = {}
        """Counts of writing a summary, beside `_usage`."""
        self._stop: dict[str, Any] = {}
        self._whole = False

    def add(self, event: dict[str, Any]) -> tuple[int, str] | None:
        """Add one event. Returns the index of the text block and the text, if the event has text. Raises ModelError."""
        try:
            match event["type"]:
                case "content_block_delta":
                    return self._delta(self._blocks[event["index"]], event["delta"])
                case "content_block_start":
                    return self._start(event["index"], event["content_block"])
                case "content_block_stop":
                    self._blocks[event["index"]].stopped = True
                case "message_start":
                    self._model = event["message"]["model"]
                    self._count(event["message"]["usage"])
                case "message_delta":
                    self._stop = dict(event["delta"])
                    self._count(event.get("usage") or {})
                case "message_stop":
                    self._whole = True
        except MALFORMED as error:
            raise ModelError("failed", "The model's stream was malformed") from error
        return None

    def reply(self) -> ModelReply:
        """Return the reply, once the stream has ended. Raises ModelError if the stream was cut or a call is broken."""
        if not self._whole or not self._stop.get("stop_reason"):
            raise ModelError("failed", "The model's stream was cut", usage=NOTHING)
        try:
            return self._reply(self._stop["stop_reason"])
        except MALFORMED as error:
            raise ModelError("failed", "The model's stream was malformed") from error

    def _reply(self, stop_reason: str) -> ModelReply:
        finished = [self._finished(index, stop_reason) for index in sorted(self._blocks)]
        return ModelReply(
            content=[block for block in finished if block],
            stop_reason=stop_reason,
            stop_details=self._stop.get("stop_details"),
            usage=self._total_usage(),
            model=self._model,
        )

    def _start(self, index: int, start: dict[str, Any]) -> tuple[int, str] | None:
        block = self._blocks[index] = _Block(start, signature=start.get("signature") or "")
        text = start.get("text") or start.get("thinking")
        return self._piece(block, text) if text else None

    def _delta(self, block: _Block, delta: dict[str, Any]) -> tuple[int, str] | None:
        name = PIECES.get(delta["type"])
        if name:
            return self._piece(block, delta[name])
        if delta["type"] == "signature_delta":
            block.signature = delta["signature"]
        elif delta["type"] == "citations_delta":
            block.start["citations"] = [*(block.start.get("citations") or []), delta["citation"]]
        elif delta["type"] == "compaction_delta":
            block.start |= {name: value for name, value in delta.items() if name != "type"}
        return None

    def _piece(self, block: _Block, piece: str) -> tuple[int, str] | None:
        if not isinstance(piece, str):
            raise TypeError(type(piece))
        block.pieces.append(piece)
        if block.start["type"] != "text":
            return None
        if block.text_index is None:
            # A block without text is left out and not counted, so blanks wait for the first other character.
            piece = "".join(block.pieces)
            if not piece.strip():
                return None
            block.text_index = self._texts
            self._texts += 1
        return block.text_index, piece

    @property
    def usage_so_far(self) -> Usage | None:
        """As in `Unfinished`."""
        if not self._usage:
            return None
        output_tokens = estimated_tokens(sum(len(piece) for block in self._blocks.values() for piece in block.pieces))
        counts = self._usage | {"output_tokens": max(self._usage.get("output_tokens", 0), output_tokens)}
        return Usage(**counts)

    def _total_usage(self) -> Usage:
        return Usage(**{name: self._usage.get(name, 0) + self._compaction.get(name, 0) for name in COUNTS})

    def _count(self, usage: dict[str, Any]) -> None:
        """Store reported counts. Each is a total, so a later count replaces an earlier one."""
        self._usage |= _counts(usage)
        summaries = [_counts(each) for each in usage.get("iterations") or [] if each["type"] == "compaction"]
        if summaries:  # the API counts them beside its totals
            self._compaction = {name: sum(each.get(name, 0) for each in summaries) for name in COUNTS}

    def _finished(self, index: int, stop_reason: str) -> dict[str, Any] | None:
        """Return a block for the history. None if the block was cut, or if the API would refuse it in a history."""
        block, text = self._blocks[index], "".join(self._blocks[index].pieces)
        match block.start["type"]:
            case "text":
                neutral = {"type": "text", "text": text}
                return with_data(neutral, self._provider, citations=block.start.get("citations") or None) if text.strip() else None
            case "thinking":
                thinking = {"type": "thinking", "thinking": text}
                return with_data(thinking, self._provider, signature=block.signature) if block.signature else None
            case "tool_use":
                return self._call(index, text, stop_reason)
            case "compaction":
                whole = block.start | ({"signature": block.signature} if block.signature else {})
                summary = {"type": "summary", "text": whole.get("content")}
                return with_data(summary, self._provider, compaction=whole) if whole.get("content") else None
        rest = {name: value for name, value in block.start.items() if name != "type"}
        return with_data({"type": block.start["type"]}, self._provider, **rest)

    def _call(self, index: int, text: str, stop_reason: str) -> dict[str, Any] | None:
        block = self._blocks[index]
        is_whole = block.stopped and (text or self._needs_no_input(index, stop_reason))
        if not is_whole and stop_reason == "tool_use":
            raise ModelError("failed", "The model's stream was cut inside a tool call")
        arguments, problem = read_input(text)
        if not is_whole or (problem and stop_reason != "tool_use"):
            return None
        call = {"type": "tool_use", "id": block.start["id"], "name": block.start["name"], "input": arguments}
        return with_data(call | ({"problem": problem} if problem else {}), self._provider, id=block.start["id"])

    def _needs_no_input(self, index: int, stop_reason: str) -> bool:
        """True if a call without input is complete. The last call of a cut reply may have lost its input."""
        return stop_reason == "tool_use" or index < max(self._blocks)


def _counts(usage: dict[str, Any]) -> dict[str, int]:
    server_tools, lifetimes = usage.get("server_tool_use") or {}, usage.get("cache_creation") or {}
    counts = {**usage, **server_tools, "cache_creation_1h_input_tokens": lifetimes.get("ephemeral_1h_input_tokens")}
    return {name: int(counts[name]) for name in COUNTS if counts.get(name) is not None}
