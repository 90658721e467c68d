"""The stylesheet, the scripts and the icon. Their addresses have a hash, so that a browser keeps each for good."""

from hashlib import sha256
from pathlib import Path

from flask import Response

from api.inbox.blueprint import inbox
from models.errors import NotFound

_FOLDER = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FILES = {path.name: path.read_bytes() for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}
VERSION = sha256(b"".join(FILES.values())).hexdigest()[:12]
"""A part of every address, so that the modules that one file imports are of the same version."""


@inbox.get("/inbox/static/<version>/<name>")
def file(version: str, name: str) -> Response:
    """Return a file. A page of another release gets the file of this release, which its browser does not keep."""
    if name not in FILES:
        raise NotFound("file", name[:80])
    lifetime = "public, max-age=31536000, immutable" if version == VERSION else "no-cache"
    return Response(FILES[name], mimetype=_TYPES[Path(name).suffix], headers={"cache-control": lifetime})


def address(name: str) -> str:
    """Return a file's address, which changes with the content of any file."""
    return f"/inbox/static/{VERSION}/{name}"
