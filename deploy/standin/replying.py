"""Selects a conversation's next reply, scripted or not. Without server state."""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from deploy.standin.script import Block, Fault, ScriptedReply, read

RUN_LIKE = re.compile(r"\b(run|execute|command|shell|bash|terminal|list|files?|tools?|try|check)\b", re.IGNORECASE)
LOOK_LIKE = re.compile(r"\blook around\b", re.IGNORECASE)
LOOK = '{"command": "pwd && ls -la && date"}'
DEMO_CALL = '{"command": "echo \'Hello from a tool call.\'"}'
GREETING = (
    "Hello! I am the stand-in model: I cost nothing and understand a few words, one per line. Try this:\n\n"
    "    think I should look first\n    say Let me look.\n"
    '    call bash {"command": "ls"}\n    then\n    say That is all.\n\n'
    "I also know `say 500 tokens at 50/s`, `refuse`, `max_tokens`, `cut call ...`, `loop call ...`, `delay 2s`, "
    "`fail 529 2 times` and `drop connection mid-stream 1 times`. The manual is the docstring of deploy.standin."
)


@dataclass(frozen=True)
class ScriptPlace:
    """A conversation's state: the prompt, the number of replies since, and the last results."""

    prompt: str
    replies: int
    results: list[dict[str, Any]]


def next_reply(body: dict[str, Any]) -> ScriptedReply:
    """Return the reply to a valid request. Raises `script.UnreadableError`."""
    place = _place(body["messages"])
    replies = read(place.prompt)
    if not replies:
        return _after(place) if place.replies else _unscripted(place.prompt, body.get("tools") or [])
    for number, reply in enumerate(replies):
        if number == place.replies or reply.loops:
            return reply
    return _after(place)


def fault_due(reply: ScriptedReply, tries: int) -> Fault | None:
    """Return the fault of attempt number `tries` (from 0) at this reply, or None."""
    for fault in reply.faults:
        if tries < fault.times:
            return fault
        tries -= fault.times
    return None


def fingerprint(body: dict[str, Any]) -> bytes:
    """Return a hash of the conversation, by which attempts are counted."""
    conversation = [body.get("model"), body.get("system"), body["messages"]]
    return hashlib.sha256(json.dumps(conversation, sort_keys=True).encode()).digest()


def texts(content: Any) -> list[str]:
    """Return the texts of a message's or a tool result's content."""
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content or [] if block["type"] == "text"]


def _place(messages: list[dict[str, Any]]) -> ScriptPlace:
    prompt, replies = "", 0
    for message in reversed(messages):
        if message["role"] == "assistant":
            replies += 1
        elif message["role"] == "user" and (lines := texts(message["content"])):
            prompt = lines[-1]
            break
    last = messages[-1]["content"]
    results = [block for block in last if block["type"] == "tool_result"] if isinstance(last, list) else []
    return ScriptPlace(prompt, replies, results)


def _unscripted(prompt: str, tools: list[dict[str, Any]]) -> ScriptedReply:
    if any(tool["name"] == "bash" for tool in tools):
        if LOOK_LIKE.search(prompt):
            return _proposes("I would like to look at the files here first.", LOOK)
        if RUN_LIKE.search(prompt):
            return _proposes("I would like to run one harmless command.", DEMO_CALL)
    return ScriptedReply([Block("text", GREETING)])


def _proposes(say: str, call: str) -> ScriptedReply:
    return ScriptedReply([Block("text", say), Block("tool_use", call, "bash")], stop_reason="tool_use")


def _after(place: ScriptPlace) -> ScriptedReply:
    """Return the reply after the script's end. It repeats the last results, if there are any."""
    failed = [result for result in place.results if result.get("is_error")]
    results = "\n".join(text for result in failed or place.results for text in texts(result.get("content")))[:2000]
    if failed:
        say = f"The call was refused or failed, so I stop here and do not try it again. I was told:\n\n{results}"
    elif place.results:
        say = f"Done. The answer was:\n\n{results}" if results.strip() else "Done. There was no output."
    else:
        say = "My script is over."
    return ScriptedReply([Block("text", say)])
