"""`disable_parallel_tool_use` asks the model for one call at a time, by its API's own switch and in the system prompt."""

import pytest
from rows.stage import Stage

from models.pure.text import words
from models.workspace.row import Workspace
from models.workspace.toolset import listings_of
from workers.offer import Offer
from workers.providers import ModelRequest


def request_of(stage: Stage, session_id: str) -> ModelRequest:
    """The request that the model would be sent now."""

    def verb(locked):  # type: ignore[no-untyped-def]
        policies = Workspace.policies(locked.db)
        agent = locked.session.agent(locked.db)
        offer = Offer(agent, policies, listings_of(locked.db, agent), keys={}, messages=[], charge=stage.quote)
        return offer.request(stage.tools(locked))

    request: ModelRequest = stage.locked(session_id, verb)
    return request


@pytest.mark.parametrize(
    ("system", "prompt"),
    [(None, words.one_at_a_time()), (" \n", words.one_at_a_time()), ("Be kind.", f"Be kind.\n\n{words.one_at_a_time()}")],
)
def test_the_switch_and_the_system_prompt_ask_for_one_call(stage: Stage, system: str | None, prompt: str) -> None:
    session = stage.session()
    stage.change_agent(session, lambda agent: agent.update(disable_parallel_tool_use=True, system=system))
    request = request_of(stage, session)
    assert (request.parallel, request.system) == (False, prompt)


def test_without_it_the_request_says_nothing_about_parallel_calls(stage: Stage) -> None:
    session = stage.session()
    request = request_of(stage, session)
    assert (request.parallel, request.system) == (True, None)


def test_a_blank_system_prompt_is_not_sent_because_models_refuse_it(stage: Stage) -> None:
    session = stage.session()
    stage.change_agent(session, lambda agent: agent.update(system=" \n"))
    assert request_of(stage, session).system is None
