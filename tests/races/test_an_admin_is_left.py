"""Whoever removes whom at the same moment: an admin is left, and nothing deadlocks."""

from collections.abc import Callable
from functools import partial

import pytest
from people import Somebody, member
from races.races_together import of_kind, together
from rows.stage import Stage

from models.database.transactions import transaction
from models.errors import Conflict
from models.operate.personal_data import person
from models.people.member import Member

ROUNDS = 10

Act = Callable[[Stage, Somebody, Somebody], None]


def erase(stage: Stage, by: Somebody, other: Somebody) -> None:
    with transaction(stage.workspace_id) as db:
        person.erase(db, other.person_id, "Asked.", by=by.principal)


def deactivate(stage: Stage, by: Somebody, other: Somebody) -> None:
    with transaction(stage.workspace_id) as db:
        Member.deactivate(db, other.person_id, by=by.principal)


def demote(stage: Stage, by: Somebody, other: Somebody) -> None:
    with transaction(stage.workspace_id) as db:
        Member.change_role(db, other.person_id, "approver", by=by.principal)


def admins(stage: Stage) -> int:
    with transaction(stage.workspace_id) as db:
        return len(db.find(Member, "WHERE role = 'admin' AND deactivated_at IS NULL"))


@pytest.mark.parametrize(
    ("first", "second"), [(erase, erase), (deactivate, deactivate), (demote, demote), (deactivate, demote), (erase, deactivate)]
)
def test_of_two_admins_who_remove_each_other_one_is_left(clean_database: object, first: Act, second: Act) -> None:
    for _ in range(ROUNDS):
        stage = Stage()
        anna, ben = member(stage, "admin"), member(stage, "admin")
        outcomes = together(partial(first, stage, anna, ben), partial(second, stage, ben, anna))
        assert len(of_kind(outcomes, Conflict)) == 1, outcomes
        assert admins(stage) == 1


@pytest.mark.parametrize("act", [erase, deactivate, demote])
def test_the_last_admin_stays_also_by_a_key(stage: Stage, act: Act) -> None:
    anna = member(stage, "admin")
    key = Somebody(stage.principal, "", "")  # type: ignore[arg-type] - a principal that is no person
    with pytest.raises(Conflict, match="the last admin of the workspace"):
        act(stage, key, anna)
    assert admins(stage) == 1
