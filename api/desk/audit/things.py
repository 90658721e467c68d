"""The names of what acts are about: approvals, calls, sessions, agents, people and the rest, as pages show them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.desk.rendering.gist import gist, of_call, one_line
from models.audit.acts import Audit
from models.briefing.outcome import CallOutcome, outcomes_of
from models.briefing.tool_name import tool_in_words
from models.database.rows import Db
from models.people.names import Names
from models.pure.masking import Echoes
from models.pure.text.visible import visible
from models.session.approval.row import Approval

MOST = 100
"""Most characters of a name in a sentence."""


@dataclass(frozen=True)
class Thing:
    """What an act is about."""

    name: str
    path: str = ""
    """The address of its page; empty if it has none."""
    is_code: bool = False
    """True for a command, a path or a pattern."""
    more: str = ""
    """What follows the name: the size of a change, or arguments."""
    agent_id: str | None = None
    """Of an approval: the agent that asks."""


@dataclass(frozen=True)
class CallName:
    """A call in words."""

    tool: str
    gist: str
    outcome: CallOutcome | None


_NAMES = {
    "person": ("SELECT id, name FROM person WHERE id = ANY(%(ids)s)", "/inbox/people#"),
    "group": ("SELECT id, name FROM person_group WHERE id = ANY(%(ids)s)", "/inbox/groups#"),
    "api_key": ("SELECT id, name FROM api_key WHERE id = ANY(%(ids)s)", "/inbox/keys#"),
    "webhook": ("SELECT id, coalesce(nullif(name, ''), url) FROM endpoint WHERE id = ANY(%(ids)s)", "/inbox/webhooks/"),
    "channel": (
        "SELECT id, coalesce(nullif(name, ''), nullif(address, ''), 'for everyone') FROM channel WHERE id = ANY(%(ids)s)",
        "",
    ),
    "environment": ("SELECT id, name FROM environment WHERE id = ANY(%(ids)s)", ""),
    "provider_key": ("SELECT id, provider FROM provider_key WHERE id = ANY(%(ids)s)", "/inbox/provider-keys#"),
}
"""By the noun of an action: the names of its subjects, and the address of their page."""
_AGENTS = """
    SELECT a.id, v.body->>'name' FROM agent a JOIN agent_version v ON v.agent_id = a.id AND v.version = a.version
    WHERE a.id = ANY(%(ids)s)
"""
_SESSIONS = "SELECT id, title, agent_id FROM session WHERE id = ANY(%(ids)s)"
_MOST_READ = 20_000
"""Bytes of an input, as it is stored. A call with a longer one is named by its tool alone."""
_CALLS = f"""
    SELECT call.id, call.name, secrets, CASE
        WHEN proposed_input IS NULL AND pg_column_size(coalesce(shown_input, input)) < {_MOST_READ}
        THEN coalesce(shown_input, input)
    END
    FROM tool_call call LEFT JOIN call_input ON tool_call_id = call.id WHERE call.id = ANY(%(ids)s)
"""  # noqa: S608 - a number of our own
_GONE = {"user": "a person who is gone", "api_key": "an API key that is gone", "link": "somebody with a link"}
_TEXTS = ("name", "to", "url", "email", "address")
"""The texts of an act that name what it is about, if that is gone."""


@dataclass(frozen=True)
class Things:
    """What the acts of a page are about, by id."""

    principals: Names
    subjects: Mapping[str, Thing]
    calls: Mapping[str, CallName]
    sessions: Mapping[str, Thing]
    agents: Mapping[str, Thing]

    @classmethod
    def of(cls, db: Db, acts: Sequence[Audit]) -> "Things":
        """Return the names for these acts. Reads once for each kind of thing."""
        of_approvals = sorted({act.subject_id for act in acts if act.subject_id.startswith("appr_")})
        approvals = db.find(Approval, "WHERE id = ANY(%(ids)s)", ids=of_approvals) if of_approvals else []
        session_ids = {id_ for act in acts for id_ in (act.chain, act.subject_id) if id_.startswith("sesn_")}
        sessions = db.rows(_SESSIONS, ids=sorted(session_ids)) if session_ids else []
        agent_ids = {*(row.agent_id for row in approvals), *(agent for *_, agent in sessions), *_ids(acts, "agent")}
        agent_ids |= _scopes(acts, "agent")
        names = db.rows(_AGENTS, ids=sorted(filter(None, agent_ids))) if agent_ids else []
        agents = {id_: Thing(_short(name), f"/inbox/agents/{id_}") for id_, name in names}
        of_sessions = {
            id_: Thing(_short(title) if title else _of(agents.get(agent)), f"/inbox/sessions/{id_}", agent_id=agent)
            for id_, title, agent in sessions
        }
        people = {str(act.details.get(name)) for act in acts for name in ("user_id", "from", "to", "by")} - {"None"}
        people |= _scopes(acts, "user")
        principals = [act.principal for act in acts] + [f"user:{id_.removeprefix('user:')}" for id_ in people]
        return cls(
            Names.of(db, principals),
            {row.id: _approval(row) for row in approvals} | _names_of(db, acts) | of_sessions | agents,
            _calls(db, acts),
            of_sessions,
            agents,
        )

    def subject(self, act: Audit, texts: Mapping[str, str]) -> Thing | None:
        """Return what the act was done to. What is gone has the name that the act itself keeps."""
        noun = act.action.partition(".")[0]
        if act.principal == f"user:{act.subject_id}" or noun in {"workspace", "policy", "audit"}:
            return None
        if noun == "grant":
            covers = " ".join(filter(None, (texts.get("covers"), texts.get("reach"))))
            return Thing(_short(covers) or str(act.details.get("tool", "")), "/inbox/grants")
        if thing := self.subjects.get(act.subject_id):
            return thing
        if noun == "provider_key":
            return Thing(str(act.details.get("provider", "")))
        name = next((texts[name] for name in _TEXTS if texts.get(name)), "")
        return Thing(_short(name)) if name else None

    def principal(self, name: str) -> str:
        """Return a principal's name; of one that is gone what it was."""
        return principal_in_words(self.principals, name)

    def scope(self, act: Audit) -> str:
        """Return whose spend the limit of the act bounds."""
        id_ = str(act.details.get("scope_id"))
        match act.details.get("scope"):
            case "agent":
                return self.agents[id_].name if id_ in self.agents else "an agent that is gone"
            case "user":
                return self.principal(f"user:{id_}")
        return "all sessions"

    def agent_of(self, act: Audit) -> Thing | None:
        """Return the agent that asked or worked; None for an act outside sessions, and of a session that is gone."""
        of = self.subjects.get(act.subject_id) or self.sessions.get(act.chain)
        id_ = of.agent_id if of and of.agent_id else getattr(self.sessions.get(act.chain), "agent_id", None)
        return self.agents.get(id_ or "")


