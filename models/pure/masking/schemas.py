"""Finds the values that a tool's JSON Schema marks as secret: `writeOnly`, or the format `password`, in any possible branch."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, UnknownDialect, specification_with

from models.pure.regex import InvalidPattern, compile_schema_pattern

_Part = tuple[Any, Any]
"""A schema (an object, or a boolean, which marks nothing), and the resolver of its references."""
_BRANCHES = ("allOf", "anyOf", "oneOf")
_BRANCH = ("if", "then", "else", "not")
_BY_NAME = ("dependentSchemas", "dependencies")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class Marks:
    """The marks of all schemas that could apply to one value and its members."""

    def __init__(self, parts: list[_Part], known: dict[frozenset[int], "Marks"]) -> None:
        self._parts = parts
        self._known = known
        self._at: dict[str | int, Marks | None] = {}
        self._longest = max((len(_listed(schema)) for schema, _ in parts), default=0)
        self.secret = any(_is_secret(schema) for schema, _ in parts)

    def property(self, name: str) -> "Marks | None":
        """Return a property's marks; None without any schema."""
        return self._memory(name, lambda: self._properties(name))

    def item(self, index: int) -> "Marks | None":
        """Return an array item's marks; None without any schema."""
        index = min(index, self._longest)
        return self._memory(index, lambda: self._items(index))

    def _memory(self, place: str | int, parts: Callable[[], Iterator[_Part]]) -> "Marks | None":
        if place not in self._at:
            self._at[place] = _marks(parts(), self._known)
        return self._at[place]

    def _properties(self, name: str) -> Iterator[_Part]:
        named = False
        for schema, resolver in self._parts:
            own = [_dict(schema.get("properties"))[name]] if name in _dict(schema.get("properties")) else []
            own += [part for pattern, part in _dict(schema.get("patternProperties")).items() if _matches(pattern, name)]
            named = named or bool(own)
            for part in own or [schema.get("additionalProperties")]:
                yield part, resolver
        if not named:
            yield from ((schema.get("unevaluatedProperties"), resolver) for schema, resolver in self._parts)

    def _items(self, index: int) -> Iterator[_Part]:
        named = False
        for schema, resolver in self._parts:
            listed = _listed(schema)
            rest = schema.get("additionalItems") if isinstance(schema.get("items"), list) else schema.get("items")
            named = named or index < len(listed) or rest is not None
            yield listed[index] if index < len(listed) else rest, resolver
            yield schema.get("contains"), resolver
        if not named:
            yield from ((schema.get("unevaluatedItems"), resolver) for schema, resolver in self._parts)


def marks_of(schema: dict[str, Any] | None) -> Marks | None:
    """Return the marks of a call's arguments; None if the schema marks no secret."""
    if schema is None or not _speaks(schema):
        return None
    try:
        specification = specification_with(schema.get("$schema", ""), default=DRAFT202012)
    except UnknownDialect:
        specification = DRAFT202012
    resource: Resource[Any] = specification.create_resource(schema)
    registry: Registry[Any] = Registry()
    return _marks([(schema, registry.resolver_with_root(resource))], {})


def _marks(parts: Any, known: dict[frozenset[int], Marks]) -> Marks | None:
    applying = _applying([part for part in parts if isinstance(part[0], dict)])
    if not applying:
        return None
    key = frozenset(id(schema) for schema, _ in applying)
    if key not in known:
        known[key] = Marks(applying, known)
    return known[key]


def _applying(todo: list[_Part]) -> list[_Part]:
    """Return these schemas and all that they may apply to the same value, whatever their conditions."""
    parts: dict[int, _Part] = {}
    while todo:
        schema, resolver = todo.pop()
        if not isinstance(schema, dict) or id(schema) in parts:
            continue
        if "$id" in schema:
            resolver = resolver.in_subresource(DRAFT202012.create_resource(schema))
        parts[id(schema)] = schema, resolver
        todo += [(part, resolver) for word in _BRANCHES for part in _list(schema.get(word))]
        todo += [(schema.get(word), resolver) for word in _BRANCH]
        todo += [(part, resolver) for word in _BY_NAME for part in _dict(schema.get(word)).values()]
        for word in _REFERENCES:
            if isinstance(schema.get(word), str):
                try:
                    resolved = resolver.lookup(schema[word])
                except Unresolvable:  # the API refuses such a schema
                    continue
                todo.append((resolved.contents, resolved.resolver))
    return list(parts.values())


def _is_secret(schema: dict[str, Any]) -> bool:
    return schema.get("writeOnly") is True or schema.get("format") == "password"


def _speaks(schema: dict[str, Any]) -> bool:
    todo: list[Any] = [schema]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            if _is_secret(part):
                return True
            todo += part.values()
        elif isinstance(part, list):
            todo += part
    return False


@lru_cache(maxsize=1024)
def _matches(pattern: str, name: str) -> bool:
    try:
        compiled = compile_schema_pattern(pattern)
    except InvalidPattern:
        return True
    return compiled.search(name.encode("utf-8", "surrogatepass")) is not None


def _listed(schema: dict[str, Any]) -> list[Any]:
    """Return the schemas of an array's first items, one each."""
    return _list(schema.get("prefixItems")) or _list(schema.get("items"))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
