"""The routes of the desk: `page` and `action` declare them. Beside them its page for a failure.

A template's name is its path in `api/desk`, such as `card/card.html`.
"""

from pathlib import Path
from typing import Any

from flask import Blueprint, Response

from api.desk.shell import viewing
from api.door import browser, pages
from api.door.framed import FramedPages
from models.database.transactions import transaction

desk = Blueprint("desk", __name__, template_folder=str(Path(__file__).parents[1]))
_pages = FramedPages(desk, viewing.frame)
page, action = _pages.page, _pages.action

_FAILURE = "shell/failure.html"
_FRAMED = frozenset({400, 403, 404, 409})
"""Statuses of refusals, which the rail surrounds."""
_TITLES = pages.HEADINGS | {
    401: "Signed out",
    403: "Not allowed",
    404: "Not found",
    409: "Too late",
}


def _title(status: int) -> str:
    return _TITLES.get(status, "That did not work")


def frame_of_refusal(status: int) -> dict[str, Any]:
    """Return what a refusal has around it for a person who is signed in. A fault of the server stands alone."""
    person = browser.current_person() if status in _FRAMED else None
    if person is None:
        return {}
    with transaction(person.workspace_id) as db:
        return viewing.frame(db, person) | {"section": ""}


pages.install(desk, _FAILURE, _title, frame=frame_of_refusal)


@desk.get("/inbox/<path:rest>")
def missing(rest: str) -> Response:
    """Respond to every other address below /inbox with a 404."""
    pages.current()
    return pages.failed(_FAILURE, 404, _title(404), f"There is no page /inbox/{rest[:200]}.", **frame_of_refusal(404))
