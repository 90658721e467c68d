"""Pages for people: who may open one, the policy that each carries, and refusals that a person can read.

    @inbox.get("/inbox/queue")
    @page("read or own")
    def queue(person: PersonPrincipal) -> Response:
        return pages.html("queue.html", person, title="Your queue")

A request without a sign-in is sent to the page for signing in, and comes back afterwards. A request that changes something must
come from a page of ours: see `api.browser`.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from flask import Response, render_template, request

from api import auth, browser, errors, limits, parsing
from api.door import HTML, View
from models.errors import Refusal
from models.people.principal import PersonPrincipal

SIGN_IN = "/sign-in"
POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""No script but our files, nothing from elsewhere, and no text is ever taken for markup."""
HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "same-origin",  # by `no-referrer`, browsers would hide the origin of our own forms
    "cache-control": "no-store",
}
"""Of every page, beside those that `api.client` gives to every response."""


views: set[View] = set()
"""The views that are pages, or parts of pages, or called by Slack. They are not in the API's reference."""


def page(scope: str, *, ids: bool = True) -> Callable[[Callable[..., Response]], View]:
    """A view for signed-in people whose role has the scope; `read or own` is every role. The view gets the person.

    `ids`: False if the path holds something other than ids.
    """

    def wrap(view: Callable[..., Response]) -> View:
        @wraps(view)
        def guarded(**path_ids: Any) -> Response:
            person = browser.current_person()
            if person is None:
                return _to_sign_in()
            limits.take(person)
            auth.require(person, scope)
            if request.method not in browser.SAFE:
                browser.check_change()
            if ids:
                parsing.check_ids(path_ids)
            return view(person, **path_ids)

        return readable(guarded)

    return wrap


def readable(view: View) -> View:
    """A view for everybody. What it refuses becomes a page that a person can read."""

    @wraps(view)
    def answering(**path_ids: Any) -> Response:
        try:
            return view(**path_ids)
        except Refusal as refusal:
            return refused(refusal)

    views.add(answering)
    return answering


def html(template: str, person: PersonPrincipal | None = None, status: int = 200, **values: Any) -> Response:
    """Render a template. It gets `person`, and `csrf_token` for its forms, beside `values`."""
    token = browser.token() if person else ""
    return Response(render_template(template, person=person, csrf_token=token, **values), status, mimetype=HTML, headers=HEADERS)


def form(template: str, status: int = 200, **values: Any) -> Response:
    """Render a template for somebody who is not signed in. Its forms carry `csrf_token`, which belongs to a cookie that is set."""
    response = Response(status=status, mimetype=HTML, headers=HEADERS)
    token = "" if browser.why_refused() else browser.form_token(response)
    response.set_data(render_template(template, csrf_token=token, **values))
    return response


def see(place: str) -> Response:
    """Send the browser to a page of ours, by a 303."""
    return Response(status=303, headers=HEADERS | {"location": local(place)})


def refused(refusal: Refusal) -> Response:
    """Return the page that says why something is refused."""
    response = html("refused.html", status=errors.status_of(refusal), title="This is not possible", message=str(refusal))
    if isinstance(refusal, errors.Denied):
        response.headers.update(refusal.headers)
    return response


def local(place: str | None, otherwise: str = "/inbox") -> str:
    """Return a path of this server, with its query and fragment; `otherwise` for any other place."""
    if not place or not place.startswith("/") or place.startswith(("//", "/\\")) or len(place) > 2000:
        return otherwise
    return place if place.isascii() and place.isprintable() and "\\" not in place else otherwise


def _to_sign_in() -> Response:
    if request.method in browser.SAFE:
        return see(f"{SIGN_IN}?{urlencode({'next': request.full_path.rstrip('?')})}")
    raise errors.Denied(401, "You are signed out. Sign in, and send the form again.")
