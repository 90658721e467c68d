"""A person in a browser, at the inbox."""

from inbox.windows import Window
from people import Somebody
from playwright.sync_api import Locator

CARD_IS_THERE = """
    () => {
      const [pane, row] = ["#pane:not([hidden])", "[data-rows] > li.selected"].map((one) => document.querySelector(one));
      return !row || !pane?.checkVisibility() || pane.querySelector(`:scope:not(.loading) > [data-of="${row.id}"]`);
    }
"""
"""The pane beside a list shows the card of the selected row."""
SETTLED = """
    Promise.allSettled(document.getAnimations().filter((one) => one.effect.target.checkVisibility()).map((one) => one.finished))
    .then(() => null)
"""


class Visitor:
    """A person at a page."""

    def __init__(self, window: Window, url: str, somebody: Somebody) -> None:
        self.window, self.page, self.url, self.somebody = window, window.page, url, somebody

    def open(self, path: str = "/inbox") -> None:
        """Go to a page."""
        self.page.goto(self.url + path)

    @property
    def rows(self) -> Locator:
        """The lines of the list."""
        return self.page.locator("ul.rows > li")

    def button(self, name: str) -> Locator:
        """A button by the beginning of its name, as a key may be named behind it."""
        return self.page.get_by_role("button", name=name)

    def press(self, keys: str) -> None:
        """Press these keys, one after the other, each when the buttons of the page decide."""
        for key in keys:
            self.settle()
            self.page.keyboard.press(key)

    def settle(self) -> None:
        """Wait until the page's buttons decide: a card that has just come does not let them."""
        self.page.wait_for_function(CARD_IS_THERE, polling=50)
        self.page.evaluate(SETTLED)

    def deny(self, message: str = "", button: str = "Deny") -> None:
        """Deny the call of a card, with a message to the agent."""
        panel = self.page.locator("details.deny")
        panel.locator("> summary").click()
        panel.get_by_label("Why not?").fill(message)
        panel.get_by_role("button", name=button, exact=True).click()

    def more(self) -> None:
        """Open a card's further answers."""
        self.page.locator("details.more-answers > summary").click()

    def unfold(self, title: str) -> None:
        """Open a part that is closed at first."""
        self.page.get_by_text(title, exact=True).click()
