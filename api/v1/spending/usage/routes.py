"""The route of usage over time."""

from datetime import datetime

from flask import Blueprint

from api.door.paging import cursor_of, parts_of
from api.door.responses import Page
from api.door.routes import reads
from api.v1.spending.usage.requests import UsageList
from api.v1.spending.usage.responses import UsageLine
from models.audit.principal import Principal
from models.database import clock
from models.database.rows import Db
from models.errors import Invalid
from models.session.spending.report import Report, lines

usage = Blueprint("usage", __name__, url_prefix="/v1/usage")


@usage.get("")
@reads(UsageList, response=Page[UsageLine])
def index(db: Db, _principal: Principal, query: UsageList) -> Page[UsageLine]:
    """Sum up the usage of turns and its cost, by time, agent, person, session, thread, turn, provider or model.

    Times are rounded to whole days (UTC), or to hours where the report needs them: with a bucket width of 1h, or by session, thread
    or turn. Such a report spans at most 7 days, unless it names a session. Others span at most 366 days.
    """
    only = {
        "agent_id": query.agent_id,
        "session_id": query.session_id,
        "person_id": query.person.removeprefix("user:") if query.person else None,
        "provider": query.provider,
        "model": query.model,
    }
    report = Report.of(
        clock.now(db),
        query.starting_at,
        query.ending_at,
        query.bucket_width,
        [group if group in {"provider", "model"} else f"{group}_id" for group in query.group_by],
        {column: value for column, value in only.items() if value is not None},
    )
    rows = lines(db, report, query.limit + 1, _place(query.page, len(report.groups)) if query.page else None)
    more = len(rows) > query.limit
    rows = rows[: query.limit]
    return Page[UsageLine](data=[UsageLine.of(row) for row in rows], next_page=cursor_of(rows[-1].key) if more else None)


def _place(cursor: str, groups: int) -> tuple[str, ...]:
    """Return the key in a cursor. Raises Invalid."""
    try:
        at, *values = parts_of(cursor)
        whole = len(values) == groups and all(isinstance(value, str) and "\0" not in value for value in values)
        if not whole or datetime.fromisoformat(at).tzinfo is None:
            raise ValueError(cursor)
    except (ValueError, TypeError, RecursionError):
        raise Invalid("page", "is not a cursor of this report: pass `next_page` unchanged, with the same `group_by`.") from None
    return (at, *values)
