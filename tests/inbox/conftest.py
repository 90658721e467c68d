"""The pages as they are served, a workspace per test, and people with browsers."""

from collections.abc import Callable, Iterator

import people
import pytest
from doors.browser import chromium
from inbox.visitor import Visitor
from inbox.windows import Windows
from playwright.sync_api import Browser
from rows.stage import Stage

from models.people.roles import Role


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; for a module, as nothing else can have an event loop meanwhile."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def all_windows(browser: Browser) -> Windows:
    """The browser's windows."""
    return Windows(browser)


@pytest.fixture
def windows(all_windows: Windows) -> Iterator[Windows]:
    """Windows for one test. Nothing may go wrong in them."""
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
