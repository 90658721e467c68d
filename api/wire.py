"""Rows in the API's form: payloads that pass the SDK's strict validation, with Assent's additional fields."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from models.database.rows import Db
from models.people.delegation import Delegation
from models.pure import masking, policy
from models.pure.canonical import spelled
from models.pure.key_secret import PREFIX
from models.pure.quorum import Escalation
from models.session import call_events
from models.session.approval import Approval
from models.session.event import Event
from models.session.grant import Grant, rule_for
from models.session.session import Session
from models.session.vote import Vote
from models.session.work import Work
from models.workspace.agent import Agent, AgentVersion
from models.workspace.api_key import ApiKey
from models.workspace.environment import Environment
from models.workspace.halt import Halt

Json = dict[str, Any]

STATUSES = {
    "idle": "idle",
    "running": "running",
    "waiting": "idle",
    "rescheduling": "rescheduling",
    "stopping": "running",
    "terminated": "terminated",
}
"""The API's status for each status of a session. `waiting` is idle with `requires_action`; `waiting_on` lists the approvals."""


def time(at: datetime | None) -> str | None:
    """Return a time in RFC 3339, in UTC with microseconds."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z") if at else None


def agent(row: Agent, version: AgentVersion) -> Json:
    """An agent at one of its versions."""
    changed = row.updated_at if version.version == row.version else version.created_at
    return {
        "id": row.id,
        "type": "agent",
        "version": version.version,
        **version.body,
        "created_at": time(row.created_at),
        "updated_at": time(changed),
        "archived_at": time(row.archived_at),
    }


def environment(row: Environment) -> Json:
    """An environment."""
    return {
        "id": row.id,
        "type": "environment",
        "name": row.name,
        "description": row.description,
        "config": row.config,
        "scope": "organization",
        "metadata": row.metadata_,
        "built_in": row.built_in,
        "created_at": time(row.created_at),
        "updated_at": time(row.updated_at),
        "archived_at": time(row.archived_at),
    }


def session(db: Db, row: Session, waiting_on: list[Json]) -> Json:
    """A session, with what it waits for."""
    created = {"ephemeral_5m_input_tokens": row.usage.get("cache_creation_input_tokens", 0), "ephemeral_1h_input_tokens": 0}
    return {
        "id": row.id,
        "type": "session",
        "agent": row.agent(db),
        "environment_id": row.environment_id,
        "status": STATUSES[row.status],
        "stop_reason": row.stop_reason,
        "waiting_on": waiting_on,
        "title": row.title,
        "metadata": row.metadata_,
        "max_turns": row.max_turns,
        "chat_approvals": row.chat_approvals,
        "on_ask": row.on_ask,
        "on_behalf_of": f"user:{row.on_behalf_of}" if row.on_behalf_of else None,
        "outcome_evaluations": [],
        "resources": [],
        "stats": {},
        "usage": {**row.usage, "cache_creation": created},
        "vault_ids": [],
        "created_at": time(row.created_at),
        "updated_at": time(row.updated_at),
        "archived_at": time(row.archived_at),
    }


def thread(db: Db, row: Session) -> Json:
    """A session's own thread."""
    fields = session(db, row, [])
    kept = ("agent", "status", "stats", "usage", "created_at", "updated_at", "archived_at")
    return {"id": row.thread_id, "type": "session_thread", "session_id": row.id, "parent_thread_id": None} | {
        key: fields[key] for key in kept
    }


def work(row: Work) -> Json:
    """A piece of work for a worker of a self-hosted environment."""
    return {
        "id": row.id,
        "type": "work",
        "environment_id": row.environment_id,
        "data": {"type": "session", "id": row.session_id},
        "state": row.status,
        "metadata": row.metadata_,
        "secret": None,
        "created_at": time(row.created_at),
        "acknowledged_at": time(row.acknowledged_at),
        "started_at": time(row.started_at),
        "latest_heartbeat_at": time(row.heartbeat_at),
        "stop_requested_at": time(row.stop_requested_at),
        "stopped_at": time(row.stopped_at),
    }


def heartbeat(row: Work, ttl: int, *, extended: bool) -> Json:
    """Return the lease after a heartbeat. `extended` is False if the heartbeat did not extend it."""
    return {
        "type": "work_heartbeat",
        "last_heartbeat": time(row.heartbeat_at) or "",
        "lease_extended": extended,
        "state": row.status,
        "ttl_seconds": ttl,
    }


def waiting(row: Approval, votes: Sequence[Vote] = ()) -> Json:
    """One approval that a session waits for."""
    return {
        "approval_id": row.id,
        "tool_use_id": row.tool_call_id,
        "tool": row.tool,
        **row.demands,
        "votes": [_vote(vote) for vote in votes],
        "kind": row.kind,
        "since": time(row.created_at),
        "expires_at": time(row.expires_at),
    }


def event(row: Event, *, whole: bool) -> Json:
    """An event, in lists and in streams. `whole`: the client may run client tools, and so gets their inputs with secrets."""
    body = dict(row.body)
    shown = body.pop(call_events.SHOWN, None)
    if shown is not None and not whole:
        body["input"] = shown
    return {**body, "id": row.id, "type": row.type, "processed_at": time(row.processed_at)}


