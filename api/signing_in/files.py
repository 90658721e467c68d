"""The script of the pages for signing in."""

from pathlib import Path

from flask import Response

from api import pages
from api.pages import readable
from api.signing_in.blueprint import signing_in
from models.errors import NotFound

_TYPES = {"passkey.js": "text/javascript"}
_FILES = {name: (Path(__file__).parent / "static" / name).read_bytes() for name in _TYPES}


@signing_in.get("/sign-in/static/<name>")
@readable
def file(name: str) -> Response:
    """One of the files."""
    if name not in _FILES:
        raise NotFound("file", name[:80])
    return Response(_FILES[name], mimetype=_TYPES[name], headers=pages.HEADERS | {"cache-control": "no-cache"})
