"""Rule 16, I7: a process renews and looks at what it still holds, by fence; what was taken from it or has ended is not told."""

from typing import Any

from rows.stage import Stage, call

from models.session import lease
from models.session.tool_call import ToolCall
from models.session.turn import Turn


def test_a_lease_that_was_taken_over_is_not_renewed_by_who_had_it(stage: Stage, clock: Any) -> None:
    session = stage.session()
    stage.message(session)
    zombie = stage.claim(session)
    assert zombie
    clock.advance(60)
    stage.rescue(zombie)
    assert lease.look([(zombie.id, zombie.fence)]) == lease.renew([(zombie.id, zombie.fence)]) == {}
    assert stage.get(Turn, zombie.id).lease_until is None
    heir = stage.claim(session)
    assert heir
    clock.advance(30)
    assert lease.look([(zombie.id, zombie.fence)]) == lease.renew([(zombie.id, zombie.fence)]) == {}
    assert stage.get(Turn, heir.id).lease_until == heir.lease_until
    assert lease.look([(heir.id, heir.fence)]) == lease.renew([(heir.id, heir.fence)]) == {heir.id: False}
    renewed = stage.get(Turn, heir.id).lease_until
    assert renewed
    assert heir.lease_until
    assert renewed > heir.lease_until


def test_who_renews_or_looks_hears_that_the_run_was_ended(stage: Stage) -> None:
    session = stage.session(bash="always_allow")
    stage.message(session)
    [found] = stage.reply(session, call())
    held = stage.claim_call(found)
    assert held
    mine = [(held.id, held.fence)]
    assert lease.look(mine) == lease.renew(mine) == {held.id: False}
    stage.send(session, {"type": "user.interrupt"})
    assert lease.look(mine) == lease.renew(mine) == {held.id: True}
    stage.finish_call(held)
    assert lease.look(mine) == lease.renew(mine) == {}
    assert stage.get(ToolCall, held.id).lease_until is None
