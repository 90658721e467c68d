"""The names, for people to read, of what insights are about: of agents and people, who have ids, and of ways to decide."""

from collections.abc import Sequence

from models.database.rows import Db

CHANNELS = {
    "inbox": "Inbox",
    "link": "Link in a message",
    "slack": "Slack",
    "api": "API key",
    "grant": "A grant",
    "system": "Deadline or interrupt",
}
"""The ways by which approvals are closed."""
_SOURCES = {
    "person": "SELECT id, name FROM person WHERE id = ANY(%(ids)s)",
    "agent": """
        SELECT id, body->>'name' FROM agent JOIN agent_version ON agent_id = id AND agent_version.version = agent.version
        WHERE id = ANY(%(ids)s)
    """,
}

_NEWEST_AGENTS = """
    SELECT id, body->>'name' FROM agent JOIN agent_version ON agent_id = id AND agent_version.version = agent.version
    WHERE archived_at IS NULL ORDER BY agent.created_at DESC, id DESC LIMIT %(most)s
"""
MOST_CHOICES = 200


def titles(db: Db, group: str, names: Sequence[str]) -> dict[str, str]:
    """Return the title of each name of a group of `models.operate.insights.report.GROUPS`. One that is gone has its id."""
    result = {name: _title(group, name) for name in names}
    if group in _SOURCES:
        result |= dict(db.rows(_SOURCES[group], ids=list(names)))
    return result


def agents_in_use(db: Db) -> list[tuple[str, str]]:
    """Return the ids and names of the newest agents that are not archived, for a choice."""
    return [(agent_id, name) for agent_id, name in db.rows(_NEWEST_AGENTS, most=MOST_CHOICES)]


def _title(group: str, name: str) -> str:
    if group == "hour":
        return f"{name}:00"
    return CHANNELS.get(name, name) if group == "channel" else name
