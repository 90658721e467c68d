"""An environment with sessions is not deleted. A session created at the same moment comes before the deletion or after it."""

import psycopg
import pytest
from rows.stage import Stage

from models.database.transactions import transaction
from models.errors import Conflict, Invalid
from models.workspace.environment import Environment, NewEnvironment

BRIEFLY = "SET LOCAL lock_timeout = '50ms'"


@pytest.fixture
def environment(stage: Stage) -> str:
    """An environment without sessions."""
    with transaction(stage.workspace_id) as db:
        return Environment.create(db, stage.principal, NewEnvironment("Theirs")).id


def delete(stage: Stage, environment: str) -> None:
    """Delete the environment, waiting for locks only briefly."""
    with transaction(stage.workspace_id) as db:
        db.write(BRIEFLY)
        Environment.lock(db, environment).delete(db, stage.principal)


def choose(stage: Stage, environment: str) -> None:
    """Read the environment for a new session, waiting for locks only briefly."""
    with transaction(stage.workspace_id) as db:
        db.write(BRIEFLY)
        Environment.for_session(db.read(Environment.keeping(environment))[0])


def test_no_session_begins_while_its_environment_is_deleted(stage: Stage, environment: str) -> None:
    with transaction(stage.workspace_id) as deleting:
        Environment.lock(deleting, environment).delete(deleting, stage.principal)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            choose(stage, environment)
    with pytest.raises(Invalid, match="no such environment"):
        choose(stage, environment)


def test_a_deletion_waits_for_a_session_that_begins(stage: Stage, environment: str) -> None:
    session = stage.session()
    with transaction(stage.workspace_id) as creating:
        creating.read(Environment.keeping(environment))
        with pytest.raises(psycopg.errors.LockNotAvailable):
            delete(stage, environment)
        creating.write("UPDATE session SET environment_id = %(to)s WHERE id = %(id)s", to=environment, id=session)
    with pytest.raises(Conflict, match="Sessions refer"):
        delete(stage, environment)
