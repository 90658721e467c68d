"""Masks a call's arguments, for people and logs."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from models.pure import ahead
from models.pure.masking.echoes import LEAST, texts_in
from models.pure.masking.names import is_secret
from models.pure.masking.schemas import Place, secret_places
from models.pure.masking.texts import MARKER, TextMasker


@dataclass(frozen=True)
class Masked:
    """Arguments with their secrets masked."""

    arguments: dict[str, Any]
    paths: tuple[str, ...]
    """JSON Pointers into `arguments` of the masked values and keys; sorted."""
    secrets: tuple[str, ...] = field(default=(), compare=False)
    """The texts behind the markers, for `Echoes`. Short ones are left out. A number is given by its digits."""


@ahead.costly
def mask(arguments: dict[str, Any], schema: dict[str, Any] | None = None) -> Masked:
    """Return a copy of the arguments with every secret replaced by the marker. Masking it again changes nothing.

    `schema` is the tool's. A schema masks any value as a whole; a name masks all values but booleans and null; in texts, and in
    names of fields, only the secret is masked. If two names in an object have the same masked form, the second one is numbered.
    """
    masking = _Mask(secret_places(schema, arguments))
    masked_arguments = masking.fields(arguments, (), "")
    secrets = {text for text in masking.secrets | masking.reader.secrets if len(text) >= LEAST and MARKER not in text}
    return Masked(masked_arguments, tuple(sorted(masking.paths)), tuple(sorted(secrets)))


def masked_paths(value: Any, path: str = "") -> list[str]:
    """Return JSON Pointers to the masked values and names in a value with its secrets masked."""
    if isinstance(value, str):
        return [path] if MARKER in value else []
    if isinstance(value, list):
        return [place for index, item in enumerate(value) for place in masked_paths(item, f"{path}/{index}")]
    paths: list[str] = []
    for name, item in value.items() if isinstance(value, dict) else ():
        here = f"{path}/{escape_part(name)}"
        inner = masked_paths(item, here)
        paths += [here, *inner] if MARKER in name and here not in inner else inner
    return paths


class _Mask:
    """Masks one input. A place has the original names, a path has the names that are shown."""

    def __init__(self, secrets: set[Place]) -> None:
        self._secret_places = secrets
        self.reader = TextMasker()
        self.paths: set[str] = set()
        self.secrets: set[str] = set()

    def fields(self, value: dict[str, Any], place: Place, path: str) -> dict[str, Any]:
        """Return an object with its secrets masked."""
        result = {}
        names = masked_names(value, self.reader)
        for name, item in value.items():
            here = f"{path}/{escape_part(names[name])}"
            result[names[name]] = self._value(item, (*place, name), here, secret=_by_name(name, item, value))
            if names[name] != name:
                self.paths.add(here)
        return result

    def _items(self, value: list[Any], place: Place, path: str) -> list[Any]:
        result = []
        after_flag = False
        for index, item in enumerate(value):
            secret = after_flag and isinstance(item, str) and not item.startswith("-")
            result.append(self._value(item, (*place, index), f"{path}/{index}", secret=secret))
            after_flag = isinstance(item, str) and item.startswith("-") and "=" not in item and " " not in item and is_secret(item)
        return result

    def _value(self, value: Any, place: Place, path: str, *, secret: bool) -> Any:
        result = value
        if secret or place in self._secret_places:
            result = MARKER
            self.secrets.update(texts_in(value))
        elif isinstance(value, str):
            result = self.reader.read(value)
        elif isinstance(value, dict):
            return self.fields(value, place, path)
        elif isinstance(value, list):
            return self._items(value, place, path)
        if result != value:
            self.paths.add(path)
        return result


def masked_names(value: dict[str, Any], reader: TextMasker) -> dict[str, str]:
    """Return the masked form of each name of an object's fields. The order of the fields does not matter."""
    names = {name: reader.read(name) for name in value}
    names_in_use = {name for name, masked_name in names.items() if masked_name == name}
    numbers: Counter[str] = Counter()
    for name in sorted(value.keys() - names_in_use):
        masked_name = names[name]
        while names[name] in names_in_use:
            numbers[masked_name] += 1
            names[name] = f"{masked_name} ({numbers[masked_name] + 1})"
        names_in_use.add(names[name])
    return names


def escape_part(part: str | int) -> str:
    """Return a part of a JSON Pointer, escaped."""
    return str(part).replace("~", "~0").replace("/", "~1")


def _by_name(name: str, item: Any, fields: dict[str, Any]) -> bool:
    if item is None or isinstance(item, bool):
        return False
    if is_secret(name, item):
        return True
    if name != "value":
        return False
    # A pair, such as an environment variable or a header: {"name": "TOKEN", "value": ...}.
    return any(isinstance(fields.get(label), str) and is_secret(fields[label], item) for label in ("name", "key"))
