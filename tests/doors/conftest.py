"""The API in a process of its own, a workspace per test, and hands on both sides of it."""

from collections.abc import Iterator

import pytest
from anthropic import Anthropic
from doors.browser import chromium
from doors.served import Caller, key
from doors.waiting import asked
from playwright.sync_api import Browser
from rows.stage import Stage

from models.session.tool_call import ToolCall


@pytest.fixture
def caller(api: str, stage: Stage) -> Iterator[Caller]:
    """A client of that workspace that may do everything."""
    with Caller(api, key(stage)) as client:
        yield client


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
