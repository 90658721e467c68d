"""Routes of the workspace's policy: get, update, explain a verdict, simulate a rule on past calls, suggest rules."""

import threading
from datetime import timedelta
from typing import Any

from flask import Blueprint

from api.door.requests import NoQuery
from api.door.routes import reads, writes
from api.v1.policy import responses
from api.v1.policy.approvers import check_workspace_approvers
from api.v1.policy.requests import PolicyExplain, PolicySimulate, PolicyUpdate, SuggestionList
from models.audit import acts
from models.audit.principal import Principal
from models.audit.text import Text
from models.database import clock
from models.database.rows import Db
from models.errors import Busy, Invalid
from models.flow.judge import explanations, simulations
from models.flow.judge.simulations import SimulatedOutcome, Trial
from models.operate.insights.suggestions import Suggestions, suggestions
from models.pure.json.canonical import canonical_text, digest
from models.pure.times import rfc3339
from models.session.row import Session
from models.session.thread.row import Thread, own_id
from models.workspace.agent import Agent
from models.workspace.row import Workspace

policy = Blueprint("policy", __name__, url_prefix="/v1/policy")

_simulating = threading.Lock()
"""Held during a simulation. A process runs one at a time, or looks for suggestions, since either takes seconds and a connection."""


@policy.get("")
@reads(NoQuery, response=responses.WorkspacePolicy)
def show(db: Db, principal: Principal, _query: NoQuery) -> responses.WorkspacePolicy:
    """Get the workspace's policy, its defaults for approvals and models, its chat words, and how long it keeps what is old."""
    return responses.WorkspacePolicy.of(db.get_one(Workspace, principal.workspace_id))


@policy.post("")
@writes(PolicyUpdate, "admin", response=responses.WorkspacePolicy)
def update(db: Db, principal: Principal, body: PolicyUpdate) -> responses.WorkspacePolicy:
    """Update the workspace's policy, its defaults for approvals or models, its chat words, or how long it keeps what is old.

    The change applies to all turns and calls from now on. A field that is left out is kept, and null clears a field.
    """
    return responses.WorkspacePolicy.of(change(db, principal, body))


def change(db: Db, principal: Principal, body: PolicyUpdate) -> Workspace:
    """Update the workspace's policy and defaults. Returns the workspace. Raises Invalid."""
    changes = body.changes()
    check_workspace_approvers(db, changes.get("approval"))
    return Workspace.change_policies(db, principal, changes)


@policy.post("/explain")
@writes(PolicyExplain, "read", response=responses.PolicyExplanation)
def explain(db: Db, _principal: Principal, body: PolicyExplain) -> responses.PolicyExplanation:
    """Explain the verdict on a call: the rule that decides, and the reasons.

    The call is not made, no person is asked, and no grant is used.
    """
    return explanation_of(db, body)


def explanation_of(db: Db, body: PolicyExplain) -> responses.PolicyExplanation:
    """Return the explanation of the verdict on a call. Raises Invalid."""
    if (body.agent is None) == (body.session_id is None):
        raise Invalid("agent", "send either agent or session_id.")
    if body.session_thread_id and body.session_id is None:
        raise Invalid("session_thread_id", "is a thread of a session: send session_id as well.")
    example = explanations.Example(body.tool, body.input, body.permission_policy)
    if body.session_id is None:
        return responses.PolicyExplanation.of(body.tool, explanations.explain(db, _agent(db, body), example))
    session = _session(db, body.session_id)
    explanation = explanations.explain_in(db, session, _thread(db, session, body.session_thread_id), example)
    return responses.PolicyExplanation.of(body.tool, explanation)


@policy.post("/simulate")
@writes(PolicySimulate, "read", response=responses.PolicySimulation)
def simulate(db: Db, principal: Principal, body: PolicySimulate) -> responses.PolicySimulation:
    """Simulate a rule or a policy on the calls of the last days.

    Nothing is changed. The inputs are judged with masked secrets. With a key that has the scope `reveal` the real inputs are
    judged, and the audit records the simulation.
    """
    return simulation_of(db, principal, body)


def simulation_of(db: Db, principal: Principal, body: PolicySimulate) -> responses.PolicySimulation:
    """Simulate, and record it in the audit if the real inputs are judged. Raises Invalid, Busy."""
    if (body.rule is None) == (body.permission_policy is None):
        raise Invalid("rule", "send either rule or permission_policy.")
    if body.agent_id:
        Agent.in_field(db, body.agent_id, None, field="agent_id")
    since = clock.now(db) - timedelta(days=body.days)
    if not _simulating.acquire(blocking=False):
        raise Busy("Another simulation is running; try again when it has ended.")
    try:
        reveal = "reveal" in principal.scopes
        trial = Trial(since, body.rule, body.permission_policy, body.agent_id, body.tool, reveal)
        outcome = simulations.simulate(db, principal.workspace_id, trial)
    finally:
        _simulating.release()
    if reveal:
        acts.record(db, principal, "policy.simulated", principal.workspace_id, _audit_details(trial, outcome))
    return responses.PolicySimulation.of(trial, outcome)


@policy.get("/suggestions")
@reads(SuggestionList, response=responses.PolicySuggestions)
def suggest(db: Db, _principal: Principal, query: SuggestionList) -> responses.PolicySuggestions:
    """Suggest rules by the newest calls that people decided: what they always allowed, and what they always denied.

    A rule contradicts no decision among these calls. None allows what may destroy something, or what the settings leave to certain
    people. Inputs are judged with masked secrets. Try a rule on past calls before you save it: `POST /v1/policy/simulate`.
    """
    return responses.PolicySuggestions.of(suggestions_for(db, query.agent_id))


def suggestions_for(db: Db, agent_id: str | None) -> Suggestions:
    """Return the suggestions for all agents, or for one. Raises Invalid, Busy."""
    if agent_id:
        Agent.in_field(db, agent_id, None, field="agent_id")
    if not _simulating.acquire(blocking=False):
        raise Busy("A simulation is running; try again when it has ended.")
    try:
        return suggestions(db, agent_id)
    finally:
        _simulating.release()


def _audit_details(trial: Trial, outcome: SimulatedOutcome) -> dict[str, Any]:
    """Return the audit's details of a simulation over unmasked inputs."""
    policy = {"permission_policy_sha256": digest(trial.policy)} if trial.policy else {}
    about = {"agent_id": trial.agent_id, "tool": trial.tool, "since": rfc3339(trial.since), "looked_at": outcome.looked_at}
    return about | policy | ({"rule": Text(canonical_text(trial.rule))} if trial.rule else {})


def _session(db: Db, session_id: str) -> Session:
    session = db.get(Session, session_id)
    if session is None:
        raise Invalid("session_id", f"session {session_id!r} was not found in this workspace.")
    return session


def _thread(db: Db, session: Session, thread_id: str | None) -> Thread:
    thread = db.get(Thread, session.id, thread_id or own_id(session.id))
    if thread is None:
        raise Invalid("session_thread_id", f"session {session.id} has no thread {thread_id!r}; GET its threads, or leave it out.")
    return thread


def _agent(db: Db, body: PolicyExplain) -> dict[str, Any]:
    assert body.agent, "the body has either agent or session_id"
    return Agent.in_field(db, body.agent.id, body.agent.version)[1].body
