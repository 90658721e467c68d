"""Exporting a person's data: one JSON object, written piece by piece, with all that the workspace keeps about the person.

What the person did follows from the audit: each act of the person is exported with the message, decision or vote that it is about.
Transactions are small, so that a slow reader holds up nothing, and memory does not grow with the number of sessions.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

from models.audit import acts, text
from models.audit.principal import Principal
from models.database import clock
from models.database.daily_usage import DAYS
from models.database.rows import Db
from models.database.transactions import transact, transaction
from models.errors import NotFound, Unreadable
from models.people.person import Person
from models.pure.times import rfc3339
from models.session.approval.row import Approval
from models.session.approval.vote import Vote
from models.session.event.log import archived_at
from models.session.event.row import Event
from models.workspace import spend_sum

ROWS = 500
"""Rows of one table that are read at once."""
SCANNED = 5000
"""Acts of everybody that one statement reads."""
ACTS = 20
"""Acts of the person that are read at once with their messages, decisions and votes. Each may need a part of the archive."""


@dataclass(frozen=True)
class Part:
    """A list of the export: rows of one table about the person."""

    name: str
    source: str
    """The table, and what it is joined with."""
    condition: str
    columns: tuple[str, ...]
    key: tuple[str, ...] = ("id",)
    """Columns that order the rows."""

    def read(self, db: Db, after: Sequence[Any] | None, **values: Any) -> list[dict[str, Any]]:
        """Return the next rows after this key, as dictionaries by column."""
        key = ", ".join(self.key)
        behind = f"AND ({key}) > ({', '.join(f'%(after_{name})s' for name in self.key)})" if after else ""
        statement = f"""
            SELECT {", ".join(self.columns)} FROM {self.source} WHERE {self.condition} {behind} ORDER BY {key} LIMIT %(rows)s
        """  # noqa: S608 - names of our own
        cursor = {f"after_{name}": value for name, value in zip(self.key, after or (), strict=False)}
        return [dict(zip(self.columns, row, strict=True)) for row in db.rows(statement, rows=ROWS, **cursor, **values)]


_WITH_SUMS = f"""
    (SELECT id, scope_type, scope_id, period, amount, newest.spent, created_at FROM spend_limit {spend_sum.newest("spent")}) limits
"""  # noqa: S608 - names of our own
_USAGE = f"""
    (
        SELECT person_id, day, agent_id, provider, model, sum(requests)::bigint AS requests,
            sum(input_tokens)::bigint AS input_tokens, sum(output_tokens)::bigint AS output_tokens, sum(cost) AS cost
        FROM {DAYS} GROUP BY person_id, day, agent_id, provider, model
    ) usage
"""  # noqa: S608 - names of our own
_MINE = "person_id = %(person)s"
PARTS = (
    Part(
        *("sign_ins", "sign_in", _MINE),
        ("id", "method", "address", "user_agent", "created_at", "seen_at", "expires_at", "ended_at"),
    ),
    Part("passkeys", "passkey", _MINE, ("id", "name", "created_at", "used_at")),
    Part("accounts", "identity", _MINE, ("issuer", "subject", "created_at"), ("issuer", "subject")),
    Part("slack_users", "slack_user", _MINE, ("id", "team_id", "slack_id", "name", "linked_at")),
    Part(
        *("groups", "(SELECT m.*, g.name FROM membership m JOIN person_group g ON g.id = m.group_id) own", _MINE),
        ("group_id", "name", "created_at"),
        ("group_id",),
    ),
    Part(
        *("invitations", "invitation", "email = %(email)s"),
        ("id", "role", "group_ids", "invited_at", "expires_at", "accepted_at", "deleted_at"),
    ),
    Part(
        *("delegations", "delegation", "(from_person_id = %(person)s OR to_person_id = %(person)s)"),
        ("id", "from_person_id", "to_person_id", "group_id", "starts_at", "ends_at", "created_at", "accepted_at", "ended_at"),
    ),
    Part(
        *("channels", "channel", _MINE),
        ("id", "kind", "name", "address", "about", "timing", "quiet_from", "quiet_until", "time_zone", "state", "created_at"),
    ),
    Part("api_keys", "api_key", "%(person)s = ANY (makers)", ("id", "name", "created_at", "last_used_at", "revoked_at")),
    Part(
        *("spend_limits", _WITH_SUMS, "scope_type = 'user' AND scope_id = %(person)s"),
        ("id", "period", "amount", "spent", "created_at"),
    ),
    Part(
        *("usage", _USAGE, _MINE),
        ("day", "agent_id", "provider", "model", "requests", "input_tokens", "output_tokens", "cost"),
        ("day", "agent_id", "provider", "model"),
    ),
)


def export(workspace_id: str, person_id: str, *, by: Principal) -> Iterator[str]:
    """Record that a person's data is exported, and return the pieces of the JSON. Raises NotFound."""
    with transaction(workspace_id) as db:
        person = db.get(Person, person_id)
        if person is None:
            raise NotFound("user", person_id)
        [profile] = _PROFILE.read(db, None, person=person_id)
        acts.record(db, by, "person.exported", person_id, {})
        head = {"type": "personal_data", "exported_at": clock.now(db), "profile": profile}
    return _pieces(workspace_id, person, head)


def _pieces(workspace_id: str, person: Person, head: dict[str, Any]) -> Iterator[str]:
    yield _dumps(head).removesuffix("}")
    for part in PARTS:
        yield from _list(part.name, _rows(workspace_id, part, person=person.id, email=person.email))
    yield from _list("acts", _acts(workspace_id, f"user:{person.id}"))
    yield "}\n"


