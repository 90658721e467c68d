"""The route of usage over time."""

from datetime import datetime
from typing import Literal, Self

from flask import Blueprint, Response
from pydantic import Field

from api.door import auth, parsing, spreadsheet
from api.door.paging import cursor_of, parts_of, value_of
from api.door.requests import Moment, Paged, PersonName
from api.door.responses import AgentId, Page, SessionId, ThreadId, Time
from api.door.routes import CSV, Door, opens, reads
from api.v1.spending.amounts import Usage
from models.audit.principal import Principal
from models.database import clock
from models.database.rows import Db
from models.database.transactions import transact
from models.errors import Invalid
from models.pure.pricing.money import spending
from models.pure.times import rfc3339
from models.session.spending.report import Report, ReportLine, lines

usage = Blueprint("usage", __name__, url_prefix="/v1/usage")

MOST_ROWS = 10_000
"""Lines of a table for a spreadsheet."""
_COLUMNS = (
    *("starting_at", "ending_at", "agent_id", "person", "session_id", "thread_id", "turn_id", "provider", "model"),
    *("requests", "unpriced_requests", "input_tokens", "cache_read_input_tokens", "output_tokens", "exact_list_cost"),
)
Group = Literal["agent", "person", "session", "thread", "turn", "provider", "model"]


class UsageList(Paged):
    """GET /v1/usage: sums of usage, by time and by the columns in `group_by`."""

    starting_at: Moment | None = None
    """Left out: 30 days before `ending_at`, or 1 day for a report that needs hours."""
    ending_at: Moment | None = None
    """The span ends before this time. Left out: now."""
    bucket_width: Literal["1d", "1h"] | None = None
    """The length of the span that one line covers: a day (UTC) or an hour. Left out: the whole time."""
    group_by: list[Group] = Field(default_factory=list, max_length=4)
    agent_id: str | None = Field(None, max_length=128)
    session_id: str | None = Field(None, max_length=128)
    person: PersonName | None = None
    provider: str | None = Field(None, max_length=128)
    model: str | None = Field(None, max_length=256)


class UsageLine(Usage):
    """The usage of one group in one span of time. A field by which the request does not group is null."""

    type: Literal["usage"]
    starting_at: Time
    ending_at: Time
    """The span ends before this time."""
    agent_id: AgentId | None
    person: str | None = Field(examples=["user:user_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"])
    """The person for whom the sessions ran. Null also for sessions that ran for no person."""
    session_id: SessionId | None
    thread_id: ThreadId | None
    turn_id: str | None = Field(examples=["turn_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"])
    provider: str | None = Field(examples=["anthropic"])
    model: str | None = Field(examples=["claude-opus-5-5"])

    @classmethod
    def of(cls, line: ReportLine) -> Self:
        """Return a line of a report."""
        groups = {name: line.groups.get(name) or None for name in ("agent_id", "session_id", "thread_id", "turn_id")}
        groups |= {name: line.groups.get(name) for name in ("provider", "model")}
        person = line.groups.get("person_id")
        span = {"starting_at": line.starting_at, "ending_at": line.ending_at}
        groups |= {"person": f"user:{person}" if person else None}
        return cls.model_validate({"type": "usage", **span, **groups, **spending(line.sums)})


@usage.get("")
@reads(UsageList, response=Page[UsageLine])
def index(db: Db, _principal: Principal, query: UsageList) -> Page[UsageLine]:
    """Sum up the usage of turns and its cost, by time, agent, person, session, thread, turn, provider or model.

    Times are rounded to whole days (UTC), or to hours where the report needs them: with a bucket width of 1h, or by session, thread
    or turn. Such a report spans at most 7 days, unless it names a session. Others span at most 366 days.
    """
    report = _report(db, query)
    rows = lines(db, report, query.limit + 1, _place(query.page, len(report.groups)) if query.page else None)
    more = len(rows) > query.limit
    rows = rows[: query.limit]
    return Page[UsageLine](data=[UsageLine.of(row) for row in rows], next_page=cursor_of(rows[-1].key) if more else None)


@usage.get("/csv")
@opens(Door(scopes=("read",), query=UsageList, media_type=CSV))
def table() -> Response:
    """Return the same as CSV.

    Has the first 10,000 lines, and a line of headers before them. `limit` and `page` change nothing.
    """
    principal = auth.authenticate("read")
    query = parsing.query(UsageList)
    rows = transact(principal.workspace_id, lambda db: lines(db, _report(db, query), MOST_ROWS))
    return spreadsheet.response("usage", _COLUMNS, (_row(UsageLine.of(row)) for row in rows))


def _row(line: UsageLine) -> list[object]:
    times = [rfc3339(line.starting_at), rfc3339(line.ending_at)]
    return times + [getattr(line, column) for column in _COLUMNS[2:]]


def _report(db: Db, query: UsageList) -> Report:
    """Return the report that a request names. Raises Invalid."""
    only = {
        "agent_id": query.agent_id,
        "session_id": query.session_id,
        "person_id": query.person.removeprefix("user:") if query.person else None,
        "provider": query.provider,
        "model": query.model,
    }
    return Report.of(
        clock.now(db),
        query.starting_at,
        query.ending_at,
        query.bucket_width,
        [group if group in {"provider", "model"} else f"{group}_id" for group in query.group_by],
        {column: value for column, value in only.items() if value is not None},
    )


def _place(cursor: str, groups: int) -> tuple[str, ...]:
    """Return the key in a cursor. Raises Invalid."""
    try:
        at, *values = parts_of(cursor)
        key = (value_of(datetime, at).isoformat(), *(value_of(str, value) for value in values))
        if len(values) != groups:
            raise ValueError(cursor)
    except (ValueError, TypeError, RecursionError):
        raise Invalid("page", "is not a cursor of this report: pass `next_page` unchanged, with the same `group_by`.") from None
    return key
