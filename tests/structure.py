"""Measures how hard the code is to read: `python tests/structure.py` counts rooms, arrows and riddles, and fails above a bound.

A room is a module or package directly in a folder. An arrow is an import of one room by another. A riddle is a use of a name that
says how a value was produced instead of what the value is: `found` instead of `rows`.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp

BOUNDS = {"models": (13, 52), "workers.tools": (10, 27), "workers": (22, 38), "api": (26, 92), "api.routes": (23, 4)}
"""The maximum of rooms and arrows per folder. Lower them when the code allows."""

RIDDLES = frozenset({"asked", "found", "given", "made", "said", "told", "wanted"})
RIDDLE_BOUNDS = {"models": 0, "api": 0, "workers": 0, "deploy": 0}
"""The maximum of riddles per folder. Lower them when the code allows; never raise them."""


def count(graph: grimp.ImportGraph, folder: str) -> tuple[int, int]:
    """Return the numbers of rooms in a folder and of arrows between them."""
    rooms = graph.find_children(folder)

    def room(module: str) -> str | None:
        return next((room for room in rooms if module == room or module.startswith(f"{room}.")), None)

    arrows = {
        (room(module), room(imported))
        for module in graph.find_descendants(folder)
        for imported in graph.find_modules_directly_imported_by(module)
    }
    return len(rooms), sum(1 for start, end in arrows if start and end and start != end)


def riddles(folder: str) -> int:
    """Return how often the Python files of a folder use one of `RIDDLES` as a name, with or without underscores around it."""
    files = (Path(__file__).parents[1] / folder).rglob("*.py")
    return sum(name.strip("_") in RIDDLES for file in files for name in _names(ast.parse(file.read_text("utf-8"))))


def _names(tree: ast.Module) -> Iterator[str]:
    """Yield each use of a variable, parameter, attribute or keyword argument."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name


def main() -> int:
    """Print each folder's counts. Return the number of counts above their bound."""
    graph = grimp.build_graph("models", "workers", "api", exclude_type_checking_imports=True)
    above = 0
    for folder, (rooms, arrows) in BOUNDS.items():
        rooms_now, arrows_now = count(graph, folder)
        fits = rooms_now <= rooms and arrows_now <= arrows
        above += not fits
        print(f"{folder}: {rooms_now} rooms of {rooms}, {arrows_now} arrows of {arrows}{'' if fits else ': TOO MANY'}")
    for folder, bound in RIDDLE_BOUNDS.items():
        uses = riddles(folder)
        above += uses > bound
        print(f"{folder}: {uses} uses of riddles of {bound}{': TOO MANY' if uses > bound else ''}")
    return above


if __name__ == "__main__":
    sys.exit(main())
