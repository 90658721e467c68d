"""Puts the chunks of one Chat Completions stream together into a reply. No I/O."""

import json
from dataclasses import dataclass, field
from typing import Any

from models.pure.pricing.usage import NOTHING, Usage, estimated_tokens
from workers.providers import ModelError, ModelReply
from workers.providers.neutral import read_input, with_data

STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
"""Assent's stop reasons by OpenAI's. Any other reason, such as `eos` of some servers, is the end of the turn."""
FAILURES = frozenset({"error", "malformed_function_call", "network_error"})
"""Stop reasons of some gateways for an incomplete reply."""
REASONING = ("reasoning_content", "reasoning")
"""Names of the field with the model's thoughts: DeepSeek's and older servers', then OpenRouter's, Ollama's and newer servers'."""
MALFORMED = (KeyError, TypeError, AttributeError, ValueError, IndexError)


@dataclass
class _Call:
    index: Any
    id: str
    name: str
    pieces: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return bool(self.pieces) and read_input("".join(self.pieces))[1] is None


class Draft:
    """A reply while the model writes it. `provider` is the provider's name."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._reasoning_name = ""
        self._refusal: list[str] = []
        self._message_data: dict[str, Any] = {}
        self._reasoning_data: dict[str, Any] = {}
        self._calls: list[_Call] = []
        self._finish = ""
        self._usage: dict[str, Any] = {}
        self._model = ""
        self._is_empty = True

    def add(self, chunk: dict[str, Any]) -> tuple[int, str] | None:
        """Add one chunk. Returns the index of the text block, always 0, and the text, if the chunk has text. Raises ModelError."""
        try:
            return self._add(chunk)
        except MALFORMED as error:
            raise ModelError("failed", "The model's stream was malformed") from error

    def _add(self, chunk: dict[str, Any]) -> tuple[int, str] | None:
        self._is_empty = False
        self._model = chunk.get("model") or self._model
        self._usage = chunk.get("usage") or self._usage
        choices = chunk.get("choices") or []
        if not choices:
            return None
        choice = choices[0]
        self._finish = choice.get("finish_reason") or self._finish
        delta = choice.get("delta") or choice.get("message") or {}  # `message`: a gateway that does not stream
        self._think(delta)
        self._refusal.append(delta.get("refusal") or "")
        for piece in delta.get("tool_calls") or []:
            self._add_to_call(piece)
        if delta.get("extra_content"):
            self._message_data["extra_content"] = delta["extra_content"]
        text = _text(delta.get("content"))
        if not text or not (self._text or text.strip()):
            return None
        self._text.append(text)
        return 0, text

    def _think(self, delta: dict[str, Any]) -> None:
        for name in REASONING:
            if isinstance(delta.get(name), str) and delta[name]:
                self._reasoning.append(delta[name])
                self._reasoning_name = name
                break
        if isinstance(delta.get("reasoning_details"), list):
            self._reasoning_data.setdefault("reasoning_details", []).extend(delta["reasoning_details"])

    def _add_to_call(self, piece: dict[str, Any]) -> None:
        function = piece.get("function") or {}
        arguments = function.get("arguments") or ""
        arguments = arguments if isinstance(arguments, str) else json.dumps(arguments)
        call = self._call_of(piece.get("id") or "", piece.get("index"), function.get("name") or "", arguments)
        if arguments:
            call.pieces.append(arguments)
        call.data |= {name: value for name, value in piece.items() if name not in ("id", "index", "type", "function") and value}

    def _call_of(self, call_id: str, index: Any, name: str, arguments: str) -> _Call:
        """Return the call that a piece belongs to: by its id, else by its index, else the latest call.

        Some gateways give every call the index 0, leave ids out, repeat id and name in each piece, or repeat an id in another call.
        A piece with another name starts another call, and so does one with a name and arguments behind a complete call.
        """
        by_id = [call for call in self._calls if call_id and call.id == call_id]
        by_index = [call for call in self._calls if not call_id and (index is None or call.index == index)]
        call = next(reversed(by_id or by_index), None)
        if call is not None and not (name and call.name and (name != call.name or (arguments and call.is_complete))):
            call.name = call.name or name
            return call
        if not name and not call_id:
            raise ModelError("failed", "The model's stream holds a piece of a tool call that never began")
        self._calls.append(_Call(index, call_id, name))
        return self._calls[-1]

    def reply(self) -> ModelReply:
        """Return the reply, once the stream has ended. Raises ModelError if the stream was cut."""
        if self._is_empty:
            raise ModelError("failed", "The model's stream was empty", usage=NOTHING)
        if not self._finish:
            raise ModelError("failed", "The model's stream was cut")
        if self._finish.lower() in FAILURES:
            raise ModelError("failed", f"The model's API broke off its reply ({self._finish[:100]})")
        try:
            return self._reply()
        except MALFORMED as error:
            raise ModelError("failed", "The model's stream was malformed") from error

    def _reply(self) -> ModelReply:
        refusal = "".join(self._refusal)
        stop_reason = "refusal" if refusal else STOP_REASONS.get(self._finish, "end_turn")
        calls = [] if stop_reason == "refusal" else self._finished_calls(is_cut=stop_reason == "max_tokens")
        if stop_reason in ("end_turn", "tool_use"):
            stop_reason = "tool_use" if calls else "end_turn"  # many servers say `stop` behind calls
        details = {"type": "refusal", "category": None, "explanation": refusal or None} if stop_reason == "refusal" else None
        return ModelReply([*self._spoken(), *calls], stop_reason, details, self._total_usage(), self._model)

    def _spoken(self) -> list[dict[str, Any]]:
        reasoning, text = "".join(self._reasoning), "".join(self._text)
        blocks = []
        if reasoning or self._reasoning_data:
            data = self._reasoning_data | ({self._reasoning_name: reasoning} if reasoning else {})
            blocks.append(with_data({"type": "thinking", "thinking": reasoning}, self._provider, **data))
        if text.strip():
            blocks.append(with_data({"type": "text", "text": text}, self._provider, **self._message_data))
        return blocks

    def _finished_calls(self, *, is_cut: bool) -> list[dict[str, Any]]:
        blocks = []
        for position, call in enumerate(self._calls):
            arguments, problem = read_input("".join(call.pieces))
            if is_cut and (problem or (position == len(self._calls) - 1 and not call.pieces)):
                continue
            block = {"type": "tool_use", "id": call.id or f"call_{position}", "name": call.name, "input": arguments}
            block |= {"problem": problem} if problem else {}
            blocks.append(with_data(block, self._provider, **call.data, id=call.id or None))
        return blocks

    @property
    def usage_so_far(self) -> Usage | None:
        """The reported counts, else an estimate of the output. None before the stream began."""
        if self._usage:
            return self._total_usage()
        if self._is_empty:
            return None
        pieces = [*self._text, *self._reasoning, *self._refusal, *(piece for call in self._calls for piece in call.pieces)]
        return Usage(output_tokens=estimated_tokens(sum(map(len, pieces))))

    def _total_usage(self) -> Usage:
        """Return the counts in Assent's terms: OpenAI's prompt includes tokens read from the cache and written to it."""
        details = self._usage.get("prompt_tokens_details") or {}
        cache_reads, cache_writes = int(details.get("cached_tokens") or 0), int(details.get("cache_write_tokens") or 0)
        prompt = int(self._usage.get("prompt_tokens") or 0)
        output = int(self._usage.get("completion_tokens") or 0)
        return Usage(max(0, prompt - cache_reads - cache_writes), output, cache_reads, cache_writes)


def _text(content: Any) -> str:
    """Return the text of a delta. Some servers send a list of parts."""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if part.get("type") == "text")
    return content or ""
