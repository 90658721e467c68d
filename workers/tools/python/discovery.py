"""Finds the toolsets: the entry points `assent.toolsets` of installed packages, and the setting ASSENT_TOOLSETS.

The worker itself imports no toolset. The processes of toolsets look in ASSENT_TOOLSET_PATH first, then where the worker looks.
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
_SPEC = re.compile(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*(\.\w+)*")


@dataclass(frozen=True)
class ToolsetPlace:
    """The place of a toolset."""

    spec: str
    """`module:attribute`."""
    origin: str
    """The distribution or the setting that names the toolset, for people."""

    def __str__(self) -> str:
        return f"{self.spec} ({self.origin})"


def places() -> tuple[list[ToolsetPlace], list[str]]:
    """Return the toolsets' places, each once, and a sentence for each text that names no place."""
    by_spec: dict[str, ToolsetPlace] = {}
    problems = []
    for place in _configured_places():
        if _SPEC.fullmatch(place.spec):
            by_spec.setdefault(place.spec, place)
        else:
            problems.append(f"{place}: is not a place of a toolset; write module:attribute")
    return list(by_spec.values()), problems


def _configured_places() -> Iterator[ToolsetPlace]:
    for distribution in distributions(path=path()):
        for point in distribution.entry_points.select(group=GROUP):
            yield ToolsetPlace(f"{point.module}:{point.attr}", f"distribution {distribution.name} {distribution.version}")
    for spec in settings().toolsets.split():
        yield ToolsetPlace(spec, "ASSENT_TOOLSETS")


def path() -> list[str]:
    """Return the module path of a toolset's process, each entry absolute."""
    return [str(Path(folder(), entry)) for entry in (*settings().toolset_path.split(os.pathsep), *sys.path)]


def folder() -> Path:
    """Return the current folder of a toolset's process: ASSENT_TOOLSET_FOLDER, or else the worker's."""
    if configured := settings().toolset_folder:
        return configured.absolute()
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path("/")
