"""Windows of one browser, used again by test after test: a new window costs Chromium over a second of CPU time.

A page from elsewhere, or without the pages' opener policy, costs a fifth of a second, because Chromium starts a process for it.
So a window that rests shows a file of the pages, and not `about:blank`.
"""

from dataclasses import dataclass, field
from typing import Any

from doors.browser import PATIENCE, watched
from playwright.sync_api import Browser, Page

PHONE: dict[str, Any] = {
    "viewport": {"width": 360, "height": 740},
    "has_touch": True,
    "is_mobile": True,
    "device_scale_factor": 1.5,
}


@dataclass(eq=False)
class Window:
    """A page in a context of its own. `is_used_up` is true if the window must serve no other test."""

    page: Page
    faults: list[str]
    color_scheme: Any
    """As the window was opened."""
    is_used_up: bool = False

    def control_time(self) -> None:
        """Let the test move the page's time. Nothing gives a window its real time back."""
        self.is_used_up = True
        self.page.clock.install()

    def clear(self, rest: str) -> None:
        """Go to the URL `rest`, forget who is signed in, and forget the faults."""
        self.page.goto(rest)
        self.page.context.clear_cookies()
        self.page.emulate_media(color_scheme=self.color_scheme)
        self.faults.clear()


@dataclass
class Windows:
    """The windows of one browser that no test uses at the moment, by their options."""

    browser: Browser
    rest: str
    """The URL of a page on which nothing happens."""
    idle: dict[str, list[Window]] = field(default_factory=dict)
    used: list[tuple[str, Window]] = field(default_factory=list)

    def open(self, *, phone: bool = False, **options: Any) -> Window:
        """Return a blank window with these options of a Playwright context, in which nobody is signed in."""
        options = (PHONE if phone else {}) | options
        key = repr(sorted(options.items()))
        window = self.idle[key].pop() if self.idle.get(key) else self._new(options)
        self.used.append((key, window))
        return window

    def _new(self, options: dict[str, Any]) -> Window:
        page = self.browser.new_context(**options).new_page()
        page.set_default_timeout(PATIENCE)
        return Window(page, watched(page), options.get("color_scheme", "null"))

    def end_test(self) -> list[str]:
        """Take all windows back. Returns the faults of their pages."""
        used, self.used = self.used, []
        faults = [fault for _, window in used for fault in window.faults]
        for key, window in used:
            if window.is_used_up:
                window.page.context.close()
            else:
                window.clear(self.rest)
                self.idle.setdefault(key, []).append(window)
        return faults
