"""The places of the desk: the pages to which the rail, the list of settings and the search lead.

A place appears as soon as its route exists, for the roles that may open it. To add a page, add its place here, and give its `@page`
the place's section.
"""

from dataclasses import dataclass

from flask import current_app

from models.people.principal import PersonPrincipal


@dataclass(frozen=True)
class Place:
    """One page that a person may go to."""

    section: str
    """The section of its pages: see `api.door.framed.FramedPages.page`."""
    label: str
    path: str
    glyph: str
    scope: str = "own or read"
    """What a role needs to open it, as in `@page`."""
    key: str = ""
    """The key that goes there, behind `g`."""
    words: str = ""
    """Further words by which the search finds the page."""
    purpose: str = ""
    """What the page is for, in a line."""

    def is_open_to(self, person: PersonPrincipal) -> bool:
        """True if the page exists, and the person's role may open it."""
        return not person.scopes.isdisjoint(self.scope.split(" or ")) and exists(self.path)

    def fits(self, text: str) -> bool:
        """True if each word of the text begins a word of the place."""
        words = f"{self.label} {self.words} {self.purpose}".lower().split()
        return all(any(word.startswith(part) for word in words) for part in text.lower().split())


RAIL = (
    Place("inbox", "Inbox", "/inbox", "inbox", key="i", words="approvals waiting decide", purpose="What waits for a person"),
    Place(
        "sessions", "Sessions", "/inbox/sessions", "sessions", key="s", words="runs conversations", purpose="What agents do and did"
    ),
    Place(
        "agents",
        "Agents",
        "/inbox/agents",
        "agent",
        "read",
        key="a",
        words="models tools",
        purpose="Who works here, with which tools",
    ),
    Place(
        "policies",
        "Policies",
        "/inbox/policies",
        "rules",
        "own or read",
        key="p",
        words="rules",
        purpose="What runs, asks, or is denied",
    ),
    Place("grants", "Grants", "/inbox/grants", "rules", key="r", words="always allow rules", purpose="What runs without asking"),
    Place(
        "insights",
        "Insights",
        "/inbox/insights",
        "chart",
        "read",
        key="n",
        words="analytics cost",
        purpose="How people decide, and what it costs",
    ),
    Place("audit", "Audit", "/inbox/audit", "audit", "admin", key="u", words="log acts seal", purpose="Who did what"),
    Place(
        "system",
        "System",
        "/inbox/system",
        "system",
        "admin",
        key="y",
        words="health queues workers",
        purpose="Whether everything runs",
    ),
)
"""The rail, from the top. Settings and the person stand below."""

SETTINGS = {
    "You": (
        Place("account", "Your account", "/inbox/account", "person", words="passkeys password sign-in", purpose="How you sign in"),
        Place(
            "channels",
            "Your channels",
            "/inbox/channels",
            "bell",
            "own",
            words="mail slack notifications",
            purpose="How Assent reaches you",
        ),
        Place("views", "Saved views", "/inbox/views", "inbox", words="filters lists", purpose="Your own lists of the inbox"),
        Place("keyboard", "Keyboard", "/inbox/keyboard", "grid", words="keys shortcuts accessibility", purpose="Which keys decide"),
    ),
    "Who decides": (
        Place(
            "people",
            "People",
            "/inbox/people",
            "person",
            "admin",
            words="members roles invite",
            purpose="Who is here, and may do what",
        ),
        Place(
            "groups",
            "Groups",
            "/inbox/groups",
            "people",
            "admin",
            words="teams approvers",
            purpose="Whom approvals name",
        ),
        Place(
            "approvers",
            "Approvers",
            "/inbox/approvers",
            "check",
            "admin",
            words="quorum four eyes who must approve",
            purpose="Who must approve every call that asks",
        ),
        Place(
            "workspace_channels",
            "Workspace channels",
            "/inbox/workspace/channels",
            "bell",
            "admin",
            words="mail slack notifications",
            purpose="Rooms that hear of every approval",
        ),
        Place(
            "denial_reasons",
            "Reasons for a denial",
            "/inbox/denial-reasons",
            "cross",
            "admin",
            words="deny message",
            purpose="What people can answer with one click",
        ),
    ),
    "Agents and programs": (
        Place(
            "servers",
            "Toolsets and MCP servers",
            "/inbox/servers",
            "function",
            "read",
            words="tools plugins",
            purpose="Which tools agents can have",
        ),
        Place("keys", "API keys", "/inbox/keys", "key", "admin", words="scopes programs", purpose="Programs that use Assent"),
        Place(
            "provider_keys",
            "Provider keys",
            "/inbox/provider-keys",
            "plug",
            "admin",
            words="models anthropic openai",
            purpose="Keys of the models",
        ),
        Place(
            "usage",
            "Usage and limits",
            "/inbox/usage",
            "coin",
            "admin",
            words="cost budget spend money",
            purpose="What it costs, and the most it may",
        ),
        Place(
            "webhooks",
            "Webhooks",
            "/inbox/webhooks",
            "webhook",
            "admin",
            words="events endpoints deliveries",
            purpose="Systems that hear of events",
        ),
    ),
}
"""The list of settings, from the top, by the heading of each part."""

