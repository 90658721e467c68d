"""What a request needs beyond the scope of its route, because it changes which calls run without a person."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from api.errors import Denied
from models.audit.principal import Principal
from models.pure.canonical import canonical

GUARDED = ("tools", "mcp_servers", "permission_policy", "approval")
"""Fields of an agent that decide which calls are allowed, and how people are asked about the others."""


def check_agent(principal: Principal, body: BaseModel, now: Mapping[str, Any] | None, wanted: Mapping[str, Any]) -> None:
    """Raise Denied if `body` sets `on_timeout: allow` on an agent and the key lacks the scope `approvals`.

    `now` is the agent as it is, None for a new one, and `wanted` has its new fields in normal form. Unchanged fields need no scope.
    """
    _check_deadlines(principal, body, _changed(now or {}, wanted), at="")


def check_session(principal: Principal, body: BaseModel, now: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise Denied unless the key may give a session's agent these fields: `agents` for each of GUARDED, and as `check_agent`.

    `body` is the request's `agent`; `now` and `wanted` are as for `check_agent`.
    """
    changed = _changed(now, wanted)
    for field in changed:
        if "agents" not in principal.scopes:
            raise _denied(f"agent.{field}", "changing it for a session", "agents", "leave it out")
    _check_deadlines(principal, body, changed, at="agent.")


def _changed(now: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """The guarded fields that would no longer be as they are; an empty list and none are the same."""
    return [name for name in GUARDED if name in wanted and canonical(wanted[name] or None) != canonical(now.get(name) or None)]


def _check_deadlines(principal: Principal, body: BaseModel, changed: list[str], *, at: str) -> None:
    if "approvals" in principal.scopes:
        return
    for field in _deadlines_that_allow(body.model_dump(include=set(changed))):
        raise _denied(at + field, "a deadline that allows a call", "approvals", "choose deny or end_run")


def _deadlines_that_allow(value: Any, path: str = "") -> Iterator[str]:
    """The paths of every `approval.on_timeout` that is `allow`, in whatever holds it."""
    if isinstance(value, dict):
        approval = value.get("approval")
        if isinstance(approval, dict) and approval.get("on_timeout") == "allow":
            yield f"{path}approval.on_timeout"
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        if name not in {"input_schema", "permission_policy"}:  # theirs, whatever they hold
            yield from _deadlines_that_allow(part, f"{path}{name}.")


def _denied(field: str, what: str, scope: str, remedy: str) -> Denied:
    return Denied(403, f"{field}: {what} needs the scope {scope!r}, which this API key lacks; {remedy}, or use a key that has it.")
