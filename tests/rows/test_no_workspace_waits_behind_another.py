"""Workspaces take turns in a queue, and a backlog is worked off by the workers' claims alone."""

from collections import Counter, deque
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from own_database import Clock, DatabaseUrls
from rows.stage import Stage, call, entry

from models.database import transactions
from models.database.transactions import Hint, transaction
from models.notices.notification import Notification
from models.operate import due, queued
from models.operate.failing import LeftForLater, TaskRow, bounded
from models.session.hints import AT_ONCE
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn
from models.workspace import toolset

MANY = 3 * AT_ONCE


class Queue:
    """The messages of all queues in order, as Redis would keep them, and a worker that takes the first one."""

    def __init__(self, *stages: Stage) -> None:
        self.stages = {stage.workspace_id: stage for stage in stages}
        self.messages: deque[Hint] = deque()
        self.has_toolsets = True

    def take(self) -> Turn | ToolCall | None:
        """Take the first message. Returns the row that the worker claimed, if any."""
        hint = self.messages.popleft()
        row_id, session_id, workspace_id = hint.args
        stage = self.stages[workspace_id]
        if hint.task == "tool.run":
            return stage.claim_call(stage.get(ToolCall, row_id), has=lambda _address: self.has_toolsets)
        return stage.claim_turn(session_id, row_id)

    def empty(self) -> list[Turn | ToolCall]:
        """Take messages until there are none. Returns the claimed rows in order."""
        rows = []
        while self.messages:
            rows.append(self.take())
        return [row for row in rows if row is not None]


@pytest.fixture
def other(stage: Stage) -> Stage:
    """Another workspace."""
    return Stage()


@pytest.fixture
def queue(stage: Stage, other: Stage, monkeypatch: pytest.MonkeyPatch) -> Queue:
    """The queue of every commit from here on."""
    queue = Queue(stage, other)
    monkeypatch.setattr(transactions, "_send", lambda box: queue.messages.extend(box.hints))
    return queue


def begin(stage: Stage, count: int = 1) -> list[str]:
    """Sessions with a queued turn each."""
    sessions = [stage.session() for _ in range(count)]
    for session_id in sessions:
        stage.message(session_id)
    return sessions


def propose(stage: Stage, count: int) -> list[ToolCall]:
    """One turn with so many queued calls."""
    session_id = stage.session(bash="always_allow")
    stage.message(session_id)
    return stage.reply(session_id, *(call(command=f"echo {n}") for n in range(count)))


def place(rows: list[Any], stage: Stage) -> int:
    """The number of rows before the first row of a workspace."""
    return [row.workspace_id for row in rows].index(stage.workspace_id)


def test_a_turn_waits_for_the_front_of_another_workspace_and_not_for_its_backlog(stage: Stage, other: Stage, queue: Queue) -> None:
    begin(stage, MANY)
    begin(other)
    rows = queue.empty()
    assert place(rows, other) == AT_ONCE
    assert len(rows) == MANY + 1, "the claims alone hint all turns"
    assert len({row.id for row in rows}) == MANY + 1


def test_so_does_a_tool_call(stage: Stage, other: Stage, queue: Queue) -> None:
    calls = [*propose(stage, MANY), *propose(other, 1)]
    queue.messages = deque(hint for hint in queue.messages if hint.task == "tool.run")
    rows = queue.empty()
    assert place(rows, other) == AT_ONCE
    assert {row.id for row in rows} == {each.id for each in calls}


def test_a_turn_with_nothing_before_it_is_hinted_at_once(stage: Stage, queue: Queue) -> None:
    [session_id] = begin(stage)
    assert [hint.args[1] for hint in queue.messages] == [session_id]
    assert stage.get(Turn, stage.thread(session_id).turn_id or "").hinted_at


def test_turns_are_taken_in_the_order_in_which_they_became_due(stage: Stage, queue: Queue) -> None:
    sessions = begin(stage, MANY)
    assert [row.session_id for row in queue.empty()] == sessions


def test_a_queue_holds_no_more_messages_of_a_workspace_than_its_front(stage: Stage, queue: Queue) -> None:
    begin(stage, MANY)
    while queue.messages:
        assert len(queue.messages) <= AT_ONCE
        queue.take()


def test_messages_that_arrive_three_times_do_not_widen_the_front(stage: Stage, queue: Queue) -> None:
    begin(stage, MANY)
    rows = []
    while queue.messages:
        assert len(queue.messages) <= AT_ONCE + 2
        queue.messages.extendleft([queue.messages[0]] * 2)
        rows += [queue.take() for _ in range(3)]
    assert sum(row is not None for row in rows) == MANY


def test_a_turn_that_left_the_queue_passes_its_place_on(stage: Stage, queue: Queue) -> None:
    sessions = begin(stage, MANY)
    for session_id in sessions[:AT_ONCE]:
        stage.send(session_id, {"type": "user.interrupt"})
    assert len(queue.empty()) == MANY - AT_ONCE


