"""The page of policies: the rules in force; beside them a call to try, and a change to simulate before it is saved."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from flask import request

from api.desk.agents.tools import EFFECT_WORDS
from api.desk.policies.rules import RuleRow, rows_of_agent, rows_of_workspace, without
from api.desk.rendering.fields import loads, pretty
from api.desk.shell.blueprint import action, page
from api.desk.shell.forms import Misfilled, needed, text
from api.door import parsing
from api.door.errors import Denied
from api.door.framed import FramedPage, query_value
from api.v1.agents.requests import AgentUpdate
from api.v1.agents.routes import change as change_agent
from api.v1.agents.routes import heads
from api.v1.policy.requests import PolicyExplain, PolicySimulate, PolicyUpdate
from api.v1.policy.responses import PolicySimulation
from api.v1.policy.routes import change, explanation_of, simulation_of
from models.briefing.because import sentence
from models.database.rows import Db
from models.errors import Conflict, Invalid, Refusal
from models.flow.judge.past_calls import Then
from models.flow.judge.simulations import added, default_of
from models.people.principal import PersonPrincipal
from models.pure.json.canonical import digest
from models.pure.policy.rules import FILE_PATHS
from models.pure.state_words import PAST_CALL
from models.pure.text.relative_time import number_with_noun
from models.settings import settings
from models.workspace.agent import Agent
from models.workspace.row import Workspace

_MOST_CHOICES = 200
DAYS = ("1", "7", "30", "90")
"""How far a simulation may look back."""
_OF_ADDRESS = ("effect", "match", "days")
"""Fields of a new rule with which an address may open its form. Nothing is tried or saved by an address."""
_PLAIN_ARGUMENTS = {"bash": "command"} | {tool: path[1:] for tool, path in FILE_PATHS.items()}
"""The argument that a text in the place of JSON means, by built-in tool."""
_DECIDED_BY_PEOPLE: tuple[Then, ...] = (
    "allowed_by_person",
    "answered_by_person",
    "denied_by_person",
    "allowed_at_deadline",
    "expired",
    "waiting",
)


@page("/inbox/policies", "policies", "own or read")
def policies(db: Db, person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage | str:
    """Show the rules of the workspace, or all that count for the agent in the address. Who reads only their own sees grants."""
    if "read" not in person.scopes:
        return "/inbox/grants"
    agent_id = text("agent") if request.form else query_value("agent") or ""
    of_address = {name: value for name in _OF_ADDRESS if (value := query_value(name))}
    policy = Workspace.policies(db)["policy"]
    body = Agent.find(db, agent_id).at(db).body if agent_id else None
    return FramedPage(
        "policies/policies.html",
        rows=_rows(db, agent_id),
        agent_id=agent_id,
        agent_name=body["name"] if body else "",
        agents=choices_of_agents(db),
        days=DAYS,
        policy=pretty(policy or {"type": f"always_{settings().default_permission}"}),
        policy_digest=digest(policy),
        is_policy_set=policy is not None,
        form=request.form or of_address,
        faults=refusal.faults if isinstance(refusal, Misfilled) else {},
        refusal=str(refusal or ""),
        may_save=_may_save(person, agent_id),
        may_save_policy="admin" in person.scopes,
    )


@page("/inbox/policies/try", "policies", "own or read")
def try_again(_db: Db, _person: PersonPrincipal) -> str:
    """Go to the form: this is the address of its response, which a person may load again."""
    return "/inbox/policies"


@page("/inbox/policies/simulate", "policies", "own or read")
def simulate_again(_db: Db, _person: PersonPrincipal) -> str:
    """Go to the form, likewise."""
    return "/inbox/policies"


@action("/inbox/policies/try", "read", section="policies", again=policies)
def try_call(db: Db, person: PersonPrincipal) -> FramedPage | str:
    """Explain how a call would be judged, as `POST /v1/policy/explain` does."""
    body = {"agent": needed("agent", "Choose an agent."), "tool": needed("tool", "Write a tool's name.").strip()}
    explanation = explanation_of(db, parsing.validated(PolicyExplain, body | {"input": _input(body["tool"])}))
    why = sentence(explanation.rule, explanation.effect)
    return _again(db, person, explanation=explanation, state=EFFECT_WORDS[explanation.effect], why=why)


@action("/inbox/policies/simulate", "read", section="policies", again=policies)
def simulate(db: Db, person: PersonPrincipal) -> FramedPage | str:
    """Try a rule, the end of a rule, or the workspace's policy on past calls, as `POST /v1/policy/simulate` does."""
    body: dict[str, Any] = {"days": float(text("days")) if text("days") in DAYS else 7.0}
    old_row = None
    if text("remove"):
        policy = _own_policy(db, text("agent"))
        body["permission_policy"] = without(policy, text("remove"))
        old_row = next((row for row in _rows(db, text("agent")) if row.key == text("remove")), None)
    elif text("policy"):
        body["permission_policy"] = _policy()
    else:
        body["rule"] = _rule()
    if text("agent") and not text("policy"):
        body["agent_id"] = text("agent")
    outcome = simulation_of(db, person, parsing.validated(PolicySimulate, body))
    sides = [(EFFECT_WORDS[name], getattr(outcome, name)) for name in ("deny", "ask", "allow")]
    new_state = EFFECT_WORDS[body["rule"]["effect"]] if "rule" in body else None
    values = {"simulation": outcome, "sides": sides, "old_row": old_row, "new_rule_state": new_state}
    return _again(db, person, **values, then_words=PAST_CALL, summary=_summary(outcome))


