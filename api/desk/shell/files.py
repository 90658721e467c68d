"""The stylesheet, the scripts and the icons. Their addresses have a hash, so that a browser keeps each for good.

Each folder of `api/desk` has its own `*.css` and `*.js`. All its styles are one file here, `desk.css`: those of the shell first,
and of these the colours. A script's name is unique, because scripts import each other by name.
"""

from hashlib import sha256
from pathlib import Path

from flask import Response

from api.desk.shell.blueprint import desk
from models.errors import NotFound

_DESK = Path(__file__).parents[1]
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".png": "image/png"}


def _order(path: Path) -> tuple[bool, bool, str]:
    return path.parent.name != "shell", path.name != "tokens.css", str(path)


FILES = {
    "desk.css": b"\n".join(path.read_bytes() for path in sorted(_DESK.glob("*/*.css"), key=_order)),
    **{path.name: path.read_bytes() for suffix in ("js", "svg", "png") for path in sorted(_DESK.glob(f"*/*.{suffix}"))},
}
VERSION = sha256(b"".join(FILES.values())).hexdigest()[:12]
"""A part of every address, so that the modules that one file imports are of the same version."""


@desk.get("/inbox/static/<version>/<name>")
def file(version: str, name: str) -> Response:
    """Return a file. A page of another release gets the file of this release, which its browser does not keep."""
    if name not in FILES:
        raise NotFound("file", name[:80])
    lifetime = "public, max-age=31536000, immutable" if version == VERSION else "no-cache"
    return Response(FILES[name], mimetype=_TYPES[Path(name).suffix], headers={"cache-control": lifetime})


def address(name: str) -> str:
    """Return a file's address, which changes with the content of any file."""
    return f"/inbox/static/{VERSION}/{name}"
