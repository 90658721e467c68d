"""The filters of the audit's page. People type names; an address holds names or ids."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from urllib.parse import urlencode

from flask import request

from api.desk.audit import actions
from api.desk.audit.reading import ActQuery
from api.door.requests import EARLIEST
from models.database.rows import Db
from models.people.names import Names

FIELDS = ("about", "q", "who", "agent", "session", "action", "from", "to", "subject")
MOST_TEXT = 200
"""Characters of a filter."""
_SEARCHED = 2000
"""Names of a kind among which a typed one is looked for: the newest."""
_MOST_CHOICES = 200
_MOST_ALIKE = 8
_OF_BEFORE = {"principal": "who", "session_id": "session", "subject_id": "subject"}
"""Names of fields in addresses of earlier releases."""

_PEOPLE = """
    SELECT 'user:' || id, name, email FROM (
        SELECT person_id FROM member WHERE workspace_id = %(workspace)s ORDER BY person_id DESC LIMIT %(searched)s
    ) newest CROSS JOIN LATERAL (SELECT id, name, email FROM person WHERE id = person_id LIMIT 1) person
    UNION ALL (
        SELECT 'api_key:' || id, name, 'API key' FROM api_key WHERE workspace_id = %(workspace)s ORDER BY id DESC LIMIT %(searched)s
    )
"""
_AGENTS = """
    SELECT a.id, v.name, '' FROM (SELECT id, version FROM agent ORDER BY created_at DESC, id DESC LIMIT %(searched)s) a
    CROSS JOIN LATERAL (SELECT body->>'name' AS name FROM agent_version WHERE agent_id = a.id AND version = a.version LIMIT 1) v
"""
_SESSIONS = """
    SELECT id, title, to_char(created_at AT TIME ZONE 'UTC', 'FMDD Mon, HH24:MI')
    FROM (SELECT id, title, created_at FROM session ORDER BY created_at DESC, id DESC LIMIT %(searched)s) newest
    WHERE title IS NOT NULL
