"""Validates JSON of the documents with the models that the API's routes use."""

import re
from functools import cache
from typing import Any

from api import create_app
from api.door.routes import Door, doors


@cache
def routes() -> dict[tuple[str, str], Door | None]:
    """The door of each route by method and path, with `{}` for each id in the path. None for a page without one."""
    app = create_app()
    return {
        (method, re.sub(r"<[^>]+>", "{}", rule.rule)): doors.get(app.view_functions[rule.endpoint])
        for rule in app.url_map.iter_rules()
        for method in rule.methods or ()
    }


def bare(path: str) -> str:
    """The path in the form of the keys of `routes`."""
    return re.sub(r"\{[^}]*\}", "{}", path.partition("?")[0])


def check_body(method: str, path: str, body: Any) -> None:
    """Fails if there is no such route, or if the route would refuse the body before it looks at any row."""
    door = routes().get((method, bare(path)), ...)
    assert door is not ..., f"there is no {method} {path}"
    if body is None:
        return
    assert isinstance(door, Door)
    assert door.body is not None, f"{method} {path} takes no body"
    parsed: Any = door.body.model_validate(body)
    if hasattr(parsed, "check"):
        parsed.check()
    if hasattr(parsed, "decision"):
        parsed.decision().check()
