"""Which toolsets there are: the entry points `assent.toolsets` of installed packages, and the setting ASSENT_TOOLSETS.

Finding them imports nothing of theirs. A package that brings a module by a name of ours is refused before it is imported: in one
process there is one `models`, and whose it were would depend on the order of a path.
"""

import re
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions, entry_points
from importlib.util import find_spec
from pathlib import Path

from models.settings import settings
from workers.tools.python.toolset import Toolset

GROUP = "assent.toolsets"
OURS = ("api", "deploy", "models", "workers")
"""Our modules at the top."""
HOME = Path(__file__).resolve().parents[3]
"""The folder that they are in."""
_ITSELF = "assent"
_SPEC = re.compile(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*(\.\w+)*")
_INSTEAD = "rename it, or run these tools as an MCP server on stdio, in a Python of their own (ASSENT_MCP_CONFIG)"


@dataclass(frozen=True)
class Place:
    """Where a toolset is."""

    spec: str
    """`module:attribute`."""
    origin: str
    """Who says so, for people."""

    def __str__(self) -> str:
        return f"{self.spec} ({self.origin})"


class Refused(Exception):
    """This toolset is not used, and why; in a sentence for the operator."""


def places() -> tuple[list[Place], list[str]]:
    """Where toolsets are that may be imported, and a sentence for each that may not."""
    found: dict[str, Place] = {}
    problems = list(_shadowed())
    for place, owner in _named():
        try:
            _refuse_clashes(place, owner)
        except Refused as refused:
            problems.append(f"{place}: {refused}")
        else:
            found.setdefault(place.spec, place)
    return list(found.values()), problems


def load(spec: str) -> Toolset:
    """Import a toolset. Errors: Refused; and whatever its module raises."""
    module, _, attribute = spec.partition(":")
    found: object = import_module(module)
    for name in attribute.split("."):
        found = getattr(found, name, None)
    if not isinstance(found, Toolset):
        raise Refused(f"{attribute} in {module} is no Toolset but {type(found).__name__}; name the object that Toolset(...) made")
    if not found.tools:
        raise Refused(f"it declares no tool; put @{attribute}.tool(effect=...) above a function")
    return found


def _named() -> Iterator[tuple[Place, Distribution | None]]:
    for point in entry_points(group=GROUP):
        owner = point.dist
        origin = f"distribution {owner.name} {owner.version}" if owner else "an entry point"
        yield Place(f"{point.module}:{point.attr}", origin), owner
    for spec in settings().toolsets.split():
        yield Place(spec, "ASSENT_TOOLSETS"), None


def _refuse_clashes(place: Place, owner: Distribution | None) -> None:
    if not _SPEC.fullmatch(place.spec):
        raise Refused("is no place of a toolset; write module:attribute")
    module = place.spec.partition(":")[0]
    top = module.partition(".")[0]
    for name, distributed in _taken(owner, set()) if owner else _of_providers(top):
        raise Refused(f"the distribution {distributed} has a module {name!r} at the top, which is a name of Assent's; {_INSTEAD}")
    if top in OURS:
        if not any(HOME.joinpath(*module.split(".")).with_suffix(end).exists() for end in (".py", "")):
            raise Refused(f"the name {top!r} is Assent's, which has no module {module!r}; {_INSTEAD}")
        return
    folder = _folder(_where(top))
    if owner is None and folder and folder not in _installed() and (found := _of_ours(folder)):
        raise Refused(f"beside it, in {folder}, is a module {found[0]!r}, which is a name of Assent's; {_INSTEAD}")


def _shadowed() -> Iterator[str]:
    """A sentence for each module of ours in whose place another one is found."""
    for name in OURS:
        where = _where(name)
        if where and not where.is_relative_to(HOME):
            yield f"the module {name!r} of Assent is hidden by {where}; take its folder out of PYTHONPATH"


def _where(top: str) -> Path | None:
    """The file of a module at the top, or the folder of one without a file. Imports nothing."""
    try:
        spec = find_spec(top)
    except ValueError:  # somebody put it into sys.modules by hand
        return None
    found = spec and (spec.origin or next(iter(spec.submodule_search_locations or []), None))
    return Path(found).resolve() if found else None


def _taken(dist: Distribution, seen: set[str]) -> Iterator[tuple[str, str]]:
    """Names of ours that a distribution takes, or one that it needs."""
    seen.add(_normal(dist.name))
    yield from ((name, dist.name) for name in OURS if name in _top_names(dist))
    for needed in dist.requires or []:
        name = re.split(r"[^\w.-]", needed, maxsplit=1)[0]
        if _normal(name) not in {*seen, _ITSELF}:
            try:
                yield from _taken(distribution(name), seen)
            except PackageNotFoundError:
                seen.add(_normal(name))


def _of_providers(top: str) -> Iterator[tuple[str, str]]:
    """The same of the installed distributions that a module of the setting comes from."""
    for dist in distributions():
        if dist.name != _ITSELF and top in _top_names(dist):
            yield from _taken(dist, set())


def _top_names(dist: Distribution) -> set[str]:
    names = set((dist.read_text("top_level.txt") or "").split())
    for file in dist.files or []:
        if file.suffix == ".pth":
            names.update(_linked(Path(str(dist.locate_file(file)))))
        elif file.suffix in {".py", ".so", ".pyd"} and file.parts[0] != "..":
            names.add(file.parts[0].partition(".")[0])
    return names


def _linked(file: Path) -> Iterator[str]:
    """Names of ours in the folders that an editable installation adds to the path."""
    lines = file.read_text("utf-8", "replace").splitlines() if file.is_file() else []
    for line in lines:
        if line.strip() and not line.startswith(("import ", "import\t", "#")) and Path(line).resolve() != HOME:
            yield from _of_ours(Path(line))


def _folder(where: Path | None) -> Path | None:
    """The folder on the path that a module at the top is in."""
    if where is None:
        return None
    entries = {Path(entry or ".").resolve() for entry in sys.path}
    return next((parent for parent in where.parents if parent in entries), None)


def _installed() -> set[Path]:
    return {HOME, *(Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib"))}


def _of_ours(folder: Path) -> list[str]:
    """Names of ours that modules in this folder have."""
    return [name for name in OURS if (folder / f"{name}.py").is_file() or any((folder / name).glob("*.py"))]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
