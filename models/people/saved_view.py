"""Saved views: lists of the inbox to which a person has given a name. They are kept in the person's row, in alphabetical order."""

from dataclasses import dataclass

from models.errors import Invalid, NotFound
from models.people.person import Person

MOST = 20
LONGEST_NAME = 40
LONGEST_QUERY = 1000


@dataclass(frozen=True)
class SavedView:
    """One view. A person has one of each name."""

    name: str
    query: str
    """What stands behind the `?` of the list's address."""


def views_of(person: Person) -> list[SavedView]:
    """Return the views of a person."""
    return [SavedView(name, query) for name, query in person.saved_views or []]


def save(person: Person, name: str, query: str) -> None:
    """Store a view. It replaces the one with the same name. Raises Invalid."""
    if len(query) > LONGEST_QUERY:
        raise Invalid("query", f"must have at most {LONGEST_QUERY} characters: leave out a part of the search.")
    _put(person, [*(view for view in views_of(person) if view.name != _valid(name)), SavedView(_valid(name), query)])


def rename(person: Person, name: str, new_name: str) -> None:
    """Give a view another name. Raises NotFound, and Invalid for a name that another view has."""
    view = _find(person, name)
    others = [each for each in views_of(person) if each != view]
    if _valid(new_name) in {each.name for each in others}:
        raise Invalid("name", "belongs to another view: delete that one first, or choose another name.")
    _put(person, [*others, SavedView(_valid(new_name), view.query)])


def delete(person: Person, name: str) -> None:
    """Delete a view. Raises NotFound."""
    view = _find(person, name)
    _put(person, [each for each in views_of(person) if each != view])


def _find(person: Person, name: str) -> SavedView:
    view = next((each for each in views_of(person) if each.name == name), None)
    if view is None:
        raise NotFound("view", name[:LONGEST_NAME])
    return view


def _valid(name: str) -> str:
    """Return a name without spaces around it. Raises Invalid."""
    text = " ".join(name.split())
    if not 1 <= len(text) <= LONGEST_NAME or not text.isprintable():
        raise Invalid("name", f"must have 1 to {LONGEST_NAME} characters that can be printed.")
    return text


def _put(person: Person, views: list[SavedView]) -> None:
    if len(views) > MOST:
        raise Invalid("name", f"would be the name of a view too many: you have {MOST}. Delete one first.")
    person.saved_views = [[view.name, view.query] for view in sorted(views, key=lambda view: view.name.casefold())] or None
