"""The stylesheet, the script and the icon. Their addresses have a hash, so that a browser keeps each for good."""

from functools import cache
from hashlib import sha256
from pathlib import Path

from flask import Response

from api.inbox.blueprint import inbox
from models.errors import NotFound

_FOLDER = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FILES = {path.name: path.read_bytes() for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}


@inbox.get("/inbox/static/<name>")
def file(name: str) -> Response:
    """One of the files."""
    if name not in FILES:
        raise NotFound("file", name[:80])
    headers = {"cache-control": "public, max-age=31536000, immutable"}
    return Response(FILES[name], mimetype=_TYPES[Path(name).suffix], headers=headers)


@cache
def address(name: str) -> str:
    """Where a file is. The address changes with the file."""
    return f"/inbox/static/{name}?v={sha256(FILES[name]).hexdigest()[:12]}"