def principal_in_words(names: Names, principal: str) -> str:
    """Return a principal's name; of one that is gone what it was."""
    words = names[principal]
    kind, _, id_ = principal.partition(":")
    return _GONE.get(kind, f"{id_} at the command line") if words == principal and kind in {*_GONE, "person"} else words


def session_names(db: Db, ids: Collection[str]) -> dict[str, str]:
    """Return the names of these sessions by id: `“Release 4.2”`, or `a session of Agent`. What is gone is left out."""
    rows = db.rows(_SESSIONS, ids=sorted(ids)) if ids else []
    agent_ids = sorted({agent for *_, agent in rows if agent})
    agents = {id_: Thing(_short(name)) for id_, name in db.rows(_AGENTS, ids=agent_ids)} if agent_ids else {}
    return {id_: f"“{_short(title)}”" if title else _of(agents.get(agent)) for id_, title, agent in rows}


def _approval(row: Approval) -> Thing:
    line = gist(row)
    return Thing(_short(line.text), f"/inbox/approvals/{row.id}", line.is_code, _short(line.more), row.agent_id)


def _names_of(db: Db, acts: Sequence[Audit]) -> dict[str, Thing]:
    result: dict[str, Thing] = {}
    for noun, (sql, path) in _NAMES.items():
        if ids := _ids(acts, noun):
            result |= {
                id_: Thing(_short(name), f"{path}{id_}" if path else "") for id_, name in db.rows(sql, ids=ids) if name is not None
            }
    return result


def _calls(db: Db, acts: Sequence[Audit]) -> dict[str, CallName]:
    ids = _ids(acts, "tool_call")
    rows = db.rows(_CALLS, ids=ids) if ids else []
    outcomes = outcomes_of(db, [act.subject_id for act in acts if act.action == "tool_call.finished"])
    return {
        id_: CallName(tool_in_words(name), _short(_gist(name, arguments, secrets)), outcomes.get(id_))
        for id_, name, secrets, arguments in rows
    }


def _gist(tool: str, arguments: dict[str, Any] | None, secrets: Iterable[str] | None) -> str:
    """Return the command, file or pattern of a call with its secrets masked; empty for calls of other tools."""
    return one_line(Echoes(secrets or ()).text(" ".join(of_call(tool, arguments or {})))) if arguments else ""


def _of(agent: Thing | None) -> str:
    return f"a session of {agent.name}" if agent else "a session"


def _short(text: str | None) -> str:
    line = visible(" ".join(str(text or "").split()))
    if len(line) <= MOST:
        return line
    words = line[: MOST - 1].rpartition(" ")[0].rstrip(",")
    return f"{words if len(words) > MOST / 2 else line[: MOST - 1]}…"


def _scopes(acts: Iterable[Audit], scope: str) -> set[str]:
    """Return the ids of the agents or people whose spend limits the acts are about."""
    return {str(act.details.get("scope_id")) for act in acts if act.details.get("scope") == scope}


def _ids(acts: Iterable[Audit], noun: str) -> list[str]:
    return sorted({act.subject_id for act in acts if act.action.partition(".")[0] == noun})