@action("/inbox/policies/save", "read", section="policies", again=policies)
def save(db: Db, person: PersonPrincipal) -> str:
    """Add a rule to the policy of the agent or the workspace, remove one, or replace the workspace's, as the API's updates do."""
    agent_id = text("agent") if not text("policy") else ""
    if not _may_save(person, agent_id):
        raise Denied(403, "Your role may not change this policy; ask an admin.")
    _lock_policy(db, agent_id)
    own = _own_policy(db, agent_id)
    if text("policy") and text("digest") != digest(own):
        raise Conflict("The policy has changed since you opened the page. Copy your text, and open the page again.")
    new = _new_policy(db, own, agent_id)
    if agent_id:
        change_agent(db, person, parsing.validated(AgentUpdate, {"permission_policy": new}), agent_id)
        return f"/inbox/policies?agent={agent_id}"
    change(db, person, parsing.validated(PolicyUpdate, {"permission_policy": new}))
    return "/inbox/policies"


def _lock_policy(db: Db, agent_id: str) -> None:
    """Keep everybody else from changing the policy between its reading and its change: a rule that they add would be lost."""
    if agent_id:
        Agent.lock(db, agent_id)
    else:
        db.get_one(Workspace, db.workspace_id, lock=True)


def _own_policy(db: Db, agent_id: str) -> dict[str, Any] | None:
    """Return the stored policy of the agent, or of the workspace."""
    policy: dict[str, Any] | None = Workspace.policies(db)["policy"]
    return Agent.find(db, agent_id).at(db).body.get("permission_policy") if agent_id else policy


def _new_policy(db: Db, own: dict[str, Any] | None, agent_id: str) -> Any:
    """Return the policy that the form makes of the agent's or the workspace's `own`. Raises Misfilled, Conflict."""
    if text("remove"):
        return without(own, text("remove"))
    if text("policy"):
        return _policy()
    fallback = settings().default_permission
    return added(_rule(), own, default_of(Workspace.policies(db)["policy"], fallback) if agent_id else fallback)


def _rows(db: Db, agent_id: str) -> list[RuleRow]:
    """Return the rows of the rules of the workspace, or of all that count for the agent."""
    if agent_id:
        return rows_of_agent(db, agent_id, Agent.find(db, agent_id).at(db).body)
    return rows_of_workspace(Workspace.policies(db)["policy"])


def choices_of_agents(db: Db) -> list[tuple[str, str]]:
    """Return the ids and names of the newest agents in use."""
    agents = db.find(Agent, "WHERE archived_at IS NULL ORDER BY created_at DESC, id DESC LIMIT %(most)s", most=_MOST_CHOICES)
    names = {id_: version.body["name"] for id_, version in heads(db, agents).items()}
    return [(row.id, names[row.id]) for row in agents]


def _again(db: Db, person: PersonPrincipal, **values: Any) -> FramedPage | str:
    """Return the page with a result."""
    result = policies(db, person)
    if isinstance(result, FramedPage):
        result.values.update(values)
    return result


def _may_save(person: PersonPrincipal, agent_id: str) -> bool:
    return ("agents" if agent_id else "admin") in person.scopes


def _rule() -> dict[str, Any]:
    """Return the rule of the form. Raises Misfilled."""
    rule = {"effect": text("effect"), "match": needed("match", "Write which calls, such as bash(git push *).").strip()}
    return rule | ({"reason": text("reason").strip()} if text("reason").strip() else {})


def _policy() -> Any:
    """Return the policy of the form. Raises Misfilled."""
    try:
        return loads(text("policy"))
    except ValueError as fault:
        raise Misfilled({"policy": str(fault)}) from None


def _input(tool: str) -> Mapping[str, Any]:
    """Return the input of the call to try: JSON or, for a built-in tool, the text of its first argument. Raises Misfilled."""
    words = text("input")
    with suppress(Invalid):
        return parsing.json_object(words.encode())
    if tool in _PLAIN_ARGUMENTS:
        return {_PLAIN_ARGUMENTS[tool]: words}
    raise Misfilled({"input": 'Write the arguments as JSON, such as {"amount": 5}.'})


def _summary(outcome: PolicySimulation) -> str:
    """Return what the change would have done, in a sentence or two."""
    questions = sum(outcome.allow.then.get(name, 0) + outcome.deny.then.get(name, 0) for name in _DECIDED_BY_PEOPLE)
    against = outcome.allow.then.get("denied_by_person", 0)
    by_itself: tuple[Then, ...] = ("allowed_by_policy", "allowed_by_grant")
    more = sum(outcome.ask.then.get(name, 0) for name in by_itself)
    against_allows = outcome.deny.then.get("allowed_by_person", 0)
    count = number_with_noun
    parts = [f"Of {count(outcome.looked_at, 'call')}, {outcome.changed} would have another effect."]
    parts.append(f"It would have saved {count(questions, 'question')}.")
    if more:
        parts.append(f"It would have asked about {count(more, 'call')} that ran without asking.")
    if against_allows:
        parts.append(f"It would have denied {count(against_allows, 'call')} that people allowed.")
    parts.append(f"It contradicts {count(against, 'denial')}." if against else "It contradicts no denial.")
    return " ".join(parts)
