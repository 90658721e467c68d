"""Additional scopes for requests that change which calls run without a person."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from api.door.errors import Denied
from models.audit.principal import Principal
from models.pure.json.canonical import canonical

GUARDED = ("tools", "mcp_servers", "permission_policy", "approval")
"""Fields of an agent that decide which calls are allowed, and how people are asked about the others."""


def check_agent(principal: Principal, body: BaseModel, now: Mapping[str, Any] | None, fields: Mapping[str, Any]) -> None:
    """Raise Denied if `body` sets `on_timeout: allow` on an agent and the key lacks the scope `approvals`.

    `now` is the present agent, None for a new one. `fields` are its new fields in normal form. Unchanged fields need no scope.
    """
    _check_deadlines(principal, body, _changes(now or {}, fields), at="")


def check_session(principal: Principal, body: BaseModel, now: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    """Raise Denied unless the key may set these fields of a session's agent. Each of GUARDED needs the scope `agents`, and
    `on_timeout: allow` needs `approvals`.

    `body` is the request's `agent`; `now` and `fields` are as for `check_agent`.
    """
    changes = _changes(now, fields)
    if changes and "agents" not in principal.scopes:
        raise _denied(f"agent.{changes[0]}", "changing it for a session", "agents", "leave it out")
    _check_deadlines(principal, body, changes, at="agent.")


def _changes(now: Mapping[str, Any], fields: Mapping[str, Any]) -> list[str]:
    """Return the guarded fields that would change. An empty list equals null."""
    return [name for name in GUARDED if name in fields and canonical(fields[name] or None) != canonical(now.get(name) or None)]


def _check_deadlines(principal: Principal, body: BaseModel, changes: list[str], *, at: str) -> None:
    if "approvals" in principal.scopes:
        return
    for field in _deadlines_that_allow(body.model_dump(include=set(changes))):
        raise _denied(at + field, "a deadline that allows a call", "approvals", "choose deny or end_run")


def _deadlines_that_allow(value: Any, path: str = "") -> Iterator[str]:
    """Yield the path of every `approval.on_timeout` that is `allow`, at any depth."""
    if isinstance(value, dict):
        approval = value.get("approval")
        if isinstance(approval, dict) and approval.get("on_timeout") == "allow":
            yield f"{path}approval.on_timeout"
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        if name not in {"input_schema", "permission_policy"}:  # may hold keys of any name
            yield from _deadlines_that_allow(part, f"{path}{name}.")


def _denied(field: str, change: str, scope: str, remedy: str) -> Denied:
    return Denied(
        403, f"{field}: {change} needs the scope {scope!r}, which this API key lacks; {remedy}, or use a key that has it."
    )
