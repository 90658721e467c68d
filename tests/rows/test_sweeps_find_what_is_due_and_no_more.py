"""Each sweep finds a bounded number of due rows, the longest overdue first, and waits for no other sweep."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from rows.stage import Stage, call, entry

from models.database import clock as database_clock
from models.database.transactions import transaction
from models.operate import due, queued, retention
from models.session.approval.grant import Grant
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn
from models.workspace import toolset
from models.workspace.idempotency import StoredResponse
from workers.sweeps import deleting

Begin = Callable[[Stage], Any]


def queued_turn(stage: Stage) -> Turn:
    """A turn that waits for a worker."""
    session = stage.session()
    stage.message(session)
    return stage.get(Turn, stage.thread(session).turn_id or "")


def asked(stage: Stage) -> Approval:
    """An approval that waits for a person."""
    return stage.approvals(stage.propose(stage.session()).session_id)[0]


def with_client(stage: Stage) -> ToolCall:
    """A call that the client runs."""
    return stage.propose(stage.session(custom=("lookup",)), call("lookup", n=1))


def claimed_turn(stage: Stage) -> Turn:
    """A turn that a worker holds."""
    return stage.begin(queued_turn(stage).session_id)


def claimed_call(stage: Stage) -> ToolCall:
    """A call that a worker holds."""
    return stage.begin_call(stage.propose(stage.session(bash="always_allow")))


def set_times(stage: Stage, rows: list[Any], column: str, minutes: list[float]) -> None:
    """Set a column of each row to so many minutes ago."""
    with transaction(stage.workspace_id) as db:
        for row, ago in zip(rows, minutes, strict=True):
            update = f"UPDATE {row.__tablename__} SET {column} = assent_now() - %(ago)s WHERE id = %(id)s"
            db.write(update, id=row.id, ago=timedelta(minutes=ago))


@pytest.mark.parametrize(
    ("begin", "column", "find"),
    [
        (asked, "expires_at", due.overdue_approvals),
        (asked, "remind_at", due.approvals_to_remind),
        (with_client, "answer_by", due.unanswered_calls),
        (claimed_turn, "lease_until", partial(due.lapsed, Turn)),
        (claimed_call, "lease_until", partial(due.lapsed, ToolCall)),
    ],
)
def test_the_longest_overdue_rows_come_first_up_to_the_limit(
    stage: Stage, begin: Begin, column: str, find: Callable[..., list[due.Due]]
) -> None:
    rows = [begin(stage) for _ in range(4)]
    set_times(stage, rows, column, [1, 3, 2, -60])
    assert [(each.id, each.session_id, each.workspace_id) for each in find(limit=2)] == [
        (row.id, row.session_id, stage.workspace_id) for row in (rows[1], rows[2])
    ]
    assert [each.id for each in find()] == [rows[1].id, rows[2].id, rows[0].id]


def test_a_decided_approval_or_answered_call_is_not_overdue(stage: Stage) -> None:
    decided, answered = asked(stage), with_client(stage)
    stage.confirm(decided.session_id, decided.tool_call_id or "")
    stage.send(answered.session_id, {"type": "user.custom_tool_result", "custom_tool_use_id": answered.id, "content": []})
    for row, column in ((decided, "expires_at"), (decided, "remind_at"), (answered, "answer_by")):
        set_times(stage, [row], column, [1])
    assert due.overdue_approvals() + due.approvals_to_remind() + due.unanswered_calls() == []


def test_the_longest_due_rows_are_hinted_first_up_to_the_limit(stage: Stage, clock: Any) -> None:
    rows = [queued_turn(stage) for _ in range(3)]
    set_times(stage, rows, "due_at", [1, 3, 2])
    clock.advance(200)
    assert {hint.args[0] for hint in queued.hints(Turn, limit=2)} == {rows[1].id, rows[2].id}
    assert [hint.args[0] for hint in queued.hints(Turn, limit=2)] == [rows[0].id]


def test_a_locked_row_delays_no_other_row_s_hint(stage: Stage, clock: Any) -> None:
    first, second = queued_turn(stage), queued_turn(stage)
    clock.advance(60)
    with transaction(stage.workspace_id) as db:
        db.rows("SELECT FROM turn WHERE id = %(id)s FOR UPDATE", id=first.id)
        assert [hint.args[0] for hint in queued.hints(Turn)] == [second.id]
    assert [hint.args[0] for hint in queued.hints(Turn)] == [first.id]


def test_the_queues_with_waiting_calls_are_found(stage: Stage) -> None:
    tools = ["a", "b", "c", "d", "e"]
    toolset.announce({"orders": [entry(name, queue=f"tools.{name}") for name in tools]})
    session = stage.session(servers={"shop": "assent:orders"}, shop="always_allow")
    stage.message(session)
    calls = stage.reply(session, *(call(f"mcp__shop__{name}", n=1) for name in tools))
    for begun in (calls[0], calls[2]):
        stage.begin_call(begun)
    assert queued.queues() == [None, "tools.b", "tools.d", "tools.e"]


def test_the_oldest_new_grants_come_first_and_a_hint_finds_one_alone(stage: Stage) -> None:
    for _ in range(2):
        stage.decide(asked(stage), result="allow", scope="session")
    with transaction(stage.workspace_id) as db:
        older, newer = [grant.id for grant in db.find(Grant, "ORDER BY created_at")]
    assert [new.id for new in due.new_grants()] == [older, newer]
    assert [new.id for new in due.new_grants(limit=1)] == [older]
    assert [new.id for new in due.new_grants(newer)] == [newer]


def test_one_sweep_deletes_all_old_rows_in_batches(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"workspace_id": stage.workspace_id, "body_sha256": "", "text": ""}
    with transaction(stage.workspace_id) as db:
        for name in "abcdef":
            expires_at = database_clock.now(db) + timedelta(seconds=3600 if name == "f" else -60)
            db.insert(StoredResponse(id=name, slip=name, expires_at=expires_at, **fields))
    monkeypatch.setattr(retention, "BATCH", 2)
    deleting.delete_old()
    with transaction(stage.workspace_id) as db:
        assert [row.id for row in db.find(StoredResponse)] == ["f"]
