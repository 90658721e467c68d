"""A spend limit's running sums are those of the usage, whatever happens in whatever order."""

import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from people import member
from rows.crew import Crew, send
from rows.spending import COSTS_10, MODEL, PRICE, QUOTE, begin, limit
from rows.stage import Stage, say

from models.database import clock as database_clock
from models.database.daily_usage import DAYS
from models.database.transactions import is_transient, transaction
from models.flow.begin.messages import receive
from models.flow.run.turns import correct_usage, give_up_turn
from models.pure.pricing.charges import Charge
from models.pure.pricing.usage import Usage
from models.session.spending import standing as spend_standing
from models.session.turn.row import Turn
from models.workspace import spend_sum
from models.workspace.spend_limit import PERIODS, SpendLimit

ACTS = 80
CHEAP = Charge("openai", "n", PRICE, Usage(output_tokens=10_000))
_SPENT = """
    SELECT coalesce(sum(cost), 0) FROM turn_usage WHERE (at AT TIME ZONE 'UTC')::date >= %(since)s
    AND (%(kind)s = 'workspace' OR (%(kind)s = 'agent' AND agent_id = %(scope)s) OR (%(kind)s = 'user' AND person_id = %(scope)s))
"""
_DAYS = _SPENT.replace("(at AT TIME ZONE 'UTC')::date", "day").replace("turn_usage", DAYS)


_AS_BEFORE = """
    UPDATE spend_limit SET since = %(since)s, reserved = reserved + %(reserved)s,
        spent = CASE WHEN since = %(since)s THEN spent ELSE 0 END + %(spent)s
    WHERE id = %(id)s
"""


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
            standings = spend_standing.of_workspace(db)
            running = db.find(Turn, "WHERE status = 'running' AND quote IS NOT NULL")
            for standing in standings:
                row, since = standing.limit, standing.limit.start(database_clock.now(db))
                values = {"kind": row.scope_type, "scope": row.scope_id, "since": since}
                assert standing.spent == db.value(_SPENT, **values) == db.value(_DAYS, **values)
                assert standing.reserved == sum(Decimal((turn.quote or {})["cost"]) for turn in running if self.applies(row, turn))
        return len(standings)

    def applies(self, row: SpendLimit, turn: Turn) -> bool:
        if row.scope_type == "user":
            return bool(turn.quote) and turn.quote.get("person") == row.scope_id
        return row.scope_type == "workspace" or self.stage.read(turn.session_id).agent_id == row.scope_id


def sums(stage: Stage) -> tuple[Any, Any]:
    """What the workspace's one limit has counted: spent, and reserved."""
    with transaction(stage.workspace_id) as db:
        [standing] = spend_standing.of_workspace(db)
    return standing.spent, standing.reserved


@pytest.mark.parametrize("seed", range(3))
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
    limit(stage, "22")
    assert sums(stage) == (10, 11)
    assert stage.claim(begin(stage)) is None
    stage.reply(second, say("That was $10."), turn=turn, charge=COSTS_10)
    assert sums(stage) == (20, 0)


def test_limits_are_listed_while_another_one_is_deleted(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, deleted = limit(stage, "22"), limit(stage, "30", period="weekly")
    query = spend_sum.of_limits

    def delete_first(limit_ids: Sequence[str]) -> Any:
        with transaction(stage.workspace_id) as db:
            SpendLimit.remove(db, stage.principal, deleted.id)
        return query(limit_ids)

    monkeypatch.setattr(spend_sum, "of_limits", delete_first)
    with transaction(stage.workspace_id) as db:
        assert [standing.limit.id for standing in spend_standing.of_workspace(db)] == [kept.id]


def test_processes_of_the_release_before_count_in_the_same_sums(stage: Stage) -> None:
    stage.quote = QUOTE
    row = limit(stage, "40")
    session = begin(stage)
    stage.reply(session, say("That was $10."), charge=COSTS_10)
    assert old_row(stage, row) == (0, 0), "no older process has counted yet"
    count_as_before(stage, row, spent="0", reserved="11")
    assert old_row(stage, row) == sums(stage) == (10, 11)
    count_as_before(stage, row, spent="10", reserved="-11")
    assert old_row(stage, row) == sums(stage) == (20, 0)
    stage.message(session)
    stage.reply(session, say("That was $10."), charge=COSTS_10)
    assert sums(stage) == (30, 0)


def test_a_claim_of_the_release_before_does_not_pass_what_it_cannot_see(stage: Stage) -> None:
    stage.quote = QUOTE
    row = limit(stage, "10")
    stage.reply(begin(stage), say("That was $10."), charge=COSTS_10)
    with pytest.raises(psycopg.errors.SerializationFailure) as refusal:
        count_as_before(stage, row, spent="0", reserved="11")
    assert is_transient(refusal.value)
    assert sums(stage) == (10, 0)


def count_as_before(stage: Stage, row: SpendLimit, spent: str, reserved: str) -> None:
    """Count at a limit as processes of the release before do, who see only the limit's row."""
    with transaction(stage.workspace_id) as db:
        db.rows("SELECT FROM spend_limit WHERE id = %(id)s FOR NO KEY UPDATE", id=row.id)
        since = row.start(database_clock.now(db))
        db.write(_AS_BEFORE, id=row.id, since=since, spent=Decimal(spent), reserved=Decimal(reserved))


def old_row(stage: Stage, row: SpendLimit) -> tuple[Any, Any]:
    """The sums in the limit's own row."""
    before = stage.get(SpendLimit, row.id)
    return before.spent, before.reserved


@pytest.mark.parametrize("quote", ["[7]", '{"cost": "NaN"}', '{"cost": 11}', '{"price": {}}'])
def test_a_quote_that_cannot_be_read_is_released_with_its_turn(stage: Stage, clock: Any, quote: str) -> None:
    stage.quote = QUOTE
    spoiled = begin(stage)
    turn = stage.begin(spoiled)
    clock.advance(400)
    stage.begin(begin(stage))
    limit(stage, "100")
    assert sums(stage) == (0, 22)
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE turn SET quote = CAST(%(quote)s AS jsonb) WHERE id = %(id)s", quote=quote, id=turn.id)
    with transaction(stage.workspace_id) as db:
        give_up_turn(db, spoiled, turn.id, "It cannot be taken back.")
    assert stage.get(Turn, turn.id).status == "failed"
    assert sums(stage) == (0, 11)


def test_an_interrupt_releases_what_each_agent_of_a_session_had_reserved(stage: Stage) -> None:
    stage.quote = QUOTE
    crew = Crew.begin(stage, model=MODEL)
    stage.reply(crew.session_id, send("Reader"), send("Writer"), charge=COSTS_10)
    agents = [thread.agent_id for thread in crew.threads]
    limits = [limit(stage, "100", ("agent", agent)) for agent in agents]
    limits.append(limit(stage, "100"))

    def reserved() -> list[Decimal]:
        with transaction(stage.workspace_id) as db:
            of_limits = {standing.limit.id: standing.reserved for standing in spend_standing.of_workspace(db)}
        return [of_limits[row.id] for row in limits]

    for number in range(2):
        crew.begin_turn(number)
    assert reserved() == [11, 11, 22]
    stage.send(crew.session_id, {"type": "user.interrupt"})
    assert reserved() == [0, 0, 0]
