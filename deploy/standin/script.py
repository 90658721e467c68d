"""Parses the stand-in model's scripts: a prompt's lines in, replies out. The manual is in `deploy.standin`."""

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

ALWAYS = 1_000_000_000
WORDS = ("the ", "sea ", "was ", "far ", "but ", "its ", "low ", "hum ")


class UnreadableError(Exception):
    """A directive cannot be read. The message names the line and the fault."""


@dataclass(frozen=True)
class Block:
    """One content block of a reply. A tool call's `text` is its input as JSON. `pause`, in seconds, precedes the block."""

    kind: Literal["text", "thinking", "tool_use", "compaction"]
    text: str
    name: str = ""
    tokens_per_second: float | None = None
    pause: float = 0


@dataclass(frozen=True)
class Fault:
    """A fault that replaces the reply for the first `times` attempts. Without a status, the connection is dropped."""

    status: int | None
    times: int
    mid_stream: bool = False
    retry_after: int | None = None


@dataclass
class ScriptedReply:
    """One scripted reply. `cut`: its last block stops half-way. `pause`, in seconds, follows the last block."""

    blocks: list[Block] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    stop_reason: str = "end_turn"
    explanation: str | None = None
    cut: bool = False
    loops: bool = False
    pause: float = 0

    def add(self, block: Block) -> None:
        self.blocks.append(Block(block.kind, block.text, block.name, block.tokens_per_second, self.pause))
        self.pause = 0


def read(prompt: str) -> list[ScriptedReply]:
    """Return the replies that a prompt describes; none if it has no directive.

    Raises `UnreadableError` for a call whose input is not a JSON object.
    """
    replies, any_directive = [ScriptedReply()], False
    for number, line in enumerate(prompt.splitlines(), 1):
        for pattern, act in DIRECTIVES:
            if match := pattern.fullmatch(line.strip()):
                any_directive = True
                try:
                    ends = act(replies[-1], match)
                except ValueError as error:
                    raise UnreadableError(f"stand-in script, line {number}: {error}") from None
                if ends:
                    replies.append(ScriptedReply())
                break
    if not any_directive:
        return []
    scripted = [reply for reply in replies if reply != ScriptedReply()]
    for reply in scripted:
        if reply.stop_reason == "end_turn" and all(block.kind == "thinking" for block in reply.blocks):
            reply.add(Block("text", "Here I am."))
    return scripted


def _then(_: ScriptedReply, __: re.Match[str]) -> bool:
    return True


def _say(reply: ScriptedReply, match: re.Match[str]) -> bool:
    reply.add(Block("text", match["text"].replace("\\n", "\n")))
    return False


def _say_tokens(reply: ScriptedReply, match: re.Match[str]) -> bool:
    count = min(int(match["count"]), 100_000)
    text = "".join(WORDS[n % len(WORDS)] for n in range(count))
    reply.add(Block("text", text, tokens_per_second=float(match["pace"]) if match["pace"] else None))
    return False


def _think(reply: ScriptedReply, match: re.Match[str]) -> bool:
    reply.add(Block("thinking", match["text"]))
    return False


def _call(reply: ScriptedReply, match: re.Match[str]) -> bool:
    text = match["input"] or "{}"
    try:
        is_object = isinstance(json.loads(text), dict)
    except ValueError:
        is_object = False
    if not is_object:
        raise ValueError(f"the input of `call {match['name']}` is not a JSON object: {text}")
    how = (match["how"] or "").strip().lower()
    reply.add(Block("tool_use", text, match["name"]))
    reply.stop_reason = "max_tokens" if how == "cut" else "tool_use"
    reply.cut, reply.loops = how == "cut", reply.loops or how == "loop"
    return reply.cut


def _broken_call(reply: ScriptedReply, match: re.Match[str]) -> bool:
    reply.add(Block("tool_use", match["text"], match["name"]))
    reply.stop_reason, reply.loops = "tool_use", bool(match["loop"])
    return False


def _max_tokens(reply: ScriptedReply, _: re.Match[str]) -> bool:
    reply.stop_reason = "max_tokens"
    return True


def _refuse(reply: ScriptedReply, match: re.Match[str]) -> bool:
    reply.stop_reason, reply.explanation = "refusal", match["text"] or "The stand-in model was asked to refuse."
    return True


def _delay(reply: ScriptedReply, match: re.Match[str]) -> bool:
    reply.pause += float(match["seconds"])
    return False


def _fault(reply: ScriptedReply, match: re.Match[str]) -> bool:
    groups: dict[str, Any] = match.groupdict()
    status, retry_after = groups.get("status"), groups.get("retry_after")
    if status and not 400 <= int(status) <= 599:
        raise ValueError(f"{status} is not the status of an error")
    times = ALWAYS if match["always"] else int(match["times"] or 1)
    wait = int(retry_after) if retry_after else None
    reply.faults.append(Fault(int(status) if status else None, times, bool(match["mid"]), wait))
    return False


_TIMES = r"(?P<mid> mid-stream)?(?: (?P<times>\d+) times?|(?P<always> always))?"
_CALL = r"(?P<how>loop |cut )?call (?P<name>[\w-]{1,128})(?:\s*|\s+(?P<input>[{\[\"].*))"
DIRECTIVES = [
    (re.compile(pattern, re.IGNORECASE), act)
    for pattern, act in (
        (r"then", _then),
        (r"say (?P<count>\d+) tokens(?: at (?P<pace>[1-9]\d*)/s)?", _say_tokens),
        (r"say (?P<text>.+)", _say),
        (r"think (?P<text>.+)", _think),
        (_CALL, _call),
        (r"(?P<loop>loop )?broken call (?P<name>[\w-]{1,128}) (?P<text>.+)", _broken_call),
        (r"max_tokens", _max_tokens),
        (r"refuse(?: (?P<text>.+))?", _refuse),
        (r"delay (?P<seconds>\d+(?:\.\d+)?)s", _delay),
        (rf"fail (?P<status>\d{{3}}){_TIMES}(?: retry-after (?P<retry_after>\d+))?", _fault),
        (rf"drop connection{_TIMES}", _fault),
    )
]
