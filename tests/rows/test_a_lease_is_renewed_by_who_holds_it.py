"""A process renews, by fence, the leases that it still holds, and learns which of its runs were ended."""

from collections.abc import Callable
from typing import Any

from rows.stage import Stage, call

from models.database import renewals, transactions
from models.database.transactions import transaction
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn
from workers import leases


def test_a_lease_that_was_taken_over_is_not_renewed_by_its_first_holder(stage: Stage, clock: Any) -> None:
    session = stage.session()
    stage.message(session)
    zombie = stage.begin(session)
    stage.lose(zombie, clock)
    assert renewals.look([(zombie.id, zombie.fence)]) == renewals.renew([(zombie.id, zombie.fence)]) == {}
    assert stage.get(Turn, zombie.id).lease_until is None
    heir = stage.begin(session)
    clock.advance(30)
    assert renewals.look([(zombie.id, zombie.fence)]) == renewals.renew([(zombie.id, zombie.fence)]) == {}
    assert stage.get(Turn, heir.id).lease_until == heir.lease_until
    assert renewals.look([(heir.id, heir.fence)]) == renewals.renew([(heir.id, heir.fence)]) == {heir.id: False}
    renewed = stage.get(Turn, heir.id).lease_until
    assert renewed
    assert heir.lease_until
    assert renewed > heir.lease_until


def test_the_holder_of_a_lease_learns_that_the_run_was_ended(stage: Stage) -> None:
    session = stage.session(bash="always_allow")
    tool_call = stage.propose(session)
    held = stage.begin_call(tool_call)
    mine = [(held.id, held.fence)]
    assert renewals.look(mine) == renewals.renew(mine) == {held.id: False}
    stage.send(session, {"type": "user.interrupt"})
    assert renewals.look(mine) == renewals.renew(mine) == {held.id: True}
    stage.finish_call(held)
    assert renewals.look(mine) == renewals.renew(mine) == {}
    assert stage.get(ToolCall, held.id).lease_until is None


def test_a_lease_is_renewed_although_the_work_holds_all_connections(stage: Stage, setting: Callable[[str, str], None]) -> None:
    session = stage.session()
    stage.message(session)
    turn = stage.begin(session)
    transactions.dispose()
    setting("database_pool_size", "1")
    setting("database_pool_timeout_seconds", "0.2")
    with transaction(stage.workspace_id) as db:
        db.value("SELECT 1")
        assert renewals.renew([(turn.id, turn.fence)]) == {turn.id: False}
    transactions.dispose()  # later tests have pools of the usual size


def test_a_process_that_claims_a_row_anew_has_lost_its_old_lease(stage: Stage, clock: Any) -> None:
    tool_call = stage.propose(stage.session(read="always_allow"), call("read", file_path="a"))
    zombie = stage.begin_call(tool_call)
    with leases.hold(zombie) as old:
        stage.lose(zombie, clock)
        heir = stage.begin_call(tool_call)
        with leases.hold(heir) as new:
            assert old.lost.wait(10)
            assert not new.lost.is_set()
