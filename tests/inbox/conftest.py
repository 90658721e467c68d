"""Served pages, people with browsers, and a message with a link about a call that waits."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import people
import pytest
from doors.browser import Shared
from inbox.linked import Message, new_message
from inbox.plain import Plain
from inbox.visitor import Visitor
from inbox.waiting import asked
from inbox.windows import Windows
from playwright.sync_api import Browser
from rows.stage import Stage

from api.desk.shell import files
from models.people.roles import Role
from models.session.approval.row import Approval


@pytest.fixture(scope="session")
def all_windows(shared_browser: Shared, api: str) -> Windows:
    """The browser's windows."""
    return Windows(shared_browser.browser, api + files.address("glyphs.svg"))


@pytest.fixture
def windows(browser: Browser, all_windows: Windows) -> Iterator[Windows]:
    """Windows for one test, which fails if a page has a fault."""
    yield all_windows
    assert all_windows.end_test() == []


@pytest.fixture
def visit(windows: Windows, api: str, stage: Stage) -> Callable[..., Visitor]:
    """`visit(role, **options)`: a person of the stage's workspace in a window of the browser."""
    count = iter(range(99))

    def enter(role: Role = "admin", *, somebody: people.Somebody | None = None, **options: object) -> Visitor:
        window = windows.open(**options)
        number = next(count)
        who = somebody or people.member(stage, role, email=f"{role}{number}@example.com")
        who.enter(window.page.context, api)
        return Visitor(window, api, who)

    return enter


@pytest.fixture
def admin(visit: Callable[..., Visitor]) -> Visitor:
    """An admin at a desk."""
    return visit("admin")


@pytest.fixture
def visit_without_scripts(api: str, stage: Stage) -> Iterator[Callable[..., Plain]]:
    """`visit_without_scripts(role)`: a person of the stage's workspace whose browser runs no scripts."""
    count = iter(range(99))
    with ExitStack() as clients:

        def enter(role: Role = "admin", *, somebody: people.Somebody | None = None) -> Plain:
            number = next(count)
            who = somebody or people.member(stage, role, email=f"{role}{number}@example.com")
            return Plain(clients.enter_context(who.client(api)), who)

        yield enter


@pytest.fixture
def plain(visit_without_scripts: Callable[..., Plain]) -> Plain:
    """An admin whose browser runs no scripts."""
    return visit_without_scripts("admin")


@pytest.fixture
def anna(stage: Stage) -> people.Somebody:
    return people.member(stage, email="anna@example.com")


@pytest.fixture
def approval(stage: Stage) -> Approval:
    """The approval of a call that waits."""
    return asked(stage)[0]


@pytest.fixture
def message(stage: Stage, approval: Approval, anna: people.Somebody) -> Message:
    """Anna's message about `approval`."""
    return new_message(stage, approval, anna)
