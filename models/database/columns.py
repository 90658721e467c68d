"""Columns of a table, as its class declares them.

    id: Mapped[str] = mapped_column(primary_key=True)
    title: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

The form is that of SQLAlchemy's ORM, and the columns are those of SQLAlchemy's Core. No statement needs the ORM: importing it and
mapping each class takes a fifth of a process's start.
"""

import types
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args, get_origin, overload

import sqlalchemy as sa

T = TypeVar("T")

_TYPES: Mapping[type, type[sa.types.TypeEngine[Any]]] = {
    str: sa.String,
    int: sa.Integer,
    bool: sa.Boolean,
    float: sa.Double,
    bytes: sa.LargeBinary,
    date: sa.Date,
    Decimal: sa.Numeric,
}
"""The type in the database where the declaration names none."""


class Mapped(Generic[T]):
    """A column's annotation. A row's attribute has a value of the type `T`, and the class's attribute is the column."""

    if TYPE_CHECKING:

        @overload
        def __get__(self, row: None, table: type) -> sa.Column[T]: ...
        @overload
        def __get__(self, row: object, table: type) -> T: ...
        def __get__(self, row: object | None, table: type) -> Any:
            """Return the column or a row's value."""

        def __set__(self, row: object, value: T) -> None:
            """Change a row's value."""


def mapped_column(*parts: Any, **options: Any) -> Any:
    """Declare a column with arguments of `sqlalchemy.Column`. A name comes first, if it is not that of the attribute."""
    name = parts[0] if parts and isinstance(parts[0], str) else None
    return _Declaration(name, parts[1:] if name else parts, options)


class _Declaration:
    """The arguments of one `mapped_column`."""

    def __init__(self, name: str | None = None, parts: tuple[Any, ...] = (), options: Mapping[str, Any] | None = None) -> None:
        self.name, self.parts, self.options = name, parts, options or {}

    def column(self, attribute: str, annotation: Any) -> sa.Column[Any]:
        """Return a new column of this declaration. `annotation` is the `T` of `Mapped[T]`: with None, the column may be NULL."""
        alternatives = get_args(annotation) if get_origin(annotation) is types.UnionType else (annotation,)
        kinds = [_TYPES[kind] for kind in alternatives if kind in _TYPES]
        parts = self.parts if any(map(_is_type, self.parts)) else (kinds[0], *self.parts)
        options = {"nullable": type(None) in alternatives, **self.options}
        return sa.Column(self.name or attribute, *parts, **options)


def _is_type(part: Any) -> bool:
    return isinstance(part, sa.types.TypeEngine) or (isinstance(part, type) and issubclass(part, sa.types.TypeEngine))


def declared_columns(table: type) -> dict[str, sa.Column[Any]]:
    """Return new columns by attribute, for the annotations of a class and its bases. The class overrides its bases."""
    annotations: dict[str, Any] = {}
    for cls in table.__mro__:
        for name, annotation in get_annotations(cls).items():
            if getattr(annotation, "__origin__", None) is Mapped:
                annotations.setdefault(name, *get_args(annotation))
    return {name: getattr(table, name, _Declaration()).column(name, annotation) for name, annotation in annotations.items()}