def approval(
    row: Approval, given: Json | None = None, votes: Sequence[Vote] = (), *, position: int | None = None, reveal: bool = False
) -> Json:
    """An approval: the question, what was shown, who may decide, the votes that stand, the answer, the grant that it gave.

    `position` is its place in the queue that was asked for. `reveal` leaves secrets unmasked.
    """
    masked = row.masked
    hidden = masked.paths and not reveal
    edited = row.decided_shown
    if reveal and row.decided_input:
        edited = json.loads(row.decided_input)
    echoes = masking.Echoes(()) if reveal else row.echoes
    return {
        "id": row.id,
        "type": "approval",
        "kind": row.kind,
        "status": row.status,
        "session_id": row.session_id,
        "agent_id": row.agent_id,
        "tool_use_id": row.tool_call_id,
        "tool": row.tool,
        "prompt": row.prompt,
        "input": masked.shown if hidden else json.loads(row.input),
        "input_canonical": spelled(masked.shown) if hidden else row.input,
        "masked": list(masked.paths) if hidden else [],
        "input_sha256": row.input_sha256,
        "rule": row.rule,
        "annotations": row.annotations,
        "leads_to": echoes.value(row.leads_to),
        "questions": echoes.value(row.questions),
        "attempt": echoes.value(row.attempt_told),
        "covers": _covers(row),
        "created_at": time(row.created_at),
        "expires_at": time(row.expires_at),
        "on_timeout": row.on_timeout,
        **row.demands,
        "votes": [_vote(vote) for vote in votes],
        "escalation": _escalation(row),
        "queue_position": position,
        "remind_at": time(row.remind_at),
        "reminded_at": time(row.reminded_at),
        "decision": echoes.value(row.decision),
        "decided_input": edited,
        "decided_sha256": row.decided_sha256,
        "decided_by": row.decided_by,
        "decided_at": time(row.decided_at),
        "event_id": row.event_id,
        "grant": given,
    }


def _vote(row: Vote) -> Json:
    return row.summary | {"at": time(row.created_at)}


def _escalation(row: Approval) -> Json | None:
    """How far it was escalated, and to whom it goes next."""
    if row.escalation is None:
        return None
    escalation = Escalation.of(row.escalation)
    levels = [
        {"approvers": [list(one) for one in quorum.approvers], "timeout_seconds": seconds}
        for quorum, seconds in zip(escalation.quorums, escalation.seconds, strict=True)
    ]
    return {"level": row.level, "levels": levels, "then": escalation.then}


def delegation(row: Delegation) -> Json:
    """A delegation."""
    return {
        "id": row.id,
        "type": "delegation",
        "from": f"user:{row.from_person_id}",
        "to": f"user:{row.to_person_id}",
        "group": f"group:{row.group_id}" if row.group_id else None,
        "starts_at": time(row.starts_at),
        "ends_at": time(row.ends_at),
        "created_at": time(row.created_at),
        "created_by": row.created_by,
        "ended_at": time(row.ended_at),
        "ended_by": row.ended_by,
    }


def halt(row: Halt | None) -> Json:
    """Whether the workspace is halted, with the halt that is open or was the last."""
    return {
        "type": "halt",
        "halted": row is not None and row.ended_at is None,
        "id": row.id if row else None,
        "reason": row.reason if row else None,
        "started_at": time(row.started_at) if row else None,
        "started_by": row.started_by if row else None,
        "ended_at": time(row.ended_at) if row else None,
        "ended_by": row.ended_by if row else None,
    }


def grant(row: Grant, now: datetime) -> Json:
    """A standing approval, as it is at `now`."""
    over = row.revoked_at is not None or (row.expires_at is not None and row.expires_at <= now)
    return {
        "id": row.id,
        "type": "grant",
        "scope": row.scope,
        "agent_id": row.agent_id,
        "session_id": row.session_id,
        "approval_id": row.approval_id,
        "tool": row.tool,
        "match": row.match,
        "covers": row.covers,
        "given_by": row.given_by,
        "created_at": time(row.created_at),
        "expires_at": time(row.expires_at),
        "max_uses": row.max_uses,
        "uses": row.uses,
        "revoked_at": time(row.revoked_at),
        "revoked_by": row.revoked_by,
        "live": not over and (row.max_uses is None or row.uses < row.max_uses),
    }


def api_key(row: ApiKey, now: datetime) -> Json:
    """An API key, as it is at `now`, without its secret."""
    return {
        "id": row.id,
        "type": "api_key",
        "name": row.name,
        "partial_key_hint": f"{PREFIX}...{row.hint}",
        "status": row.status(now),
        "scope": {"type": "workspace", "workspace_id": row.workspace_id},
        "principal": None,
        "created_by": None,
        "created_at": time(row.created_at),
        "expires_at": time(row.expires_at),
        "last_used_at": time(row.last_used_at),
        "scopes": row.scopes,
        "allowed_cidrs": row.allowed_cidrs,
        "environment_id": row.environment_id,
    }


def _covers(row: Approval) -> Json | None:
    """Return the calls that a grant would cover, in words. Only approvals of tool calls can give grants."""
    if row.kind != "tool_call":
        return None
    return {"tool": policy.covers(rule_for(row, None)), "exact": policy.covers(rule_for(row, "exact"))}
