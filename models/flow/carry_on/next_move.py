"""Decides what follows a model's reply, and what follows when a call is settled."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from models.pure.states import NEEDS_PERSON, SETTLED, WITH_CLIENT, RunLimit

WaitsFor = Literal["none", "person", "client", "both"]


@dataclass(frozen=True)
class Calls:
    """The model calls tools. Each block is a `tool_use` block of the reply, in order."""

    blocks: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Finish:
    """The run ends here."""

    stop_reason: Literal["end_turn", "refusal", "retries_exhausted"]
    """`end_turn`; `refusal` if the model declined; `retries_exhausted` if its calls cannot be read."""
    error: tuple[str, str] | None = None
    """Type and message of a `session.error`, if the model did not choose the end."""
    limit: RunLimit | None = None
    """The limit that ended the run, if one did."""


def after_reply(stop_reason: str, content: list[dict[str, Any]], number: int, limit: int) -> Calls | Finish:
    """Return what follows a reply. Only a complete reply (`tool_use`) can call tools, never one that was cut."""
    blocks = tuple(b for b in content if b["type"] == "tool_use")
    if stop_reason == "tool_use" and blocks:
        if number < limit:
            return Calls(blocks)
        message = f"The run reached its limit of {limit} turns for one message."
        return Finish("end_turn", ("tool_use_limit_reached_error", message), "max_turns")
    if stop_reason == "refusal":
        return Finish("refusal")
    if stop_reason == "max_tokens":
        message = "The reply was cut at the model's limit of output tokens (max_tokens)."
        return Finish("end_turn", ("unknown_error", message), "max_tokens")
    if stop_reason == "model_context_window_exceeded":
        message = "The conversation no longer fits into the model's context window."
        return Finish("end_turn", ("unknown_error", message), "context_window")
    return Finish("end_turn")


def waits_for(statuses: Iterable[str]) -> WaitsFor:
    """Return for whom the calls with these statuses wait: people, whoever runs the client's calls, both, or nobody."""
    person, client = False, False
    for status in statuses:
        person, client = person or status in NEEDS_PERSON, client or status == WITH_CLIENT
    return "both" if person and client else "person" if person else "client" if client else "none"


def all_settled(statuses: Iterable[str]) -> bool:
    """True if every call with these statuses is settled, so that the next turn can start."""
    return SETTLED.issuperset(statuses)
