"""Finds the toolsets: the entry points `assent.toolsets` of installed packages, and the setting ASSENT_TOOLSETS.

The worker itself imports no toolset. The processes of toolsets look in ASSENT_TOOLSET_PATH first, then where the worker looks. A
place may name another Python interpreter: its processes then look in ASSENT_TOOLSET_PATH, and where that interpreter looks.
"""

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from models.settings import settings

GROUP = "assent.toolsets"
_PLACE = re.compile(r"(?P<spec>[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*(\.\w+)*)(@(?P<python>.+))?")


@dataclass(frozen=True)
class ToolsetPlace:
    """The place of a toolset."""

    spec: str
    """`module:attribute`."""
    origin: str
    """The distribution or the setting that names the toolset, for people."""
    python: str | None = None
    """The file of the Python interpreter that runs the toolset; None for the worker's own."""

    def __str__(self) -> str:
        return f"{self.spec} ({self.origin})"

    @property
    def interpreter(self) -> str:
        """The file of the interpreter. A path is meant from the current folder of toolsets."""
        return str(Path(folder(), self.python)) if self.python else sys.executable

    @property
    def module_path(self) -> list[str]:
        """The module path of the toolset's process, each entry absolute. Behind it, an interpreter of its own looks in its own."""
        entries = settings().toolset_path.split(os.pathsep) + ([] if self.python else sys.path)
        return [str(Path(folder(), entry)) for entry in entries]


def places() -> tuple[list[ToolsetPlace], list[str]]:
    """Return the toolsets' places, each once, and a sentence for each text that names no place."""
    by_spec: dict[str, ToolsetPlace] = {}
    problems = []
    for text, origin in _configured_places():
        if place := _PLACE.fullmatch(text):
            by_spec.setdefault(place["spec"], ToolsetPlace(place["spec"], origin, place["python"]))
        else:
            problems.append(f"{text} ({origin}): is not a place of a toolset; write module:attribute or module:attribute@PYTHON")
    return list(by_spec.values()), problems


def _configured_places() -> Iterator[tuple[str, str]]:
    """Yield the text of each place, and its origin. The setting comes first: it may name an interpreter for a toolset."""
    for text in settings().toolsets.split():
        yield text, "ASSENT_TOOLSETS"
    for distribution in distributions(path=ToolsetPlace("", "").module_path):
        for point in distribution.entry_points.select(group=GROUP):
            yield f"{point.module}:{point.attr}", f"distribution {distribution.name} {distribution.version}"


def folder() -> Path:
    """Return the current folder of a toolset's process: ASSENT_TOOLSET_FOLDER, or else the worker's."""
    if configured := settings().toolset_folder:
        return configured.absolute()
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path("/")
