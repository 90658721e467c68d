"""The API in a process of its own, a workspace per test, and hands on both sides of it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import httpx
import pytest
from anthropic import Anthropic
from doors import described
from doors.browser import chromium
from doors.served import Caller, key
from doors.waiting import asked
from people import Somebody, group
from playwright.sync_api import Browser
from rows.stage import Stage

from models.session.tool_call import ToolCall


@pytest.fixture
def caller(api: str, stage: Stage) -> Iterator[Caller]:
    """A client of that workspace that may do everything."""
    with Caller(api, key(stage)) as client:
        yield client


@pytest.fixture
def with_scopes(api: str, stage: Stage) -> Iterator[Callable[..., Caller]]:
    """Makes clients with keys of some scopes."""
    with ExitStack() as stack:
        yield lambda *scopes: stack.enter_context(Caller(api, key(stage, *scopes)))


@pytest.fixture
def as_(api: str) -> Iterator[Callable[[Somebody], httpx.Client]]:
    """A client in which somebody is signed in. Every response is held against the API's own document."""
    with ExitStack() as stack:
        yield lambda who: stack.enter_context(who.client(api, event_hooks={"response": [partial(described.check, api)]}))


@pytest.fixture
def finance(stage: Stage) -> str:
    """A group of people."""
    return group(stage, "finance")


@pytest.fixture
def waiting(caller: Caller, stage: Stage) -> ToolCall:
    """A call of `ls -l` that waits for a person."""
    return asked(caller, stage)[0]


@pytest.fixture
def strict(api: str, caller: Caller) -> Iterator[Anthropic]:
    """The SDK's client: an answer that does not hold under its types raises."""
    secret = caller.headers["x-api-key"]
    with Anthropic(api_key=secret, base_url=api, max_retries=0, _strict_response_validation=True) as client:
        yield client


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; for a module, as nothing else can have an event loop meanwhile."""
    with chromium() as found:
        yield found
