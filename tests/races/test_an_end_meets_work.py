"""An interrupt, an archive or a deletion at the same moment as work: one comes first, and no state is half-done."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from crashes.invariants import check_invariants
from races.races_together import together
from rows.stage import Stage, call, say

from models.database.rows import Stale
from models.database.transactions import transaction
from models.errors import Conflict, NotFound
from models.flow.begin import sessions
from models.schema import TABLES

INTERRUPT = {"type": "user.interrupt"}
ROUNDS = 10


def begun(stage: Stage, **policies: str) -> str:
    """A session whose first turn is queued."""
    session_id = stage.session(**policies)
    stage.message(session_id)
    return session_id


def in_both_orders(end: Callable[[], Any], work: Callable[[], Any], number: int) -> list[Any]:
    """Do both at once. The thread that starts first changes with each round."""
    if number % 2:
        return together(end, work)
    return list(reversed(together(work, end)))


def test_an_interrupt_and_a_checkpoint(stage: Stage) -> None:
    """The reply is discarded, or its calls are cancelled. The session is idle in both cases."""
    for number in range(ROUNDS):
        session_id = begun(stage, bash="always_ask")
        held = stage.claim(session_id)
        stop = partial(stage.send, session_id, INTERRUPT)
        _, kept = in_both_orders(stop, partial(stage.reply, session_id, call(), turn=held), number)
        seen = check_invariants(stage.workspace_id, session_id)
        assert seen.session.status == "idle"
        if isinstance(kept, Stale):
            assert ([t.status for t in seen.turns], seen.calls) == (["cancelled"], [])
        else:
            assert ([t.status for t in seen.turns], [c.status for c in seen.calls]) == (["done"], ["cancelled"])


def test_an_interrupt_and_the_claim_of_a_turn(stage: Stage) -> None:
    """The turn is cancelled in both cases, and its worker's reply is stale."""
    for number in range(ROUNDS):
        session_id = begun(stage)
        stop = partial(stage.send, session_id, INTERRUPT)
        _, held = in_both_orders(stop, partial(stage.claim, session_id), number)
        seen = check_invariants(stage.workspace_id, session_id)
        assert (seen.session.status, seen.turns[0].status) == ("idle", "cancelled")
        if held is not None:
            with pytest.raises(Stale):
                stage.reply(session_id, say("Late."), turn=held)


def test_an_interrupt_and_the_claim_of_a_call(stage: Stage) -> None:
    """The call never starts, or the session stops once the call has ended."""
    for number in range(ROUNDS):
        session_id = begun(stage, bash="always_allow")
        (tool_call,) = stage.reply(session_id, call())
        stop = partial(stage.send, session_id, INTERRUPT)
        _, held = in_both_orders(stop, partial(stage.claim_call, tool_call), number)
        seen = check_invariants(stage.workspace_id, session_id)
        if held is None:
            assert (seen.session.status, seen.calls[0].status) == ("idle", "cancelled")
            continue
        assert seen.session.status == "stopping"
        assert seen.calls[0].cancel_requested_at
        stage.finish_call(held)
        seen = check_invariants(stage.workspace_id, session_id)
        assert (seen.session.status, len(seen.turns)) == ("idle", 1)


def test_an_interrupt_and_a_tool_s_result(stage: Stage) -> None:
    """The result is kept, and no claimable turn follows."""
    for number in range(ROUNDS):
        session_id = begun(stage, bash="always_allow")
        (tool_call,) = stage.reply(session_id, call())
        held = stage.claim_call(tool_call)
        stop = partial(stage.send, session_id, INTERRUPT)
        _, failed = in_both_orders(stop, partial(stage.finish_call, held), number)
        assert failed is None
        seen = check_invariants(stage.workspace_id, session_id)
        assert (seen.session.status, seen.calls[0].status) == ("idle", "done")
        assert [t.status for t in seen.turns[1:]] in ([], ["cancelled"])
        assert stage.claim(session_id) is None


