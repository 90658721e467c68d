"""The API's reference: a document for generators, and a page for people. Neither needs a key, nor anything from elsewhere."""

from flask import Blueprint, Response, current_app, render_template

from api import openapi
from api.door import Door, dumps, opens, respond

reference = Blueprint("reference", __name__, template_folder=".")


@reference.get("/openapi.json")
@opens(Door(key=False))
def document() -> Response:
    """This document: OpenAPI 3.1."""
    return respond(dumps(openapi.document(current_app)))


@reference.get("/docs")
@opens(Door(key=False, media_type="text/html"))
def page() -> Response:
    """This document as a page."""
    said = render_template("docs.html", document=openapi.document(current_app))
    policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
    return Response(said, mimetype="text/html", headers={"content-security-policy": policy})
