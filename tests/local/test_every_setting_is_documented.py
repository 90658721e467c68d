"""docs/settings.md lists every setting once, with its unit and its default."""

import re
from pathlib import Path
from typing import Any

from local.documents import PAGES
from pydantic import SecretStr

from models.settings import Settings
from models.settings.variables import names_of_settings

ROWS = re.findall(r"^\| `([A-Z_]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", PAGES["docs/settings.md"], re.MULTILINE)
UNITS = {"_PER_SECOND": "per second", "_SECONDS": "seconds", "_BYTES": "bytes"}
KINDS: dict[Any, str] = {bool: "true or false", int: "count", float: "count", Path: "path", Path | None: "path"}


def unit(variable: str) -> str:
    """The unit of a variable, by the end of its name or else by its type."""
    (field,) = (Settings.model_fields[name] for name, known in names_of_settings().items() if known == variable)
    for ending, name in UNITS.items():
        if variable.endswith(ending):
            return name
    kind = str(field.annotation)
    other = "choice" if "Literal" in kind else "JSON" if kind.startswith(("dict", "list")) else "text"
    return KINDS.get(field.annotation, other)


def default(name: str) -> str:
    """The default of a setting, as the page spells it."""
    value = Settings.model_fields[name].default
    if value in (None, "", SecretStr(""), {}, []):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def test_the_page_lists_all_settings_once_and_nothing_else() -> None:
    assert sorted(variable for variable, *_ in ROWS) == sorted(names_of_settings().values())


def test_each_setting_has_its_unit_and_its_default() -> None:
    rows = {row[0]: row for row in ROWS}
    for name, variable in names_of_settings().items():
        row = rows[variable]
        assert row[1] == unit(variable), variable
        assert re.sub(r" \([^)]*\)$", "", row[2]) == default(name), f"{variable}: write {default(name)} into docs/settings.md"
