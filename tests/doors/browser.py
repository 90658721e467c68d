"""Pages in a real browser."""

import shutil
from asyncio import AbstractEventLoop, _set_running_loop, get_running_loop
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page, expect, sync_playwright

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""The first one is Chromium without the parts that draw windows. It needs two thirds of the CPU time of the others."""
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--in-process-gpu"]
"""Root has no sandbox. Without a GPU, a process for it costs time alone."""
PATIENCE = 30_000
"""Milliseconds to wait for a page. Long, because the machine may be busy."""
expect.set_options(timeout=PATIENCE)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start an installed Chromium. Skips the test if there is none."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("NOT TESTED, the pages: there is no Chromium")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        except Error:  # seen once: Chromium died of a segmentation fault while it started
            browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Shared:
    """The Chromium of a test process. Playwright's event loop runs as long as Chromium does, even while nobody uses it."""

    browser: Browser
    loop: AbstractEventLoop

    @contextmanager
    def used(self) -> Iterator[Browser]:
        """Have Playwright's loop count as the running one. Outside of the block, tests can run other loops in this thread."""
        _set_running_loop(self.loop)
        try:
            yield self.browser
        finally:
            _set_running_loop(None)


@contextmanager
def shared_chromium() -> Iterator[Shared]:
    """Start a Chromium for all modules of a test process: a start with the first pages costs seconds of CPU time."""
    with chromium() as browser:
        shared = Shared(browser, get_running_loop())
        _set_running_loop(None)
        try:
            yield shared
        finally:
            _set_running_loop(shared.loop)


def watched(page: Page) -> list[str]:
    """Return a list that collects a page's faults from now on: script errors, and loads that its content policy refused."""
    faults: list[str] = []

    def note(message: Any) -> None:
        # The browser logs every error response, also where the page handles it.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            faults.append(message.text)

    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", note)
    return faults