def test_a_message_and_the_end_of_a_turn(stage: Stage) -> None:
    """The message never stays unread in an idle session."""
    for number in range(2 * ROUNDS):
        session_id = begun(stage)
        held = stage.claim(session_id)
        message = partial(stage.message, session_id, "And then?")
        in_both_orders(message, partial(stage.reply, session_id, say("Done."), turn=held), number)
        seen = check_invariants(stage.workspace_id, session_id)
        assert (seen.session.status, [t.status for t in seen.turns]) == ("running", ["done", "queued"])
        assert stage.prompt(stage.claim(session_id)) == [say("And then?")]


def test_a_message_and_an_interrupt_of_a_tool(stage: Stage) -> None:
    """The message starts the next run in both cases."""
    for number in range(ROUNDS):
        session_id = begun(stage, bash="always_allow")
        (tool_call,) = stage.reply(session_id, call())
        held = stage.claim_call(tool_call)
        stage.send(session_id, INTERRUPT)
        in_both_orders(partial(stage.message, session_id, "Next."), partial(stage.finish_call, held), number)
        seen = check_invariants(stage.workspace_id, session_id)
        assert (seen.session.status, seen.turns[-1].status) == ("running", "queued")
        assert stage.prompt(stage.claim(session_id)) == [say("Next.")]


def archive(stage: Stage, session_id: str) -> None:
    """End the session for good."""
    stage.locked(session_id, sessions.archive)


def delete(stage: Stage, session_id: str) -> None:
    """Remove the session."""
    stage.locked(session_id, sessions.delete)


def test_an_archive_and_a_decision(stage: Stage) -> None:
    """Allowed and running, or archived and denied for good."""
    for number in range(ROUNDS):
        session_id = begun(stage, bash="always_ask")
        (tool_call,) = stage.reply(session_id, call())
        allow = partial(stage.confirm, session_id, tool_call.id)
        archived, allowed = in_both_orders(partial(archive, stage, session_id), allow, number)
        seen = check_invariants(stage.workspace_id, session_id)
        one_of(archived, allowed, Conflict)
        expected = ("terminated", "cancelled") if archived is None else ("running", "queued")
        assert (seen.session.status, seen.calls[0].status) == expected


def test_a_deletion_and_a_decision(stage: Stage) -> None:
    """Allowed and running, or gone: the audit and the usage stay."""
    for number in range(ROUNDS):
        session_id = begun(stage, bash="always_ask")
        (tool_call,) = stage.reply(session_id, call())
        allow = partial(stage.confirm, session_id, tool_call.id)
        deleted, allowed = in_both_orders(partial(delete, stage, session_id), allow, number)
        if deleted is None:
            assert isinstance(allowed, NotFound)
            assert left_of(stage, session_id) == {"audit", "turn_usage"}
        else:
            assert isinstance(deleted, Conflict)
            assert check_invariants(stage.workspace_id, session_id).calls[0].status == "queued"


def test_an_archive_and_a_message(stage: Stage) -> None:
    """The message is accepted, or refused by the archived session."""
    for number in range(ROUNDS):
        session_id = stage.session()
        message = partial(stage.message, session_id)
        archived, taken = in_both_orders(partial(archive, stage, session_id), message, number)
        one_of(archived, taken, Conflict)
        seen = check_invariants(stage.workspace_id, session_id)
        assert seen.session.status == ("terminated" if archived is None else "running")
        assert len(seen.of("user.message")) == (0 if archived is None else 1)


def one_of(first: Any, second: Any, refusal: type[Exception]) -> None:
    """Assert that exactly one of two was refused."""
    assert isinstance(first, refusal) != isinstance(second, refusal), (first, second)


def left_of(stage: Stage, session_id: str) -> set[str]:
    """The tables that still have rows of a session."""
    named = {"session": "id", "audit": "chain"}
    left = set()
    with transaction(stage.workspace_id) as db:
        for table in (one.__table__ for one in TABLES):
            column = table.columns.get(named.get(table.name, "session_id"))
            if column is not None and db.rows(f'SELECT FROM "{table.name}" WHERE "{column.name}" = %(id)s LIMIT 1', id=session_id):
                left.add(table.name)
    return left
