"""The inbox as a page: plain files, which ask this API as any other client does. Nothing is decided by a route of its own."""

from pathlib import Path

from flask import Blueprint, Response

from api.door import Door, View, opens

inbox = Blueprint("inbox", __name__)

_HERE = Path(__file__).parent
_HEADERS = {
    # No script but our files, nothing from elsewhere, and no text is ever taken for markup.
    "content-security-policy": "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}


def _file(path: Path, media_type: str, about: str) -> View:
    text = path.read_text("utf-8")

    @opens(Door(key=False, media_type=media_type))
    def view() -> Response:
        return Response(text, mimetype=media_type, headers=_HEADERS)

    view.__doc__ = about
    return view


inbox.add_url_rule("/inbox", "page", _file(_HERE / "index.html", "text/html", "The inbox, for people: what waits for a decision."))
for script in sorted(_HERE.glob("*.js")):
    inbox.add_url_rule(f"/inbox/{script.name}", script.stem, _file(script, "text/javascript", "A part of that page."))
