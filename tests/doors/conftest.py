"""Fixtures of the API's tests: an API server in its own process, an empty workspace per test, and clients."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import httpx2
import pytest
from anthropic import Anthropic
from doors import described
from doors.served import SIGN_IN_WORKSPACE, Caller, key
from doors.waiting import asked
from people import Somebody, group
from rows.stage import Stage

from models.database import ids
from models.session.tool_call.row import ToolCall


@pytest.fixture
def caller(api: str, stage: Stage) -> Iterator[Caller]:
    """A client of the stage's workspace, with every scope."""
    with Caller(api, key(stage)) as client:
        yield client


@pytest.fixture
def with_scopes(api: str, stage: Stage) -> Iterator[Callable[..., Caller]]:
    """A function that returns a client whose key has the given scopes."""
    with ExitStack() as stack:
        yield lambda *scopes: stack.enter_context(Caller(api, key(stage, *scopes)))


@pytest.fixture
def as_(api: str) -> Iterator[Callable[[Somebody], httpx2.Client]]:
    """A function that returns a client in which a person is signed in. Checks every response against the OpenAPI document."""
    with ExitStack() as stack:
        yield lambda who: stack.enter_context(who.client(api, event_hooks={"response": [partial(described.check, api)]}))


@pytest.fixture
def sign_in_stage(clean_database: object, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A workspace with the id `SIGN_IN_WORKSPACE`, which a server's settings can name."""
    new = ids.new
    monkeypatch.setattr(ids, "new", lambda prefix: SIGN_IN_WORKSPACE if prefix == "wrkspc" else new(prefix))
    return Stage()


@pytest.fixture
def finance(stage: Stage) -> str:
    """The id of the group `finance`."""
    return group(stage, "finance")


@pytest.fixture
def waiting(caller: Caller, stage: Stage) -> ToolCall:
    """A call of `ls -l` that waits for a person."""
    return asked(caller, stage)[0]


@pytest.fixture
def strict(api: str, caller: Caller) -> Iterator[Anthropic]:
    """The SDK's client. A response that does not fit the SDK's types raises."""
    secret = caller.headers["x-api-key"]
    with Anthropic(api_key=secret, base_url=api, max_retries=0, _strict_response_validation=True) as client:
        yield client
