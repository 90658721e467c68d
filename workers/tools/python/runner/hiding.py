"""Hides Assent's packages from a toolset's process, so that `import models` finds the team's package of that name."""

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

PACKAGES = frozenset({"api", "deploy", "models", "workers"})
"""Assent's packages at the top."""


class OthersOnly(MetaPathFinder):
    """Finds `PACKAGES` everywhere but in Assent's folder, which may also hold installed packages of a team."""

    def __init__(self, home: Path) -> None:
        self._home = str(home)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the team's module. Raises ModuleNotFoundError, so that no later finder returns Assent's."""
        if name not in PACKAGES:
            return None
        elsewhere = [entry for entry in sys.path if os.path.realpath(entry) != self._home]
        for finder in sys.meta_path:
            if finder is self:
                continue
            spec = finder.find_spec(name, elsewhere if finder is PathFinder else path, target)
            if spec and not self._is_ours(spec):
                return spec
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    def _is_ours(self, spec: ModuleSpec) -> bool:
        """True if the module lies in Assent's folder, where an editable installation's finder finds it whatever the path."""
        return bool(spec.origin) and Path(str(spec.origin)).resolve().is_relative_to(Path(self._home, spec.name))
