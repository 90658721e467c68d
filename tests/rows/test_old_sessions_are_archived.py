"""Old content of sessions at rest goes to the archive, and every reader reads it there as before."""

from collections.abc import Callable
from itertools import pairwise

import psycopg
import pytest
from own_database import Clock, DatabaseUrls
from rows.archived import DAY, MONTH, archive, conversation, parts, read_back, stored
from rows.crew import Crew, send
from rows.stage import Stage, call, say

from models.briefing.outcome import outcomes_of
from models.briefing.reasons import Reasons
from models.database import encryption
from models.database.rows import Db
from models.database.transactions import transact, transaction
from models.flow.begin import sessions
from models.operate import archiving
from models.session.event.last_lines import first_and_last_lines
from models.session.event.tasks import tasks_of
from models.session.tool_call.input import CallInput
from models.session.tool_call.result import CallResult
from models.session.tool_call.row import ToolCall
from models.session.tool_call.stored_result import StoredResult
from models.workspace.row import Workspace
from workers.sweeps import archiving as archiving_sweeps
from workers.sweeps import deleting

TABLES = ("event", "reply", "call_input", "call_result", "stored_result")


def test_lists_and_the_history_are_the_same_before_and_after(stage: Stage, clock: Clock, database_urls: DatabaseUrls) -> None:
    session = conversation(stage)
    before = read_back(stage, session)
    clock.advance(MONTH)
    assert archive(stage, session) == 1
    with psycopg.connect(database_urls.admin) as db:
        assert [db.execute(f"SELECT count(*) FROM {table}").fetchone() for table in TABLES] == [(0,)] * len(TABLES)
    assert read_back(stage, session) == before


