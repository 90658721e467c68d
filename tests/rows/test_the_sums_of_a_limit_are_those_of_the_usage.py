"""A spend limit's running sums are those of the usage, whatever happens in whatever order."""

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from people import member
from rows.spending import COSTS_10, PRICE, QUOTE, begin, limit
from rows.stage import Stage, say

from models.database import clock as database_clock
from models.database.transactions import transaction
from models.flow.begin.messages import receive
from models.flow.run.turns import correct_usage, give_up_turn
from models.pure.pricing.charges import Charge
from models.pure.pricing.usage import Usage
from models.session.turn.row import Turn
from models.workspace.spend_limit import PERIODS, SpendLimit, starts

ACTS = 80
CHEAP = Charge("openai", "n", PRICE, Usage(output_tokens=10_000))
_SPENT = """
    SELECT coalesce(sum(cost), 0) FROM turn_usage WHERE (at AT TIME ZONE 'UTC')::date >= %(since)s
    AND (%(kind)s = 'workspace' OR (%(kind)s = 'agent' AND agent_id = %(scope)s) OR (%(kind)s = 'user' AND person_id = %(scope)s))
"""
_DAYS = _SPENT.replace("turn_usage", "daily_usage").replace("(at AT TIME ZONE 'UTC')::date", "day")


class Play:
    """Random acts on three sessions, two of them of one agent and one of them of a person, and on all kinds of limits."""

    def __init__(self, stage: Stage, clock: Any, seed: int) -> None:
        self.stage, self.clock, self.dice = stage, clock, random.Random(seed)
        self.person = member(stage).person_id
        self.other = member(stage).principal
        mine = begin(stage, on_behalf_of=f"user:{self.person}")
        self.agent = stage.read(mine).agent_id
        self.sessions = [mine, begin(stage, of_agent=self.agent), begin(stage)]
        self.held: dict[str, Turn] = {}

    def act(self) -> None:
        acts: list[Callable[[str], object]] = [self.claim] * 4 + [self.reply] * 3
        acts += [
            self.fail,
            self.lose,
            self.interrupt,
            self.correct,
            self.talk,
            self.talk_too,
            *[self.change] * 3,
            self.remove,
            self.next_day,
        ]
        self.dice.choice(acts)(self.dice.choice(self.sessions))

    def claim(self, session: str) -> None:
        turn = self.stage.claim(session)
        if turn:
            self.held[session] = turn

    def is_held(self, session: str) -> bool:
        return session in self.held and self.stage.get(Turn, self.held[session].id).status == "running"

    def reply(self, session: str) -> None:
        if self.is_held(session):
            self.stage.reply(session, say("That was $10."), turn=self.held.pop(session), charge=COSTS_10)

    def fail(self, session: str) -> None:
        if self.is_held(session):
            self.stage.fail(self.held.pop(session), charges=[COSTS_10, CHEAP][: self.dice.randrange(3)])

    def interrupt(self, session: str) -> None:
        self.stage.send(session, {"type": "user.interrupt"})

    def correct(self, session: str) -> None:
        """Report what an attempt cost that was ended from outside, maybe days ago."""
        if session in self.held and not self.is_held(session):
            turn, charges = self.held.pop(session), [COSTS_10, CHEAP][: self.dice.randrange(3)]
            self.stage.worked(turn, lambda locked: correct_usage(locked, turn, charges))

    def lose(self, session: str) -> None:
        """The worker dies, and the turn is taken back or given up. The worker may report its charges later all the same."""
        if self.is_held(session):
            self.clock.advance(60)
            if self.dice.random() < 0.5:
                self.stage.rescue(self.held[session])
            else:
                with transaction(self.stage.workspace_id) as db:
                    give_up_turn(db, session, self.held[session].id, "It cannot be taken back.")

    def talk(self, session: str) -> None:
        self.stage.message(session)

    def talk_too(self, session: str) -> None:
        """A person speaks: the run may then have another spender, or none."""
        message = {"type": "user.message", "content": [say("And?")]}
        self.stage.locked(session, lambda locked: receive(locked, [message]), self.other)

    def scope(self) -> tuple[str, str]:
        people = [("user", self.person), ("user", self.other.person_id)]
        return self.dice.choice([("workspace", self.stage.workspace_id), ("agent", self.agent), *people])

    def change(self, _: str) -> None:
        limit(self.stage, self.dice.choice([None, "1000", "100000"]), self.scope(), self.dice.choice(PERIODS))

    def remove(self, _: str) -> None:
        with transaction(self.stage.workspace_id) as db:
            rows = db.find(SpendLimit, "ORDER BY scope_type, scope_id, period")
            if len(rows) > 1:
                SpendLimit.remove(db, self.stage.principal, self.dice.choice(rows).id)

    def next_day(self, _: str) -> None:
        self.clock.advance(self.dice.choice([3600, 86_400, 20 * 86_400]))

    def check(self) -> int:
        """Compare each limit's sums with the usage and the running turns. Returns how many limits there are."""
        with transaction(self.stage.workspace_id) as db:
            now, limits = database_clock.now(db), db.find(SpendLimit)
            running = db.find(Turn, "WHERE status = 'running' AND quote IS NOT NULL")
            for row in limits:
                values = {"kind": row.scope_type, "scope": row.scope_id, "since": starts(now)[row.period]}
                assert row.spent_at(now) == db.value(_SPENT, **values) == db.value(_DAYS, **values)
                assert row.reserved == sum(Decimal((turn.quote or {})["cost"]) for turn in running if self.applies(row, turn))
        return len(limits)

    def applies(self, row: SpendLimit, turn: Turn) -> bool:
        if row.scope_type == "user":
            return bool(turn.quote) and turn.quote.get("person") == row.scope_id
        return row.scope_type == "workspace" or self.stage.read(turn.session_id).agent_id == row.scope_id


@pytest.mark.parametrize("seed", range(5))
def test_sums_agree_after_each_of_many_random_acts(stage: Stage, clock: Any, seed: int) -> None:
    stage.quote = QUOTE
    play = Play(stage, clock, seed)
    play.change("")
    checked = 0
    for _ in range(ACTS):
        play.act()
        checked += play.check()
    assert checked >= ACTS
    for session in play.sessions:
        stage.check(session)


def test_a_limit_that_is_set_in_mid_period_counts_what_was_spent_and_is_under_way(stage: Stage) -> None:
    stage.quote = QUOTE
    first, second = begin(stage), begin(stage)
    stage.reply(first, say("That was $10."), charge=COSTS_10)
    turn = stage.begin(second)
    row = limit(stage, "22")
    assert (row.spent, row.reserved) == (10, 11)
    assert stage.claim(begin(stage)) is None
    stage.reply(second, say("That was $10."), turn=turn, charge=COSTS_10)
    row = stage.get(SpendLimit, row.id)
    assert (row.spent, row.reserved) == (20, 0)