def _list(name: str, rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Yield a field of the object, a list, one row a line."""
    yield f",\n{json.dumps(name)}: ["
    apart = "\n"
    for row in rows:
        yield apart + _dumps(row)
        apart = ",\n"
    yield "]"


def _rows(workspace_id: str, part: Part, **values: Any) -> Iterator[dict[str, Any]]:
    after: list[Any] | None = None
    while True:
        with transaction(workspace_id) as db:
            rows = part.read(db, after, **{name: value for name, value in values.items() if f"%({name})s" in part.condition})
        yield from rows
        if len(rows) < ROWS:
            return
        after = [rows[-1][name] for name in part.key]


class _Place(NamedTuple):
    """An act's place in the order of the audit's key."""

    chain: str
    seq: int


def _acts(workspace_id: str, principal: str) -> Iterator[dict[str, Any]]:
    """Yield the person's acts, and those of API keys on the person's behalf, by chain."""
    last: _Place | None = _Place("", 0)
    while last is not None:
        with transaction(workspace_id) as db:
            for setting in _PATIENTLY:
                db.write(f"SET LOCAL {setting}")
            rows = db.rows(_SCAN, chain=last.chain, seq=last.seq, principal=principal, scanned=SCANNED)
        places = [_Place(chain, seq) for chain, seq, is_own in rows if is_own]
        for start in range(0, len(places), ACTS):
            some = places[start : start + ACTS]
            yield from transact(workspace_id, partial(_with_contents, places=some, principal=principal))
        last = _Place(*rows[-1][:2]) if rows else None


def _with_contents(db: Db, places: list[_Place], principal: str) -> list[dict[str, Any]]:
    """Return these acts, each with the message, decision or vote that it is about, if the session still has it."""
    rows = db.find(acts.Audit, _AT, chains=[place.chain for place in places], seqs=[place.seq for place in places])
    texts = text.of(db, [(row.chain, row.seq) for row in rows])
    subjects = {"chains": sorted({row.chain for row in rows}), "ids": [row.subject_id for row in rows]}
    messages = {event.id: event for event in db.find(Event, _MESSAGES, **subjects)}
    approvals = {row.id: row for row in db.find(Approval, "WHERE id = ANY(%(ids)s)", ids=subjects["ids"])}
    votes = db.find(Vote, "WHERE approval_id = ANY(%(ids)s) ORDER BY created_at, id", ids=subjects["ids"])
    own_votes = {vote.approval_id: vote for vote in votes if f"user:{vote.person_id}" == principal}
    exported = []
    for row in rows:
        act = {name: getattr(row, name) for name in ("at", "action", "subject_id", "address", "details")}
        act |= {"texts": texts.get((row.chain, row.seq), {}), "session_id": None if row.chain == row.workspace_id else row.chain}
        if row.action == "message.received":
            act |= _message(db, row, messages.get(row.subject_id))
        approval = approvals.get(row.subject_id) if row.action == "approval.decided" else None
        if approval and approval.decided_by == principal:
            act |= {"tool": approval.tool, "decision": approval.shown("decision")}
        if vote := own_votes.get(row.subject_id):
            act["vote"] = dict(vote.summary)
        exported.append(act)
    return exported


def _message(db: Db, row: acts.Audit, message: Event | None) -> dict[str, Any]:
    """Return the field of the message that an act is about, which may be in the archive or gone with its session; or its fault."""
    try:
        message = message or archived_at(db, row.chain, row.at, lambda event: event.id == row.subject_id)
    except Unreadable as refusal:
        return {"fault": str(refusal)}
    return {"message": message.body["content"]} if message else {}


def _dumps(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, date | Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no place in an export")


_WITH_ROLE = """
    (SELECT person.*, role, source, deactivated_at FROM person LEFT JOIN member ON member.person_id = person.id) own
"""
_PREFERENCES = ("decides_by_keys", "saved_views", "folded_groups")
_PROFILE = Part(
    *("profile", _WITH_ROLE, "id = %(person)s"),
    ("id", "email", "name", "role", "source", *_PREFERENCES, "created_at", "deactivated_at", "erased_at"),
)
# As for verifying: a small workspace in a large installation needs time, and the only good plan follows the primary key.
_PATIENTLY = ("statement_timeout = '60s'", "enable_sort = off", "enable_seqscan = off", "enable_bitmapscan = off")
_SCAN = """
    WITH span AS MATERIALIZED (
        SELECT chain, seq, principal = %(principal)s OR details->>'on_behalf_of' IS NOT DISTINCT FROM %(principal)s AS is_own
        FROM audit WHERE (chain, seq) > (%(chain)s, %(seq)s) ORDER BY chain, seq LIMIT %(scanned)s
    ), last AS (SELECT chain, seq FROM span ORDER BY chain DESC, seq DESC LIMIT 1)
    SELECT span.chain, span.seq, is_own FROM span, last WHERE is_own OR (span.chain, span.seq) = (last.chain, last.seq)
    ORDER BY span.chain, span.seq
"""
"""The person's acts among the next ones, and the last one, which says where to go on."""
_AT = """
    WHERE (chain, seq) IN (SELECT * FROM unnest(CAST(%(chains)s AS text[]), CAST(%(seqs)s AS bigint[]))) ORDER BY chain, seq
"""
_MESSAGES = "WHERE session_id = ANY(%(chains)s) AND type = 'user.message' AND id = ANY(%(ids)s)"
