"""Concurrent verbs do not deadlock: each locks the session, then its turns, calls and approvals, and sums of many sessions last."""

import random
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import psycopg
import pytest
from crashes.invariants import check_invariants, look
from own_database import DatabaseUrls
from people import member
from races.races_together import together
from rows.spending import COSTS_10, MODEL, PRICE, QUOTE, limit, spend_10
from rows.stage import USAGE, Stage, call, say

from models.database import renewals
from models.database.exchange import Connection, Statement
from models.database.rows import Stale
from models.database.transactions import transaction
from models.errors import Refusal
from models.flow.run.results import lose_call
from models.operate import queued
from models.pure.pricing.charges import Charge
from models.session.approval.approver_set import ANYBODY
from models.session.locked import Locked, try_lock
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn
from models.settings import settings
from workers.sweeps import deadlines, rescuing, watching

VERBS = 45
"""Of each of six threads."""
CHARGES = [Charge("anthropic", "m", PRICE, USAGE), Charge("openai", "n", PRICE, USAGE)]
"""Of an agent's model and its fallback. All sessions of the agent change the sums of its spend limits."""


def three_calls() -> list[dict[str, Any]]:
    """Two calls that ask, and one that may run."""
    return [call("bash"), call("read", file_path="a"), call("write", file_path="a", content="b")]


class Hand:
    """One thread, which runs random verbs on random sessions, as requests, tasks and sweeps do."""

    def __init__(self, stage: Stage, sessions: list[str], seed: int) -> None:
        self.stage, self.sessions, self.dice = stage, sessions, random.Random(seed)
        self.done = 0

    def play(self) -> int:
        """Run the verbs, and return how many succeeded. Raises every error but refusals, stale rows and lock time-outs.

        Postgres detects a deadlock after one second, before `lock_timeout` ends the wait.
        """
        work = [self.talk, self.turn, self.calls, self.decide, self.expire]
        moves: list[Callable[[str], Any]] = [*work, *work, self.sweep, self.renew]
        for _ in range(VERBS):
            session_id = self.dice.choice(self.sessions)
            try:
                self.dice.choice(moves)(session_id)
                self.done += 1
            except (Refusal, Stale, psycopg.errors.LockNotAvailable):
                pass
        return self.done

    def talk(self, session_id: str) -> None:
        message = {"type": "user.message", "content": [say("Go on.")]}
        self.stage.send(session_id, *self.dice.choice([[message], [message, {"type": "user.interrupt"}]]))

    def turn(self, session_id: str) -> None:
        held = self.stage.claim(session_id)
        if held and self.dice.random() < 0.8:
            self.stage.reply(session_id, *three_calls(), turn=held, charges=self.dice.sample(CHARGES, 2))
        elif held:
            self.stage.fail(held, charges=self.dice.sample(CHARGES, 2))

    def calls(self, session_id: str) -> None:
        for one in look(self.stage.workspace_id, session_id).calls:
            held = one.status == "queued" and self.stage.claim_call(one)
            if held and self.dice.random() < 0.7:
                self.stage.finish_call(held)
            elif held:
                self.stage.worked(held, partial(self._lose, held))

    @staticmethod
    def _lose(held: ToolCall, locked: Locked) -> None:
        lose_call(locked, held.as_held(locked.db))

    def decide(self, session_id: str) -> None:
        for approval in look(self.stage.workspace_id, session_id).pending:
            outcome = (
                {"outcome": "give_up"} if approval.kind == "unknown_outcome" else {"result": self.dice.choice(["allow", "deny"])}
            )
            self.stage.decide(approval, **outcome)

    def expire(self, session_id: str) -> None:
        self.stage.expire(session_id)

    def sweep(self, _: str) -> None:
        sweeps = [rescuing.rescue, deadlines.expire_approvals, watching.add_up_uses]
        self.dice.choice([*sweeps, partial(queued.hints, Turn), partial(queued.hints, ToolCall)])()

    def renew(self, _: str) -> None:
        """Renew as the one heartbeat of a process that holds a turn of each session, and a call."""
        seen = [look(self.stage.workspace_id, one) for one in self.dice.sample(self.sessions, len(self.sessions))]
        held = [(t.id, t.fence) for s in seen for t in s.turns if t.status == "running"]
        held += [(c.id, c.fence) for s in seen for c in s.calls if c.status == "running"][:1]
        renewals.renew(held)