def test_a_part_has_a_bounded_size_and_pages_reach_over_parts(stage: Stage, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    session = conversation(stage)
    before = read_back(stage, session)
    clock.advance(MONTH)
    monkeypatch.setattr(archiving, "PART_BYTES", 1_000)
    assert archive(stage, session) > 3
    of_session = parts(stage, session)
    assert all(part.first_seq == last.last_seq + 1 for last, part in pairwise(of_session))
    assert max(part.rows for part in of_session) < 10
    assert read_back(stage, session, size=2) == before


def test_a_later_message_has_its_whole_history(stage: Stage, clock: Clock) -> None:
    session = conversation(stage)
    before = stage.history(session)
    clock.advance(MONTH)
    archive(stage, session)
    stage.message(session, "Go on.")
    offered = stage.offered(session, stage.thread(session).turn_id or "")
    assert offered == [*before, {"role": "user", "content": [say("Go on.")]}]
    stage.reply(session, say("I do."))
    everything = read_back(stage, session)
    clock.advance(MONTH)
    archive(stage, session)
    assert len(parts(stage, session)) == 2
    assert read_back(stage, session) == everything


def test_only_what_is_older_than_the_workspace_says_is_archived(stage: Stage, clock: Clock) -> None:
    session = conversation(stage)
    clock.advance(20 * DAY)
    stage.message(session, "Later.")
    stage.reply(session, say("Yes."))
    before = read_back(stage, session)
    clock.advance(20 * DAY)
    archive(stage, session)
    assert [event.body["content"][0]["text"] for event in stage.events(session, "agent.message")] == ["Yes."]
    assert read_back(stage, session) == before
    with transaction(stage.workspace_id) as db:
        Workspace.change_policies(db, stage.principal, {"retention": {"archive_after_days": None}})
    clock.advance(10 * MONTH)
    assert archive(stage, session) == 0, "never"
    with transaction(stage.workspace_id) as db:
        Workspace.change_policies(db, stage.principal, {"retention": {"archive_after_days": 400}})
    assert archive(stage, session) == 0
    clock.advance(5 * MONTH)
    assert archive(stage, session) == 1
    assert read_back(stage, session) == before


def test_what_is_pending_queued_running_or_unread_stays(stage: Stage, clock: Clock) -> None:
    asked, queued, running, unknown = (stage.session(bash="always_ask") for _ in range(4))
    stage.propose(asked)
    stage.message(queued)
    stage.message(running)
    stage.begin(running)
    [of_unknown] = [stage.propose(unknown)]
    stage.confirm(unknown, of_unknown.id)
    stage.lose(stage.begin_call(stage.get(ToolCall, of_unknown.id)), clock)
    clock.advance(MONTH)
    for session in (asked, queued, running, unknown):
        assert archive(stage, session) == 0
        assert stage.events(session)
    stage.send(asked, {"type": "user.interrupt"})
    clock.advance(MONTH)
    assert archive(stage, asked) == 1


def test_a_sweep_finds_what_is_due_and_nothing_again(stage: Stage, clock: Clock) -> None:
    old, other = conversation(stage), Stage()
    theirs = conversation(other)
    clock.advance(MONTH)
    young = conversation(stage)
    archiving_sweeps.archive()
    assert len(parts(stage, old)) == len(parts(other, theirs)) == 1
    assert parts(stage, young) == []
    assert archiving.due_sessions() == []
    clock.advance(MONTH)
    assert {session.id for session in archiving.due_sessions()} == {old, theirs, young}
    archiving_sweeps.archive()
    assert len(parts(stage, young)) == 1
    assert archiving.due_sessions() == []


def test_without_a_public_key_nothing_is_archived(stage: Stage, clock: Clock, setting: Callable[[str, str], None]) -> None:
    session = conversation(stage)
    clock.advance(MONTH)
    setting("archive_public_key", "")
    archiving_sweeps.archive()
    assert parts(stage, session) == []


def test_a_part_is_encrypted_and_bound_to_its_row(stage: Stage, clock: Clock) -> None:
    session, other = conversation(stage, "A secret plan."), conversation(stage)
    clock.advance(MONTH)
    archive(stage, session)
    archive(stage, other)
    [part], [of_other] = parts(stage, session), parts(stage, other)
    content = stored(stage, part)
    assert content
    assert len(content) == part.size
    with pytest.raises(encryption.Undecryptable):
        encryption.decrypt_bytes("archive", content, of_other.id)
    with pytest.raises(encryption.Undecryptable):
        encryption.decrypt_bytes("archive", content[:-1] + bytes([content[-1] ^ 1]), part.id)


def test_inputs_and_results_of_archived_calls_are_read(stage: Stage, clock: Clock) -> None:
    session = conversation(stage)
    with transaction(stage.workspace_id) as db:
        calls = db.find(ToolCall, "WHERE session_id = %(id)s", id=session)
        before = [(vars(CallInput.of(db, each)), vars(CallResult.of(db, each))) for each in calls]
    clock.advance(MONTH)
    archive(stage, session)
    after = transact(
        stage.workspace_id, lambda db: [(vars(CallInput.of(db, each)), vars(CallResult.of(db, each))) for each in calls]
    )
    assert after == before


def test_a_long_result_is_read_in_parts_by_a_later_run(stage: Stage, clock: Clock) -> None:
    session = stage.session(bash="always_allow")
    [long] = [stage.propose(session)]
    stage.finish_call(stage.begin_call(long), whole=b"line\n" * 1000)
    stage.reply(session, say("Done."))
    clock.advance(MONTH)
    archive(stage, session)
    assert StoredResult.read(stage.workspace_id, session, long.id) == b"line\n" * 1000
    assert StoredResult.read(stage.workspace_id, conversation(stage), long.id) is None


def test_a_result_and_a_decision_that_are_sent_again_get_the_stored_event(stage: Stage, clock: Clock) -> None:
    session = stage.session(custom=("look?",))
    look = stage.propose(session, call("look", n=1))
    confirmed = stage.confirm(session, look.id)
    result = {"type": "user.custom_tool_result", "custom_tool_use_id": look.id, "content": [say("seen")]}
    [first] = stage.send(session, result)
    stage.reply(session, say("Done."))
    clock.advance(MONTH)
    archive(stage, session)
    [again] = stage.send(session, result)
    assert (again.id, again.body) == (first.id, first.body)
    assert stage.confirm(session, look.id).id == confirmed.id


def test_threads_of_sub_agents_and_their_tasks_are_read(stage: Stage, clock: Clock) -> None:
    crew = Crew.begin(stage)
    crew.lead_replies(send("Reader", "Read it."))
    crew.lead_replies(say("I wait."))
    crew.replies(say("It says 42."))
    stage.reply(crew.session_id, say("The answer is 42."))
    thread = (crew.session_id, crew.thread().id)
    before = read_back(stage, *thread)
    clock.advance(MONTH)
    archive(stage, crew.session_id)
    assert stage.events(crew.session_id) == []
    assert transact(stage.workspace_id, lambda db: tasks_of(db, [thread])) == {thread[1]: "Read it."}
    assert read_back(stage, *thread) == before


def test_why_people_were_asked_and_what_came_of_it_is_read(stage: Stage, clock: Clock) -> None:
    session = conversation(stage)
    approvals = stage.approvals(session)

    def briefing(db: Db) -> list[object]:
        each = [(Reasons.of(db, row), outcomes_of(db, [row.tool_call_id])) for row in approvals]
        return [(reasons, *outcomes.values()) for reasons, outcomes in each]

    before = transact(stage.workspace_id, briefing)
    assert "A secret plan." in str(before)
    clock.advance(MONTH)
    archive(stage, session)
    assert transact(stage.workspace_id, briefing) == before


def test_lists_say_how_archived_sessions_began_and_what_was_said_last(
    stage: Stage, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = conversation(stage)

    def lines() -> tuple[str, str]:
        with transaction(stage.workspace_id) as db:
            return first_and_last_lines(db, [session])[session]

    assert lines() == ("A secret plan.", "Done.")
    clock.advance(MONTH)
    monkeypatch.setattr(archiving, "PART_BYTES", 1_000)
    while archiving.archive_next(archiving.DueSession(session, stage.workspace_id)):
        assert lines() == ("A secret plan.", "Done.")
    stage.message(session, "And now?")
    assert lines() == ("A secret plan.", "And now?")


def test_a_deleted_session_s_parts_are_removed(stage: Stage, clock: Clock) -> None:
    session = conversation(stage)
    clock.advance(MONTH)
    archive(stage, session)
    [part] = parts(stage, session)
    stage.locked(session, sessions.delete)
    assert parts(stage, session) == [], "nobody sees it"
    deleting.remove_deleted()
    archiving_sweeps.remove_parts()
    assert stored(stage, part) is None
    clock.advance(61)
    deleting.remove_deleted()
    assert parts(stage, session) == []


def test_what_one_request_brought_is_found_though_two_parts_hold_it(stage: Stage, clock: Clock) -> None:
    session = stage.session(custom=("lookup",))
    stage.message(session)
    calls = stage.reply(session, call("lookup", n=1), call("lookup", n=2))
    large = "x" * 600_000
    results = [
        {"type": "user.custom_tool_result", "custom_tool_use_id": each.id, "content": [say(f"{large}{n}")]}
        for n, each in enumerate(calls)
    ]
    first = stage.send(session, *results)
    stage.reply(session, say("Done."))
    clock.advance(MONTH)
    archive(stage, session)
    assert len(parts(stage, session)) > 1
    assert [event.id for event in stage.send(session, *results)] == [event.id for event in first]
