"""No role of a process can change or remove an act or a signature, and the owner cannot by accident."""

from itertools import product

import psycopg
import pytest
from audit.tampering import Intruder, act, sealed
from own_database import DatabaseUrls
from psycopg.errors import InsufficientPrivilege
from rows.stage import Stage

CHANGES = ["UPDATE {} SET workspace_id = workspace_id", "DELETE FROM {}", "TRUNCATE {}", "DELETE FROM {} WHERE false"]
REFUSALS = {"app": "permission denied", "system": "permission denied", "owner": "only added to", "admin": "only added to"}
"""How the database refuses, by role."""


def test_acts_and_signatures_cannot_be_changed_or_removed(
    stage: Stage, intruder: Intruder, key: object, database_urls: DatabaseUrls, subtests: pytest.Subtests
) -> None:
    act(stage)
    sealed(stage)
    length = intruder.length(stage.workspace_id)
    assert length > 2
    for role, refusal in REFUSALS.items():
        with psycopg.connect(getattr(database_urls, role), autocommit=True) as db:
            db.execute("SELECT set_config('assent.workspace', %s, false)", [stage.workspace_id])
            for table, change in product(("audit", "seal"), CHANGES):
                with subtests.test(f"{role}: {change.format(table)}"), pytest.raises(InsufficientPrivilege, match=refusal):
                    db.execute(change.format(table))
    assert intruder.length(stage.workspace_id) == length
    assert intruder.db.execute("SELECT count(*) FROM seal").fetchone() == (1,)