"""
_LOOK_UPS = {
    "who": (_PEOPLE, "Nobody here has this name", "Choose somebody from the list, or type an e-mail address."),
    "agent": (_AGENTS, "No agent has this name", "Choose one from the list."),
    "session": (_SESSIONS, "No session has this title", "Choose one from the list, or paste a session's id."),
}


@dataclass(frozen=True)
class Fault:
    """Why a filter is not clear."""

    text: str
    choices: Sequence[tuple[str, str]] = ()
    """What could be meant, each with an address."""


@dataclass
class Filters:
    """The filters of a page, as its address has them."""

    values: dict[str, str]
    ids: dict[str, Sequence[str]] = field(default_factory=dict)
    """What typed names mean, by field."""
    names: dict[str, str] = field(default_factory=dict)
    """The names of what was chosen by id, by field."""
    faults: dict[str, Fault] = field(default_factory=dict)

    @classmethod
    def of_request(cls, db: Db) -> "Filters":
        """Return the filters of the request's address, with what the names in it mean."""
        values = {}
        for name in FIELDS:
            former = next((old for old, new in _OF_BEFORE.items() if new == name), name)
            value = " ".join((request.args.get(name) or request.args.get(former) or "").replace("\0", " ").split())[:MOST_TEXT]
            if value:
                values[name] = value
        filters = cls(values)
        for name in _LOOK_UPS:
            if name in values:
                filters._look_up(db, name)
        filters._check_action()
        filters._check_days()
        return filters

    def path(self, **changes: str | None) -> str:
        """Return the page's address with other filters. None leaves one out."""
        query = {name: value for name, value in {**self.values, **changes}.items() if value}
        return f"/inbox/audit?{urlencode(query)}" if query else "/inbox/audit"

    @property
    def about(self) -> str:
        """The group of actions; `all` for routine ones as well; empty for all but these."""
        value = self.values.get("about", "")
        return value if value in actions.GROUPS or value == "all" else ""

    @property
    def group(self) -> str:
        """The title of the group of actions; empty for none and for all."""
        return actions.GROUPS.get(self.about, "")

    @property
    def is_of_group_alone(self) -> bool:
        """True if the group of actions is all that is chosen."""
        return bool(self.group) and set(self.values) == {"about"}

    @property
    def is_narrow(self) -> bool:
        """True if a filter is set, besides the group of actions and the words."""
        return bool(set(self.values) - {"about", "q"})

    def chips(self) -> list[tuple[str, str]]:
        """Return each filter in words, with the address of the page without it."""
        return [(self._in_words(name), self.path(**{name: None})) for name in self.values if name != "about"]

    def query(self) -> ActQuery:
        """Return the acts that fit."""
        of_group: Sequence[str] = actions.actions_about(self.about)
        if action := self.values.get("action"):
            of_group = [action]
        return ActQuery(
            actions=of_group,
            routine=self.about == "all",
            who=self.ids.get("who", ()),
            agent=next(iter(self.ids.get("agent", ())), ""),
            chain=next(iter(self.ids.get("session", ())), ""),
            subject=self.values.get("subject", ""),
            words=self.values.get("q", ""),
            since=self._day("from"),
            until=self._day("to", days=1),
        )

    def choices(self, db: Db) -> dict[str, list[tuple[str, str]]]:
        """Return names to choose from, by field, each with what tells it apart."""
        workspace = db.workspace_id
        lists = {name: db.rows(_LOOK_UPS[name][0], workspace=workspace, searched=_MOST_CHOICES) for name in _LOOK_UPS}
        result = {}
        for name, rows in lists.items():
            counts: dict[str, int] = {}
            for _id, title, _more in rows:
                counts[title] = counts.get(title, 0) + 1
            unique = [(more if counts[title] > 1 and name == "who" else title, more) for _id, title, more in rows]
            result[name] = sorted(dict(unique).items(), key=lambda choice: choice[0].casefold())
        return result

    def _look_up(self, db: Db, name: str) -> None:
        """Note what a name means, or why that is not clear."""
        text, (sql, nobody, remedy) = self.values[name], _LOOK_UPS[name]
        if self._is_id(db, name, text):
            return
        rows = db.rows(sql, workspace=db.workspace_id, searched=_SEARCHED)
        lower = text.casefold()
        fits = [row for row in rows if lower in {str(row[1]).casefold(), str(row[2]).casefold()}]
        fits = fits or [row for row in rows if lower in f"{row[1]} {row[2]}".casefold()]
        if len(fits) == 1:
            self.ids[name], self.names[name] = [fits[0][0]], fits[0][1]
        elif fits:
            alike = [(", ".join(filter(None, row[1:])), self.path(**{name: row[0]})) for row in fits[:_MOST_ALIKE]]
            more = f" Here are the newest {_MOST_ALIKE}." if len(fits) > _MOST_ALIKE else ""
            self.faults[name] = Fault(f"“{text}” fits {len(fits)}. Which one?{more}", alike)
        else:
            self.faults[name] = Fault(f"{nobody}: “{text}”. {remedy}")

    def _is_id(self, db: Db, name: str, text: str) -> bool:
        """Note what an id means, or `Assent` for its own acts. Returns False for any other text."""
        if name == "who" and text.casefold() == "assent":
            self.ids[name], self.names[name] = ["system:"], "Assent"
        elif name == "who" and text.partition(":")[0] in _KINDS and ":" in text:
            self.ids[name], self.names[name] = [text], Names.of(db, [text])[text]
        elif name == "session" and text.startswith("sesn_") and " " not in text:
            title = db.value("SELECT title FROM session WHERE id = %(id)s", id=text)
            self.ids[name], self.names[name] = [text], title or "a session without a title"
        elif name == "agent" and text.startswith("agent_") and " " not in text:
            rows = db.rows(f"{_AGENTS} WHERE a.id = %(id)s", searched=_SEARCHED, id=text)
            self.ids[name], self.names[name] = [text], rows[0][1] if rows else text
        return name in self.ids

    def _in_words(self, name: str) -> str:
        value = self.names.get(name, self.values[name])
        match name:
            case "q":
                return f"“{value}”"
            case "action" if name not in self.faults:
                return actions.title(value)
            case "subject":
                return "About one thing"
            case "from" | "to" if name not in self.faults:
                day = date.fromisoformat(value)
                return f"{name.capitalize()} {day:%A}, {day.day} {day:%B} {day.year}"
        return f"{name.capitalize()}: {value}"

    def _day(self, name: str, days: int = 0) -> datetime | None:
        value = self.values.get(name)
        if not value or name in self.faults:
            return None
        return datetime.combine(date.fromisoformat(value), time(), UTC) + timedelta(days=days)

    def _check_action(self) -> None:
        action = self.values.get("action")
        if action and action not in actions.ACTS:
            self.faults["action"] = Fault(f"No action has this name: “{action}”. Choose one from the list.")

    def _check_days(self) -> None:
        for name in ("from", "to"):
            value = self.values.get(name)
            if value and not _is_day(value):
                self.faults[name] = Fault(f"“{value}” is no day. Write it as 2026-11-20.")
        start, end = self._day("from"), self._day("to", days=1)
        if not self.faults and start and end and start >= end:
            self.faults["to"] = Fault("This day is before the first one.")


_KINDS = frozenset({"user", "api_key", "grant", "link", "system", "person"})


def _is_day(text: str) -> bool:
    try:
        return EARLIEST.year < date.fromisoformat(text).year < 9000
    except ValueError:
        return False
