"""Checks of a page by axe, and of its width."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

VIOLATIONS = {"resultTypes": ["violations"]}
COLORS = {**VIOLATIONS, "runOnly": ["color-contrast"]}
"""The one rule whose result depends on the colour scheme."""


def check(page: Page, *themes: str) -> None:
    """Assert that axe finds nothing: by all rules in the first colour scheme, and by colours in the others."""
    axe, options = Axe(), VIOLATIONS
    for theme in themes or ("light", "dark"):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        violations = axe.run(page, options=options).response["violations"]
        nodes = [(violation["id"], [node["html"][:200] for node in violation["nodes"]]) for violation in violations]
        assert not violations, f"{page.url}, {theme}: {nodes}"
        axe.axe_script, options = "0", COLORS  # the page has loaded the script


def check_width(page: Page) -> None:
    """Assert that the page is not wider than a phone."""
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 360, f"{page.url} is {width} wide"
