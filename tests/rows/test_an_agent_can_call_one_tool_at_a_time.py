"""R28: sequential mode asks the model for one call at a time, by its API's own switch and in words."""

import pytest
from rows.stage import Stage

from models.pure import words
from models.workspace.toolset import listed
from models.workspace.workspace import Workspace
from workers.providers import ModelRequest
from workers.turn import Claimed


def asked(stage: Stage, session_id: str) -> ModelRequest:
    """What the model would be asked now."""

    def verb(db, session):  # type: ignore[no-untyped-def]
        policies = Workspace.policies(db)
        agent = session.agent(db)
        rows = {"agent": agent, "policies": policies, "listed": listed(db, agent)}
        claimed = Claimed(turn=None, **rows, messages=[], quote=stage.quote)  # type: ignore[arg-type]
        return claimed.request(stage.tools(db, session))

    found: ModelRequest = stage.locked(session_id, verb)
    return found


@pytest.mark.parametrize(("system", "told"), [(None, words.one_at_a_time()), ("Be kind.", f"Be kind.\n\n{words.one_at_a_time()}")])
def test_it_is_asked_for_by_the_switch_and_in_the_system_prompt(stage: Stage, system: str | None, told: str) -> None:
    session = stage.session()
    stage.change_agent(session, lambda agent: agent.update(disable_parallel_tool_use=True, system=system))
    request = asked(stage, session)
    assert (request.parallel, request.system) == (False, told)


def test_otherwise_nothing_is_said_of_it(stage: Stage) -> None:
    session = stage.session()
    request = asked(stage, session)
    assert (request.parallel, request.system) == (True, None)
