"""The pages as they are served, a workspace per test, and people with browsers."""

from collections.abc import Callable, Iterator

import people
import pytest
from doors.browser import chromium
from inbox.visitor import Visitor
from playwright.sync_api import Browser
from rows.stage import Stage

from models.people.roles import Role

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True, "device_scale_factor": 1.5}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; for a module, as nothing else can have an event loop meanwhile."""
    with chromium() as found:
        yield found


@pytest.fixture
def visit(browser: Browser, api: str, stage: Stage) -> Iterator[Callable[..., Visitor]]:
    """`visit(role, **options)`: a person of the stage's workspace in a window of the browser. Nothing may go wrong in it."""
    visitors: list[Visitor] = []

    def enter(role: Role = "admin", *, phone: bool = False, somebody: people.Somebody | None = None, **options: object) -> Visitor:
        window = browser.new_context(**(PHONE if phone else {}) | options)  # type: ignore[arg-type]
        who = somebody or people.member(stage, role, email=f"{role}{len(visitors)}@example.com")
        who.enter(window, api)
        visitors.append(Visitor(window.new_page(), api, who))
        return visitors[-1]

    yield enter
    for visitor in visitors:
        visitor.page.context.close()
    assert [fault for visitor in visitors for fault in visitor.faults] == []


@pytest.fixture
def admin(visit: Callable[..., Visitor]) -> Visitor:
    """An admin at a desk."""
    return visit("admin")