@pytest.fixture
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases so short that the sweep takes rows from living workers."""
    monkeypatch.setenv("ASSENT_LEASE_SECONDS", "0.05")
    settings.cache_clear()


def test_verbs_on_the_same_sessions_never_wait_in_a_circle(stage: Stage, short_leases: None) -> None:
    """Six threads run hundreds of verbs on three sessions of an agent, while deadlines pass and leases end."""
    policies = {"bash": "always_ask", "read": "always_allow", "write": "always_ask"}
    stage.quote = QUOTE
    first = stage.session(approval={"timeout_seconds": 0.2}, model=MODEL, **policies)
    agent = stage.read(first).agent_id
    sessions = [first, *(stage.session(of_agent=agent) for _ in range(2))]
    for scope in (("workspace", stage.workspace_id), ("agent", agent)):
        limit(stage, "1000000", scope)
    hands = [Hand(stage, sessions, seed) for seed in range(6)]
    for outcome in together(*(hand.play for hand in hands)):
        assert isinstance(outcome, int), repr(outcome)
    assert sum(hand.done for hand in hands) > 100, "most verbs succeeded"
    for session_id in sessions:
        check_invariants(stage.workspace_id, session_id)
    with transaction(stage.workspace_id) as handle:
        assert try_lock(handle, sessions[0], stage.principal), "no lock is left"


WAITING = """
    SELECT count(*) FROM pg_locks WHERE NOT granted
    AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())
"""


def test_a_question_at_a_spend_limit_and_a_reply_that_asks_the_same_people_take_one_order(
    stage: Stage, database_urls: DatabaseUrls
) -> None:
    """The claim holds the limit when it inserts the set of approvers, which is new. So the reply inserts the set after its cost."""
    stage.quote = QUOTE
    limit(stage, "1000")
    first = stage.session(bash="always_ask", agent_approval={"approvers": [f"user:{member(stage).person_id}"]}, model=MODEL)
    second = stage.session(of_agent=stage.read(first).agent_id)
    for session in (first, second):
        stage.message(session)
    turn = stage.begin(first)
    spend_10(stage)
    limit(stage, "10")
    with psycopg.connect(database_urls.admin) as holder, psycopg.connect(database_urls.admin, autocommit=True) as watch:
        holder.execute("SELECT FROM spend_limit FOR UPDATE")

        def wait_for(waiting: int) -> None:
            while watch.execute(WAITING).fetchone() != (waiting,):
                pass

        def reply() -> list[ToolCall]:
            wait_for(1)
            return stage.reply(first, call(), turn=turn, charge=COSTS_10)

        def let_go() -> None:
            wait_for(2)
            holder.rollback()

        claimed, asked, _ = together(partial(stage.claim, second), reply, let_go)
    assert claimed is None
    assert [each.status for each in asked] == ["asked"]
    sets = {approval.approver_set for session in (first, second) for approval in stage.approvals(session)}
    assert len(sets) == 1
    assert sets != {ANYBODY}


OWNED = r'"?(turn|tool_call|approval|event|attempt)\b'
WRITES = re.compile(rf"\b(UPDATE|INSERT INTO|DELETE FROM) {OWNED}|FROM {OWNED}.*FOR (NO KEY )?UPDATE", re.DOTALL)
LOCKS = re.compile(r'FROM "?session\b.*FOR NO KEY UPDATE|^INSERT INTO "session"', re.DOTALL)
"""A new session is invisible to other transactions until the commit."""


def test_every_write_comes_after_the_lock_of_its_session(stage: Stage, short_leases: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statement by statement, in the transactions of requests and tasks."""
    locked: set[int] = set()
    late: list[str] = []
    early: list[str] = []
    exchange = Connection.exchange

    def executing(connection: object, statement: str) -> None:
        if "set_config('assent.workspace'" in statement:  # a transaction begins
            locked.discard(id(connection))
        if LOCKS.search(statement):
            locked.add(id(connection))
        elif WRITES.search(statement):
            (late if id(connection) in locked else early).append(statement)

    def exchanging(connection: Connection, statements: Sequence[Statement]) -> list[Any]:
        for statement in (each.sql for each in statements) if connection.info.user == "assent_app" else ():
            executing(connection, statement)
        return exchange(connection, statements)

    monkeypatch.setattr(Connection, "exchange", exchanging)
    hand = Hand(stage, [stage.session(bash="always_ask", read="always_allow", write="always_ask")], seed=2)
    hand.play()
    assert not early
    assert {table[1] for statement in late if (table := re.search(r'UPDATE "(\w+)"', statement))} >= {
        "turn",
        "tool_call",
        "approval",
    }
