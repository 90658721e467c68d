"""No role of a process can change or remove an act or a signature, and the owner cannot by accident."""

import psycopg
import pytest
from audit.tampering import Intruder, act, sealed
from own_database import DatabaseUrls
from psycopg.errors import InsufficientPrivilege
from rows.stage import Stage

CHANGES = ["UPDATE {} SET workspace_id = workspace_id", "DELETE FROM {}", "TRUNCATE {}", "DELETE FROM {} WHERE false"]


@pytest.mark.parametrize("table", ["audit", "seal"])
@pytest.mark.parametrize("role", ["app", "system", "owner", "admin"])
@pytest.mark.parametrize("change", CHANGES)
def test_acts_and_signatures_cannot_be_changed_or_removed(
    stage: Stage, intruder: Intruder, key: object, database_urls: DatabaseUrls, role: str, table: str, change: str
) -> None:
    act(stage)
    sealed(stage)
    with psycopg.connect(getattr(database_urls, role), autocommit=True) as db:
        db.execute("SELECT set_config('assent.workspace', %s, false)", [stage.workspace_id])
        with pytest.raises(InsufficientPrivilege, match="permission denied" if role in {"app", "system"} else "only added to"):
            db.execute(change.format(table))
    assert intruder.length(stage.workspace_id) > 2
    assert intruder.db.execute("SELECT count(*) FROM seal").fetchone() == (1,)
