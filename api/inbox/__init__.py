"""The inbox as a page: plain files, which ask this API as any other client does. Nothing is decided by a route of its own."""

from pathlib import Path

from flask import Blueprint, Response

from api.door import HTML, Door, View, opens

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


_PAGE = (_HERE / "index.html").read_text("utf-8")


@inbox.get("/inbox")
@opens(Door(key=False, media_type=HTML))
def page() -> Response:
    """Show the inbox, the page on which people decide approvals."""
    return Response(_PAGE, mimetype=HTML, headers=_HEADERS)


def _script(path: Path) -> View:
    """A file of that page. As a part of it, it is not in the API's reference."""
    text = path.read_text("utf-8")
    return lambda: Response(text, mimetype="text/javascript", headers=_HEADERS)


for script in sorted(_HERE.glob("*.js")):
    inbox.add_url_rule(f"/inbox/{script.name}", script.stem, _script(script))