ACTIONS = (
    Place("sessions", "Start a session", "/inbox/sessions/new", "plus", "sessions", words="new run agent"),
    Place("policies", "Suggested rules", "/inbox/policies/suggestions", "rules", "read", words="suggestions save questions"),
    Place("agents", "Create an agent", "/inbox/agents/new", "plus", "agents", words="new"),
    Place("servers", "Give a toolset or MCP server to an agent", "/inbox/servers/new", "plus", "agents", words="new add tools"),
    Place("people", "Invite a person", "/inbox/people/new", "plus", "admin", words="new add member"),
    Place("groups", "Create a group", "/inbox/groups/new", "plus", "admin", words="new"),
    Place("keys", "Create an API key", "/inbox/keys/new", "plus", "admin", words="new"),
    Place("provider_keys", "Store a provider key", "/inbox/provider-keys/new", "plus", "admin", words="new model"),
    Place("channels", "Add a channel of your own", "/inbox/channels/new", "plus", "own", words="new mail slack"),
    Place("workspace_channels", "Add a channel of the workspace", "/inbox/workspace/channels/new", "plus", "admin", words="new"),
    Place("webhooks", "Add a webhook", "/inbox/webhooks/new", "plus", "admin", words="new endpoint"),
    Place("usage", "Set a spend limit", "/inbox/usage/new", "plus", "admin", words="new budget money"),
    Place("audit", "Verify the audit", "/inbox/audit/verify", "audit", "admin", words="seal intact"),
    Place("halt", "Halt the workspace", "/inbox/halt", "stop", "admin", words="stop everything pause kill"),
    Place("words", "Words", "/inbox/words", "question", words="help glossary explain", purpose="What words mean"),
    Place("docs", "API reference", "/docs", "file", words="help openapi documentation", purpose="Every request of the API"),
)
"""What else the search leads to: forms, and help."""


def exists(path: str) -> bool:
    """True if the application has this route."""
    return path in _paths()


def _paths() -> frozenset[str]:
    """Return the paths of the application's routes."""
    paths: frozenset[str] | None = current_app.extensions.get("desk.paths")
    if paths is None:
        paths = current_app.extensions["desk.paths"] = frozenset(rule.rule for rule in current_app.url_map.iter_rules())
    return paths


def rail_of(person: PersonPrincipal) -> list[Place]:
    """Return the places of the rail that the person may open."""
    places = [place for place in RAIL if place.is_open_to(person)]
    has_policies = any(place.section == "policies" for place in places)
    return [place for place in places if place.section != "grants" or not has_policies]


def settings_of(person: PersonPrincipal) -> dict[str, list[Place]]:
    """Return the pages of settings that the person may open, by their heading."""
    parts = {heading: [place for place in part if place.is_open_to(person)] for heading, part in SETTINGS.items()}
    return {heading: part for heading, part in parts.items() if part}


def actions_of(person: PersonPrincipal) -> list[Place]:
    """Return the forms, and the pages of help, that the person may open."""
    return [place for place in ACTIONS if place.is_open_to(person)]


def home_of(person: PersonPrincipal, waiting: bool) -> str:
    """Return the page with which a person begins: what waits, for those who decide, and what happens, for those who do not.

    `waiting`: whether something waits for the person.
    """
    insights = next((place.path for place in rail_of(person) if place.section == "insights"), "")
    if "approvals" in person.scopes:
        return insights if insights and "admin" in person.scopes and not waiting else "/inbox"
    return insights if insights and "sessions" not in person.scopes else "/inbox/sessions"
