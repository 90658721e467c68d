"""Pages in a real browser, first of all the inbox."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 30_000
"""Milliseconds that anything may take: a busy machine is no failure."""
expect.set_options(timeout=PATIENCE)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Whichever of its kind is installed. Skips, saying so, where none is."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("NOT TESTED, the pages: there is no Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])  # root has no sandbox
        try:
            yield browser
        finally:
            browser.close()


def watched(page: Page) -> list[str]:
    """The faults of a page from now on: errors of its code, and whatever its policy refused."""
    faults: list[str] = []

    def note(message: Any) -> None:
        # The browser notes every response that is an error, whatever the page makes of it.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            faults.append(message.text)

    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", note)
    return faults


class Inbox:
    """A person at the page."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        page.set_default_timeout(PATIENCE)
        self.faults = watched(page)

    def enter(self, key: str, place: str = "") -> None:
        """Open a view with this key."""
        self.page.goto(f"{self.url}/inbox#key={key}")
        self.open(place)

    def open(self, place: str) -> None:
        """Go to a view: an approval's id, or what is asked of the list."""
        self.page.goto(f"{self.url}/inbox#/{place}")

    @property
    def rows(self) -> Locator:
        """The approvals that are listed."""
        return self.page.locator("ul.rows > li")

    @property
    def trouble(self) -> Locator:
        """What the page says on top."""
        return self.page.locator("#trouble")

    def button(self, name: str) -> Locator:
        """A button by its whole name."""
        return self.page.get_by_role("button", name=name, exact=True)

    def unfold(self, title: str) -> None:
        """Open a part that is closed at first."""
        self.page.get_by_text(title, exact=True).click()

    def decided(self, status: str) -> str:
        """What the page says of the decision, once it does."""
        told = self.page.locator("[role=status]").filter(has=self.page.locator("strong", has_text=status))
        expect(told).to_be_visible()
        return told.inner_text()
