"""The door of every page: authenticates and authorises the person, opens one transaction, and renders one template.

    @page("/inbox/grants", "grants", "read")
    def grants(db: Db, person: PersonPrincipal, refusal: Refusal | None = None, **_path_ids: str) -> Page: ...

    @action("/inbox/grants/<grant_id>/revoke", "approvals", section="grants", again=grants)
    def revoke(db: Db, person: PersonPrincipal, grant_id: str) -> str: ...

A page and an action return a `Page`, or the local address of another page. If an action raises a refusal, `again` draws the page of
the form anew, with the refusal. Like Flask's own decorators, these return the function itself.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, TypeVar

from flask import Response, render_template, request

from api.door import errors, pages, parsing
from api.door.routes import HTML
from api.inbox import viewing
from api.inbox.blueprint import inbox
from models.database.rows import Db
from models.database.transactions import transact
from models.errors import Refusal
from models.flow.decide.deadlines import too_late
from models.people.principal import PersonPrincipal
from models.session.approval.deadline import DeadlinePassed


@dataclass(frozen=True)
class Page:
    """A template, and the values that it shows."""

    template: str
    values: dict[str, Any] = field(default_factory=dict)


Shown = Page | str
Show = Callable[..., Shown]
S = TypeVar("S", bound=Show)


def shows(template: str, **values: Any) -> Page:
    """Return a page of this template with these values."""
    return Page(template, values)


def page(rule: str, section: str, *scopes: str) -> Callable[[S], S]:
    """Declare a page of the navigation's `section`. A person who is not signed in is sent to the sign-in page."""

    def wrap(show: S) -> S:
        @wraps(show)
        def view(**path_ids: str) -> Response:
            person = pages.current(*scopes)
            if person is None:
                return pages.to_sign_in()
            parsing.check_ids(path_ids)
            return _in_transaction(section, person, lambda db: show(db, person, **path_ids))

        inbox.add_url_rule(rule, view_func=view)
        return show

    return wrap


def action(rule: str, *scopes: str, section: str = "inbox", again: Show | None = None) -> Callable[[S], S]:
    """Declare a form's effect, in one transaction. `again(db, person, refusal=..., **path_ids)` draws the page with a refusal."""

    def wrap(act: S) -> S:
        @wraps(act)
        def view(**path_ids: str) -> Response:
            person = pages.of_form(*scopes)
            parsing.check_ids(path_ids)
            try:
                return _in_transaction(section, person, lambda db: act(db, person, **path_ids))
            except Refusal as refusal:
                if again is None or isinstance(refusal, errors.Denied):
                    raise
                shown = partial(again, person=person, refusal=refusal, **path_ids)
                return _in_transaction(section, person, shown, errors.status_of(refusal))

        inbox.add_url_rule(rule, view_func=view, methods=["POST"])
        return act

    return wrap


def _in_transaction(section: str, person: PersonPrincipal, show: Callable[[Db], Shown], status: int = 200) -> Response:
    def framed(db: Db) -> tuple[Shown, dict[str, Any]]:
        result = show(db)
        return result, viewing.frame(db, person) if isinstance(result, Page) else {}

    try:
        result, frame = transact(person.workspace_id, framed)
    except DeadlinePassed as late:
        raise too_late(late) from None
    return pages.see(result) if isinstance(result, str) else _rendered(result, section, frame, status)


def _rendered(result: Page, section: str, frame: dict[str, Any], status: int) -> Response:
    text = render_template(result.template, section=section, **frame, **result.values)
    return Response(text, status, mimetype=HTML)


def wants(name: str) -> str | None:
    """Return a field of the query string; None if it is missing or empty."""
    return request.args.get(name) or None
