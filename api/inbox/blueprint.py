"""The inbox's routes: `page` and `action` declare them. Beside them its page for a failure."""

from flask import Blueprint, Response

from api.door import pages
from api.door.framed import FramedPages
from api.inbox import viewing

inbox = Blueprint("inbox", __name__, template_folder="templates")
_pages = FramedPages(inbox, viewing.frame)
page, action = _pages.page, _pages.action

_TITLES = {401: "Signed out", 403: "Not allowed", 404: "Not found", 409: "Too late", 429: "Too many requests"}


def _title(status: int) -> str:
    return _TITLES.get(status, "That did not work")


pages.install(inbox, "failure.html", _title)


@inbox.get("/inbox/<path:rest>")
def missing(rest: str) -> Response:
    """Respond to every other address below /inbox with a 404."""
    return pages.failed("failure.html", 404, _title(404), f"There is no page /inbox/{rest[:200]}.")