def test_turns_that_fail_to_be_claimed_pass_their_places_on(stage: Stage, queue: Queue) -> None:
    begin(stage, MANY)
    for _ in range(AT_ONCE):
        turn_id, session_id, workspace_id = queue.messages.popleft().args
        with suppress(LeftForLater), bounded("turn.run", TaskRow(Turn, turn_id, workspace_id, session_id)):
            raise ValueError("the turn cannot be read")
    assert len(queue.empty()) == MANY - AT_ONCE


def test_calls_that_no_worker_can_run_do_not_hold_up_those_behind_them(stage: Stage, queue: Queue, clock: Clock) -> None:
    toolset.announce({"orders": [entry("refund", queue=None)]})
    session_id = stage.session(servers={"shop": "assent:orders"}, shop="always_allow", bash="always_allow")
    stage.message(session_id)
    held_back = [call("mcp__shop__refund", n=n) for n in range(AT_ONCE)]
    *_, free = stage.reply(session_id, *held_back, call(command="make test"))
    queue.has_toolsets = False
    queue.messages = deque(hint for hint in queue.messages if hint.task == "tool.run")
    assert [row.id for row in queue.empty()] == [free.id]
    clock.advance(6)
    assert len(queued.hints(ToolCall)) == AT_ONCE, "another worker may be able to run them"


def test_after_a_loss_of_all_messages_the_front_is_hinted_again_and_the_rest_follows(
    stage: Stage, queue: Queue, clock: Clock
) -> None:
    """An old row whose hint may still be in the queue is hinted seldom. An empty queue has lost the hint."""
    begin(stage, MANY)
    clock.advance(600)
    assert len(queued.hints(Turn)) == AT_ONCE
    queue.messages.clear()
    clock.advance(6)
    assert queued.hints(Turn) == []
    queue.messages.extend(queued.hints(Turn, is_empty=True))
    assert len(queue.messages) == AT_ONCE
    assert len(queue.empty()) == MANY


def test_each_workspace_is_hinted_once_before_one_is_hinted_twice(stage: Stage, other: Stage, queue: Queue, clock: Clock) -> None:
    begin(stage, MANY)
    begin(other, MANY)
    clock.advance(6)
    hints = queued.hints(Turn, limit=8)
    assert Counter(hint.args[2] for hint in hints) == {stage.workspace_id: 4, other.workspace_id: 4}


def test_due_notifications_and_changes_are_hinted_in_batches(stage: Stage, database_urls: DatabaseUrls) -> None:
    with psycopg.connect(database_urls.admin, autocommit=True) as db:
        db.execute(_CHANNEL, (stage.workspace_id,))
        for insert in (_CHANGES, _NOTIFICATIONS):
            db.execute(insert, (stage.workspace_id, due.BATCH + 5))
    for changes, notifications in ((due.BATCH, due.BATCH), (5, 5), (0, 0)):
        tasks = Counter(hint.task for hint in (*queued.change_hints(), *queued.hints(Notification)))
        assert (tasks["deliver.fan_out"], tasks["deliver.notify"]) == (changes, notifications)


def test_a_locked_notification_delays_no_other_one(stage: Stage, database_urls: DatabaseUrls) -> None:
    with psycopg.connect(database_urls.admin, autocommit=True) as db:
        db.execute(_CHANNEL, (stage.workspace_id,))
        db.execute(_NOTIFICATIONS, (stage.workspace_id, 2))
    with transaction(stage.workspace_id) as locked:
        locked.rows("SELECT FROM notification WHERE id = 'ntfn_1' FOR UPDATE")
        assert [hint.args[0] for hint in queued.hints(Notification)] == ["ntfn_2"]


_CHANNEL = """
    INSERT INTO channel (id, workspace_id, for_everyone, follows_default, kind, name, address, about, timing, time_zone, state,
        disabled_reason, error, created_at, updated_at)
    VALUES ('chan_1', %s, false, false, 'mail', '', 'a@example.com', 'all', 'at_once', 'UTC', 'enabled', '', '', now(), now())
"""
_CHANGES = """
    INSERT INTO approval_change (id, workspace_id, session_id, approval_id, stage, seq, due_at)
    SELECT 'apch_' || n, %s, 'sesn_1', 'appr_' || n, 'requested', 1, now() - interval '1 minute' FROM generate_series(1, %s) n
"""
_NOTIFICATIONS = """
    INSERT INTO notification (id, workspace_id, session_id, approval_id, channel_id, stage, seq, status, fence, attempt, error,
        due_at, created_at)
    SELECT 'ntfn_' || n, %s, 'sesn_1', 'appr_' || n, 'chan_1', 'requested', 1, 'queued', 0, 0, '',
        now() - interval '1 minute', now()
    FROM generate_series(1, %s) n
"""
