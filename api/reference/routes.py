"""Routes without a key: a description of this server, the OpenAPI document, and the API's reference in Swagger UI.

Swagger UI comes from the package `flask-swagger-ui`. Only its files are used, as its own page has an inline script.
"""

from importlib.metadata import version
from pathlib import Path

import flask_swagger_ui
from flask import Blueprint, Response, current_app, request, send_file

from api.door.routes import HTML, JSON, Door, View, dumps, opens, respond
from api.reference import openapi
from api.reference.responses import OpenApi, Service
from models import DISTRIBUTION

reference = Blueprint("reference", __name__)

_HERE = Path(__file__).parent
_SWAGGER_UI = Path(flask_swagger_ui.__file__).parent / "dist"
_FILES = {
    _HERE / "docs.js": "text/javascript",
    _HERE / "docs.css": "text/css",
    _SWAGGER_UI / "swagger-ui-bundle.js": "text/javascript",
    _SWAGGER_UI / "swagger-ui.css": "text/css",
}
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cache-control": "no-cache",
}


@reference.get("/")
@opens(Door(Service, key=False, browsers_go_to="inbox"))
def root() -> Response:
    """Describe this server to programs, and send browsers to the inbox."""
    vary = {"vary": "accept"}
    if request.accept_mimetypes.best_match([JSON, HTML]) == HTML:
        return Response(status=303, headers=vary | {"location": "inbox/home"})
    return respond(
        dumps(Service(name="assent", version=version(DISTRIBUTION), docs="/docs", openapi="/openapi.json", healthz="/healthz")),
        **vary,
    )


@reference.get("/openapi.json")
@opens(Door(OpenApi, key=False))
def document() -> Response:
    """Return this document, OpenAPI 3.1, for generators of clients."""
    return respond(dumps(OpenApi.from_row(None, **openapi.document(current_app))))


@reference.get("/docs")
@opens(Door(key=False, media_type=HTML))
def page() -> Response:
    """Show this document as a page for people, with search and a form to try each request."""
    return Response((_HERE / "docs.html").read_text("utf-8"), mimetype=HTML, headers=_HEADERS)


def _file(path: Path, media_type: str) -> View:
    """Return a view of a file of the page `/docs`. The OpenAPI document does not list such files."""

    def view() -> Response:
        response = send_file(path, mimetype=media_type)
        response.headers.update(_HEADERS)
        return response

    return view


for file, media_type in _FILES.items():
    reference.add_url_rule(f"/docs/{file.name}", file.name.replace(".", "_"), _file(file, media_type))
