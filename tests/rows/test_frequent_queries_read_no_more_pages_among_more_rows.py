"""Frequent queries read at most twice as many pages among a hundred times as many rows of others."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import psycopg
import pytest
from doors.served import key
from own_database import DatabaseUrls
from people import group, member
from psycopg import sql
from rows import crowd
from rows.crowd import Admin, pages
from rows.spending import QUOTE, begin, limit
from rows.stage import Stage, call, say
from rows.voting import vote

from api import create_app
from api.desk import waiting_list as desk_list
from api.desk.audit import actions
from api.desk.audit import reading as audit
from api.desk.inbox.list import NEWEST as NEWEST_DECIDED
from api.desk.search import search
from api.desk.sessions import sessions as desk_sessions
from api.desk.sessions import times
from api.desk.sessions.timeline import Timeline
from api.desk.shell import viewing
from api.door.paging import MOST_COUNTED, Selection, page
from api.v1.approvals import visible, waiting_list
from api.v1.sessions.requests import SessionList
from api.v1.sessions.routes import NEWEST, selected
from models.database.transactions import dispose, transaction
from models.errors import NotFound
from models.operate import due, readiness
from models.operate.doctor import sessions as doctor
from models.operate.insights import report
from models.operate.metrics import reading as metrics
from models.session.approval.grant import Grant
from models.session.event.last_lines import first_and_last_lines
from models.session.event.log import EventFilter, events_before
from models.session.row import AT_WORK, NEEDS_ATTENTION, Session
from models.session.thread.row import Thread, own_id

FEW, MANY = 100, 10_000
HEIGHT = 10
"""Pages that a query may read in addition, since an index of more rows has one more level."""
RANGES = 2 * 32
"""Pages of the two ranges of acts that a time is in: their index knows the times of each 32 pages."""
TABLES = "approval, approval_grant, attempt, audit, call_input, daily_usage, event, session, tool_call, turn"
VACUUM = f"VACUUM ANALYZE {TABLES}"


@pytest.fixture
def admin(database_urls: DatabaseUrls) -> Iterator[Admin]:
    """A connection that fills the tables. Statements are planned as in production, and not once per connection."""
    with psycopg.connect(database_urls.admin, autocommit=True) as db:
        database = sql.Identifier(db.info.dbname)
        db.execute(sql.SQL("ALTER DATABASE {} SET plan_cache_mode = auto").format(database))
        dispose()
        yield db
        db.execute(sql.SQL("ALTER DATABASE {} RESET plan_cache_mode").format(database))
    dispose()


def check(
    admin: Admin, fill: Callable[..., None], *queries: Callable[[], object], height: int = HEIGHT, at_first: int = FEW
) -> None:
    """Assert the promise for each of the queries among the rows of `fill`."""
    admin.execute(f"VACUUM FULL {TABLES}")  # the space that other tests left would change how these are read
    fill(count=at_first)
    admin.execute(VACUUM)
    few = list(map(pages, queries))
    fill(count=MANY - at_first, first=at_first + 1)
    admin.execute(VACUUM)
    many = list(map(pages, queries))
    for number, (before, after) in enumerate(zip(few, many, strict=True)):
        assert after <= 2 * before + height, f"query {number}: {before} pages among {at_first} rows, {after} among {MANY}"


def reading(stage: Stage, verb: Callable[[Any], object]) -> Callable[[], None]:
    """A query in a transaction of its own."""

    def read() -> None:
        with transaction(stage.workspace_id) as db:
            verb(db)

    return read


def test_the_sessions_that_acted_are_found_among_the_acts_of_long_ago(stage: Stage, admin: Admin) -> None:
    session = stage.propose(stage.session()).session_id
    since = doctor.now() - doctor.LOOK_BACK

    def read() -> None:
        assert list(doctor.acted(since)) == [[session]]
        assert doctor.faults([session]) == []

    check(admin, partial(crowd.acts_of_long_ago, admin, stage.workspace_id), read, height=HEIGHT + RANGES)


def test_the_grants_of_a_call_are_found_among_those_of_other_sessions(stage: Stage, admin: Admin) -> None:
    session = stage.session(bash="always_ask")
    stage.confirm(session, stage.propose(session).id, scope="session")
    fill = partial(crowd.grants_of_others, admin, session)
    thread = stage.thread(session)
    check(admin, fill, reading(stage, lambda db: Grant.to_use(db, thread, {"bash"})))


def test_an_approver_s_sessions_are_found_among_the_approvals_of_others(stage: Stage, admin: Admin) -> None:
    anna, ben = member(stage, "approver"), member(stage, "approver")
    session = stage.session(bash="always_ask", approval={"approvers": [f"user:{ben.person_id}"]})
    stage.propose(session)

    def read(db: Any) -> None:
        with pytest.raises(NotFound):
            visible.check_session(db, anna.principal, session)

    check(admin, partial(crowd.approvals_of_others, admin, session), reading(stage, read))


def test_what_waits_for_a_person_is_counted_to_a_hundred(stage: Stage, admin: Admin) -> None:
    anna, session = member(stage, "approver"), stage.session(bash="always_ask")
    stage.propose(session)

    def read(db: Any) -> None:
        count = waiting_list.waiting_for(db, anna.person_id).count(db)
        assert (count, str(count)) == (MOST_COUNTED, "99+")

    check(admin, partial(crowd.approvals_of_others, admin, session), reading(stage, read))


def test_what_a_person_decided_on_a_day_is_found_among_the_decisions_of_others(stage: Stage, admin: Admin) -> None:
    anna, session = member(stage, "admin"), stage.session(bash="always_ask")
    stage.confirm(session, stage.propose(session).id)
    theirs = stage.propose(stage.session(bash="always_ask"))
    [own] = stage.approvals(theirs.session_id)
    vote(stage, anna, own)
    day = "2020-02-20"
    admin.execute("UPDATE approval SET decided_at = %s WHERE id = %s", (day, own.id))

    def read(chosen: dict[str, str | None], db: Any) -> None:
        selection = desk_list.matching(db, anna.principal, chosen, mine=False, status="decided")
        rows, _ = page(db, selection, NEWEST_DECIDED, 25, None)
        assert [row.id for row in rows] == [own.id]

    filters: list[dict[str, str | None]] = [{"person": anna.person_id}, {"day": day}, {"person": anna.person_id, "day": day}]
    queries = [reading(stage, partial(read, chosen)) for chosen in filters]
    check(admin, partial(crowd.approvals_of_others, admin, session), *queries)


@pytest.mark.parametrize("groups", [0, 2])
def test_what_waits_for_a_person_is_found_among_what_waits_for_others(stage: Stage, admin: Admin, groups: int) -> None:
    names = [group(stage) for _ in range(groups)]
    anna, ben = member(stage, "approver", groups=names[:1]), member(stage, "approver", groups=names[1:])
    approvers = [[f"user:{ben.person_id}"], [f"user:{anna.person_id}", *(f"group:{name}" for name in names)]]
    sessions = [stage.session(bash="always_ask", approval={"approvers": each}) for each in approvers]
    for session in sessions:
        stage.propose(session)

    def read(db: Any) -> None:
        waiting = waiting_list.waiting_for(db, anna.person_id)
        assert waiting.count(db) == 1
        [[approval], _] = page(db, waiting, waiting_list.OLDEST_DEADLINE, 20, None)
        assert approval.session_id == sessions[1]

    check(admin, partial(crowd.approvals_of_others, admin, sessions[0]), reading(stage, read))


@pytest.mark.parametrize(("waiting", "custom"), [("client", ("look_up",)), ("none", ())])
def test_a_session_is_found_by_whom_it_waits_for(stage: Stage, admin: Admin, waiting: Any, custom: tuple[str, ...]) -> None:
    sought, other = stage.session(custom=custom), stage.session(bash="always_ask")
    if custom:
        stage.propose(sought, call("look_up", n=1))
    stage.propose(other)

    def read(db: Any) -> None:
        [[session], _] = page(db, selected(SessionList(waiting=waiting)), NEWEST, 20, None)
        assert session.id == sought

    check(admin, partial(crowd.sessions_of_others, admin, other), reading(stage, read))


def test_sessions_of_an_agent_are_sought_among_the_newest_alone(
    stage: Stage, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_sessions, "SEARCHED", FEW // 2)
    anna, session = member(stage, "admin").principal, stage.session()

    def read(db: Any) -> None:
        selection = desk_sessions.filtered(db, anna, {"agent": "agent_nobody", "person": anna.id, "since": None})
        assert page(db, selection, NEWEST, 50, None) == ([], None)

    check(admin, partial(crowd.sessions_of_others, admin, session), reading(stage, read))


@pytest.mark.parametrize("condition", [AT_WORK, NEEDS_ATTENTION])
def test_sessions_of_a_state_are_found_among_those_that_are_done(stage: Stage, admin: Admin, condition: str) -> None:
    sought, done = stage.session(), stage.session()
    for session_id in (sought, done):
        stage.message(session_id)
    if condition == NEEDS_ATTENTION:
        stage.reply(sought, say("No."), stop_reason="refusal")
    stage.reply(done, say("Done."))

    def read(db: Any) -> None:
        selection = Selection(Session).where(condition)
        assert selection.count(db) == 1
        [[session], _] = page(db, selection, NEWEST, 20, None)
        assert session.id == sought

    check(admin, partial(crowd.sessions_of_others, admin, done), reading(stage, read))


def test_sessions_that_failed_are_counted_to_a_hundred(stage: Stage, admin: Admin) -> None:
    refused = stage.session()
    stage.message(refused)
    stage.reply(refused, say("No."), stop_reason="refusal")
    viewer = member(stage, "viewer").principal

    def read(db: Any) -> None:
        assert viewing.frame(db, viewer)["sessions_unfinished"] == MOST_COUNTED

    with create_app().test_request_context("/inbox"):
        check(admin, partial(crowd.sessions_of_others, admin, refused), reading(stage, read))


def test_a_page_of_the_audit_is_found_among_the_acts_of_others(stage: Stage, admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "SEARCHED", FEW // 4)
    filters: list[dict[str, Any]] = [
        *({}, {"routine": True}, {"words": "never said"}, {"agent": "agent_nobody"}, {"chain": "sesn_x1"}),
        *({"actions": actions.actions_about(subject)} for subject in ("decisions", "settings", "work")),
        {"who": ["user:nobody"], "routine": True},
    ]
    queries = [reading(stage, partial(audit.read, query=audit.ActQuery(**each), cursor=None)) for each in filters]
    # Some of these read up to 400 pages, which a table of a hundred rows does not have.
    fill = partial(crowd.acts_of_a_day, admin, stage.workspace_id)
    check(admin, fill, *queries, height=HEIGHT + RANGES, at_first=1_000)


def test_a_search_looks_at_no_more_rows_than_its_bound(stage: Stage, admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SEARCHED", FEW)
    anna, session = member(stage, "admin").principal, stage.session(bash="always_ask")
    stage.propose(session)

    def fill(count: int, first: int = 1) -> None:
        crowd.approvals_of_others(admin, session, count, first)
        crowd.sessions_of_others(admin, session, count, first)

    with create_app().app_context():
        check(admin, fill, reading(stage, lambda db: search.matches(db, anna, "never said")))


def test_the_newest_lines_of_a_session_are_read_alone(stage: Stage, admin: Admin) -> None:
    session_id = stage.session(bash="always_allow", max_turns=99)
    stage.message(session_id, "x" * 1000)
    for _ in range(12):
        [tool_call] = stage.reply(session_id, say("I look."), call())
        stage.run_call(tool_call)
    thread = stage.thread(session_id).id

    def read(db: Any) -> None:
        rows, has_more = events_before(db, EventFilter(db.get_one(Session, session_id), thread), None, 60)
        assert has_more
        assert [line.css for line in Timeline.of(db, rows[::-1], thread).lines].count("call") > 5
        assert first_and_last_lines(db, [session_id]) == {session_id: ("x" * 200, "I look.")}

    check(admin, partial(crowd.events_before_the_last, admin, session_id), reading(stage, read))


def test_the_times_of_a_session_are_read_of_some_turns_alone(stage: Stage, admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = 40
    monkeypatch.setattr(times, "WINDOW", turns)
    session_id = stage.session(write="always_ask")
    stage.message(session_id)
    [tool_call] = stage.reply(session_id, call("write", file_path="a.py", content="x"))
    stage.confirm(session_id, tool_call.id)
    stage.run_call(tool_call)
    stage.reply(session_id, say("Done."))

    def read(last: int | None, db: Any) -> None:
        thread = db.get_one(Thread, session_id, own_id(session_id))
        place = times.Place([], "/s", times.Window.of(thread, last))
        shown = times.Times.of(db, thread, place, doctor.now())
        assert [len([bar for bar in shown.bars if bar.lane == lane]) for lane in ("model", "tool", "person")] == [turns] * 3
        assert [path for path, _ in shown.files] == ["a.py"]

    admin.execute(f"VACUUM FULL {TABLES}")
    crowd.turns_of_a_session(admin, session_id, MANY)
    admin.execute(VACUUM)
    for last in (None, 50):
        read_pages = pages(reading(stage, partial(read, last)))
        assert read_pages <= 10 * 3 * turns, "each shown turn, call and wait is looked up; their tables have 2,700 pages"


def test_a_claim_at_a_spend_limit_reads_no_sums_of_days(stage: Stage, admin: Admin) -> None:
    stage.quote = QUOTE
    limit(stage, "1000000")
    session = begin(stage)

    def claim() -> None:
        stage.begin(session)
        stage.send(session, {"type": "user.interrupt"}, {"type": "user.message", "content": [say("Again.")]})

    check(admin, partial(crowd.sums, admin, stage.workspace_id), claim)


def test_workspaces_at_a_limit_are_found_among_other_approvals_that_wait(stage: Stage, admin: Admin) -> None:
    session = stage.session(bash="always_ask")
    stage.propose(session)
    check(admin, partial(crowd.approvals_of_others, admin, session), due.workspaces_at_limits)


def test_the_reasons_why_work_waits_are_found_among_calls_that_wait_for_people(stage: Stage, admin: Admin) -> None:
    session = stage.session(bash="always_ask")
    stage.propose(session)
    check(admin, partial(crowd.calls_of_others, admin, session), reading(stage, readiness.reasons))


def test_metrics_count_no_more_approvals_than_their_bound(stage: Stage, admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MOST", FEW)
    token = key(stage, "metrics")
    session = stage.session(bash="always_ask")
    stage.propose(session)
    check(admin, partial(crowd.approvals_of_others, admin, session), partial(metrics.read, token))
    assert [sample.value for sample in metrics.read(token) if sample.name == "assent_approvals_pending"] == [FEW]


def test_a_report_that_counted_not_all_of_what_waits_says_so_of_each_agent(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MOST_WAITING", 2)
    for _ in range(2):
        stage.propose(stage.session(bash="always_ask"))
    with transaction(stage.workspace_id) as db:
        lines = report.lines(db, report.Span.of(doctor.now(), None, None), "agent")
    assert [line.waiting_text for line in lines] == ["1+", "1+"]


def test_a_report_counts_no_more_of_what_waits_than_its_bound(stage: Stage, admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MOST_WAITING", FEW)
    session = stage.session(bash="always_ask")
    stage.propose(session)
    span = report.Span.of(doctor.now(), None, None)

    def read(db: Any) -> None:
        [line] = report.lines(db, span, "agent")
        assert line.waiting_text == "100+"

    check(admin, partial(crowd.approvals_of_others, admin, session), reading(stage, read))
