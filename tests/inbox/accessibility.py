"""Checks of a page by axe, and of its width."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from inbox.windows import PHONE
from playwright.sync_api import Page

SCRIPT = Axe().axe_script
RUN = "([context, options]) => axe.run(context, options).then(({violations}) => violations)"
"""Returns only what is reported here: the whole result is large, and costs a third of the time."""
VIOLATIONS = {"resultTypes": ["violations"], "preload": False}
"""`preload` reads all style sheets once more, for rules about sounds and about a screen that is turned."""
COLORS = {**VIOLATIONS, "runOnly": ["color-contrast"]}
"""The one rule whose result depends on the colour scheme."""
WHOLE: dict[str, Any] = {"include": [["html"]]}
WITHOUT_FRAME: dict[str, Any] = {"exclude": [[".rail"], [".bar"], [".more"], ["dialog"]]}
"""What all pages have around their contents is the same on each, and is checked on one."""


def check(page: Page, *themes: str, frame: bool = False) -> None:
    """Assert that axe finds nothing: by all rules in the first colour scheme, and by colours in the others."""
    page.evaluate(SCRIPT)
    context, options = WHOLE if frame else WITHOUT_FRAME, VIOLATIONS
    for theme in themes or ("light", "dark"):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        violations = page.evaluate(RUN, [context, options])
        nodes = [(violation["id"], [node["html"][:200] for node in violation["nodes"]]) for violation in violations]
        assert not violations, f"{page.url}, {theme}: {nodes}"
        options = COLORS


def check_at_desk_and_phone(page: Page) -> None:
    """Assert that axe finds nothing on a desk's page, and that it is not wider than a phone."""
    desk = page.viewport_size
    assert desk
    check(page)
    page.set_viewport_size(PHONE["viewport"])
    check_width(page)
    page.set_viewport_size(desk)


def check_width(page: Page) -> None:
    """Assert that the page is not wider than a phone."""
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 360, f"{page.url} is {width} wide"
