"""The page of suggestions: rules that would have answered questions as people did. Each leads to the simulation."""

from datetime import datetime

from api.desk.agents.tools import EFFECT_WORDS
from api.desk.policies.policies import DAYS, choices_of_agents
from api.desk.shell.blueprint import page
from api.door.framed import FramedPage, query_value
from api.v1.policy.routes import suggestions_for
from models.database import clock
from models.database.rows import Db
from models.operate.insights.suggestions import NEWEST
from models.people.principal import PersonPrincipal
from models.pure.policy.rules import Effect

_KINDS: tuple[tuple[Effect, str, str], ...] = (
    ("allow", "Ask less", "Calls that people always allowed. With the rule, they run without asking."),
    ("deny", "Deny at once", "Calls that people always denied. With the rule, nobody is asked, and the agent hears it at once."),
)


@page("/inbox/policies/suggestions", "policies", "read")
def suggested_rules(db: Db, person: PersonPrincipal) -> FramedPage:
    """Show the suggestions for all agents, or for the agent in the address."""
    agent_id = query_value("agent") or ""
    agents = choices_of_agents(db)
    result = suggestions_for(db, agent_id or None)
    return FramedPage(
        "policies/suggestions.html",
        suggestions=result,
        agents=agents,
        agent_id=agent_id,
        agent_name=dict(agents).get(agent_id, ""),
        kinds=_KINDS,
        effects=EFFECT_WORDS,
        newest=NEWEST,
        may_save="agents" in person.scopes,
        days=_days(clock.now(db), result.since),
    )


def _days(now: datetime, since: datetime | None) -> str:
    """Return the fewest days that a simulation may look back at, to see all calls of the suggestions."""
    return next((days for days in DAYS if since and (now - since).days < int(days)), DAYS[-1])
