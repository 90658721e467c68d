"""Pages within a frame: each asks who is signed in, opens one transaction, and renders one template.

    @page("/inbox/grants", "grants", "read")
    def grants(db: Db, person: PersonPrincipal, refusal: Refusal | None = None, **_path_ids: str) -> FramedPage: ...

    @action("/inbox/grants/<grant_id>/revoke", "approvals", section="grants", again=grants)
    def revoke(db: Db, person: PersonPrincipal, grant_id: str) -> str: ...

`page` and `action` are methods of the blueprint's `FramedPages`. Their functions return a `FramedPage`, or the local address of
another page. If an action raises a refusal, `again` draws the page of the form anew, with the refusal. Like Flask's own
decorators, these return the function itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from flask import Blueprint, Response, render_template, request

from api.door import errors, pages, parsing
from api.door.routes import HTML
from models.database.rows import Db
from models.errors import Refusal
from models.flow.decide.deadlines import transact_in_time
from models.people.principal import PersonPrincipal


class FramedPage:
    """A template, and the values that it shows."""

    def __init__(self, template: str, **values: Any) -> None:
        """Return the page of this template with these values."""
        self.template, self.values = template, values


PageView = Callable[..., FramedPage | str]
V = TypeVar("V", bound=PageView)


@dataclass(frozen=True)
class FramedPages:
    """The pages of a blueprint."""

    blueprint: Blueprint
    frame: Callable[[Db, PersonPrincipal], dict[str, Any]]
    """Returns the values that every page shows around its content."""

    def page(self, rule: str, section: str, *scopes: str) -> Callable[[V], V]:
        """Declare a page of the navigation's `section`. A person who is not signed in is sent to the sign-in page."""

        def wrap(show: V) -> V:
            @wraps(show)
            def view(**path_ids: str) -> Response:
                person = pages.current(*scopes)
                if person is None:
                    return pages.to_sign_in()
                parsing.check_ids(path_ids)
                return self._in_transaction(section, person, lambda db: show(db, person, **path_ids))

            self.blueprint.add_url_rule(rule, view_func=view)
            return show

        return wrap

    def action(self, rule: str, *scopes: str, section: str = "inbox", again: PageView | None = None) -> Callable[[V], V]:
        """Declare a form's effect. `again(db, person, refusal=..., **path_ids)` draws the page anew, with a refusal."""

        def wrap(act: V) -> V:
            @wraps(act)
            def view(**path_ids: str) -> Response:
                person = pages.of_form(*scopes)
                parsing.check_ids(path_ids)
                try:
                    return self._in_transaction(section, person, lambda db: act(db, person, **path_ids))
                except Refusal as refusal:
                    if again is None or isinstance(refusal, errors.Denied):
                        raise
                    show, why = again, refusal  # Python forgets `refusal` and mypy the check of `again`
                    return self._in_transaction(
                        section, person, lambda db: show(db, person, refusal=why, **path_ids), errors.status_of(refusal)
                    )

            self.blueprint.add_url_rule(rule, view_func=view, methods=["POST"])
            return act

        return wrap

    def _in_transaction(
        self, section: str, person: PersonPrincipal, show: Callable[[Db], FramedPage | str], status: int = 200
    ) -> Response:
        def framed(db: Db) -> tuple[FramedPage | str, dict[str, Any]]:
            result = show(db)
            return result, self.frame(db, person) if isinstance(result, FramedPage) else {}

        result, frame = transact_in_time(person.workspace_id, framed)
        if isinstance(result, str):
            return pages.see(result)
        text = render_template(result.template, section=section, **frame, **result.values)
        return Response(text, status, mimetype=HTML)


def query_value(name: str) -> str | None:
    """Return a field of the query string, without NUL, which Postgres refuses; None if it is missing or empty."""
    return request.args.get(name, "").replace("\0", "") or None
