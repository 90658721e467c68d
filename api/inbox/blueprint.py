"""The inbox's routes, the headers of its pages, and its page for a failure."""

from flask import Blueprint, Response, render_template
from werkzeug.exceptions import HTTPException

from api import errors, pages
from api.door import HTML
from models.errors import Refusal

inbox = Blueprint("inbox", __name__, template_folder="templates")

_TITLES = {401: "Signed out", 403: "Not allowed", 404: "Not found", 409: "Too late", 429: "Too many requests"}


@inbox.after_request
def protect(response: Response) -> Response:
    """Give each response the policy that keeps everything foreign out."""
    for name, value in pages.HEADERS.items():
        response.headers.setdefault(name, value)
    return response


@inbox.errorhandler(Refusal)
def refuse(refusal: Refusal) -> Response:
    """The page of a refusal that no form can show."""
    response = _failed(errors.status_of(refusal), str(refusal))
    if isinstance(refusal, errors.Denied):
        response.headers.update(refusal.headers)
    return response


@inbox.errorhandler(HTTPException)
def fail(error: HTTPException) -> Response:
    """The page of a request that Flask refuses."""
    return _failed(error.code or 500, error.description or error.name)


@inbox.get("/inbox/<path:rest>")
def missing(rest: str) -> Response:
    """Whatever is no page."""
    return _failed(404, f"There is no page /inbox/{rest[:200]}.")


def _failed(status: int, message: str) -> Response:
    text = render_template("failure.html", heading=_TITLES.get(status, "That did not work"), message=message)
    return Response(text, status, mimetype=HTML)
