"""Pages for people: who may open one, the policy that each carries, and refusals that a person can read.

    @signing_in.get("/inbox/account")
    @page("read or own")
    def show_account(person: PersonPrincipal) -> Response:
        return pages.html("account.html", person, title="Your account")

A request without a sign-in is sent to the page for signing in, and comes back afterwards. A request that changes something must
come from a page of ours: see `api.door.browser`. `install` gives the pages of a blueprint their headers and their refusals.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, Response, g, render_template, request
from werkzeug.exceptions import HTTPException

from api.door import auth, browser, errors, limits, parsing
from api.door.routes import HTML, View
from models.errors import NotFound, Refusal
from models.people.principal import PersonPrincipal

SIGN_IN = "/sign-in"
LONGEST_PLACE = 4000
"""Characters of a page's address: enough for the ids of a hundred calls, and half of a request's first line."""
POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types assent-worker"
)
"""Only our own files are loaded or run, and no script turns text into markup. The policy `assent-worker` of Trusted Types returns
the address of the worker that shows push messages, and nothing else."""
HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "same-origin",  # by `no-referrer`, browsers would hide the origin of our own forms
    "cache-control": "no-store",
}
"""Headers of every page, in addition to those that `api.door.client` adds to every response."""

_READ = "send a form"
HEADINGS = {429: "Too many requests", 500: "This failed", 503: "Try again"}
"""What heads the page of a refusal that passes, and of a fault, by its status."""
_BLUEPRINTS = frozenset({"desk", "links", "signing_in", "slack", "unsubscribing"})


def is_page(endpoint: str) -> bool:
    """True if the route is a page, or part of a page, or called by Slack. Such routes are not in the API's reference."""
    return endpoint.partition(".")[0] in _BLUEPRINTS


def _heading(status: int) -> str:
    return HEADINGS.get(status, "This is not possible")


def _no_frame(_status: int) -> dict[str, Any]:
    return {}


def install(
    blueprint: Blueprint,
    template: str,
    headings: Callable[[int], str] = _heading,
    headers: Mapping[str, str] = HEADERS,
    frame: Callable[[int], dict[str, Any]] = _no_frame,
) -> None:
    """Give a blueprint's responses these headers, and show refusals and faults by this template, headed by their status.

    `frame` returns what the template shows around the refusal.
    """

    @blueprint.after_request
    def protect(response: Response) -> Response:
        for name, value in headers.items():
            response.headers.setdefault(name, value)
        return response

    @blueprint.errorhandler(Refusal)
    def refuse(refusal: Refusal) -> Response:
        status = errors.status_of(refusal)
        response = failed(template, status, headings(status), _in_words(refusal), **frame(status))
        if isinstance(refusal, errors.Denied):
            response.headers.update(refusal.headers)
        return response

    @blueprint.errorhandler(HTTPException)
    def fail(error: HTTPException) -> Response:
        status = error.code or 500
        return failed(template, status, headings(status), error.description or error.name)

    @blueprint.errorhandler(Exception)
    def break_off(error: Exception) -> Response:
        status, message = errors.fault_of(error)
        return failed(template, status, headings(status), f"{message} Request id: {g.get('request_id')}.")


def _in_words(refusal: Refusal) -> str:
    """Return a refusal as a page says it: without the id of what is not there."""
    return "It does not exist, or you may not see it." if isinstance(refusal, NotFound) else str(refusal)


def failed(template: str, status: int, heading: str, message: str, place: str = "", **frame: Any) -> Response:
    """Return the page that says why a request is refused. `place`: the page to open instead. `frame`: what it shows around."""
    text = render_template(template, heading=heading, message=message, place=place, **frame)
    return Response(text, status, mimetype=HTML)


def current(*scopes: str) -> PersonPrincipal | None:
    """Return the person behind the request's cookie; None if nobody is signed in.

    Raises Denied for a role without the scopes, and TooMany.
    """
    person = browser.current_person()
    if person is not None:
        limits.take(person)
        request.is_signed_in = True  # type: ignore[attr-defined]  # `api.door.parsing.Request`
        auth.require(person, *scopes)
    return person


def of_form(*scopes: str) -> PersonPrincipal:
    """Return the person who submits a form of one of our own pages. Raises Denied."""
    person = current(*scopes)
    if person is None:
        raise errors.Denied(401, "You are signed out, so nothing was done. Sign in, and send the form again.")
    browser.check_change()
    return person


def check_form(*, hides_origin: bool = False) -> None:
    """Raise Denied (403) unless a form of ours was sent, by the browser that has the form's cookie, over TLS or loopback.

    A form that cannot be read counts as a failed attempt of the client's address. Raises TooMany, before the form is read.
    """
    if why := browser.why_refused():
        raise errors.Denied(403, why)
    browser.check_same_origin(hides_origin=hides_origin)
    limits.take_attempt(to=_READ)
    browser.check_form_token()
    limits.give_attempt_back(to=_READ)


def page(*scopes: str, ids: bool = True) -> Callable[[Callable[..., Response]], View]:
    """Make a view for signed-in people whose role has the scopes; every role has `read or own`. The view gets the person.

    `ids`: False if the path holds something other than ids.
    """

    def wrap(view: Callable[..., Response]) -> View:
        @wraps(view)
        def guarded(**path_ids: Any) -> Response:
            person = current(*scopes) if request.method in browser.SAFE else of_form(*scopes)
            if person is None:
                return to_sign_in()
            if ids:
                parsing.check_ids(path_ids)
            return view(person, **path_ids)

        return guarded

    return wrap


def html(template: str, person: PersonPrincipal | None = None, **values: Any) -> Response:
    """Render a template, which gets `person` beside `values`."""
    return Response(render_template(template, person=person, **values), mimetype=HTML)


def form(template: str, status: int = 200, **values: Any) -> Response:
    """Render a template for somebody who is not signed in. Its forms carry `csrf_token`, which belongs to a cookie that is set."""
    response = Response(status=status, mimetype=HTML)
    token = "" if browser.why_refused() else browser.form_token(response)
    response.set_data(render_template(template, csrf_token=token, **values))
    return response


def see(place: str) -> Response:
    """Send the browser to a page of ours, by a 303."""
    return Response(status=303, headers={"location": local(place)})


def to_sign_in() -> Response:
    """Send the browser to the page for signing in, which leads back to the page of this request."""
    return see(f"{SIGN_IN}?{urlencode({'next': local(request.full_path.rstrip('?'))})}")


def local(place: str | None, otherwise: str = "/inbox") -> str:
    """Return a path of this server, with its query and fragment; `otherwise` for any other place."""
    if not place or not place.startswith("/") or place.startswith(("//", "/\\")) or len(place) > LONGEST_PLACE:
        return otherwise
    return place if place.isascii() and place.isprintable() and "\\" not in place else otherwise
