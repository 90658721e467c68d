"""How hard the code is to enter: `python tests/structure.py` counts rooms and arrows, and fails above a bound.

A room is a module or package directly in a folder. An arrow is one room that imports another.
"""

import sys

import grimp

BOUNDS = {"models": (13, 43), "workers.tools": (14, 41), "workers": (17, 26), "api": (43, 139)}
"""At most so many rooms and arrows. Lower them when the code allows."""


def count(graph: grimp.ImportGraph, folder: str) -> tuple[int, int]:
    """The rooms of a folder, and the arrows between them."""
    rooms = graph.find_children(folder)

    def room(module: str) -> str | None:
        return next((room for room in rooms if module == room or module.startswith(f"{room}.")), None)

    arrows = {
        (room(module), room(imported))
        for module in graph.find_descendants(folder)
        for imported in graph.find_modules_directly_imported_by(module)
    }
    return len(rooms), sum(1 for start, end in arrows if start and end and start != end)


def main() -> int:
    """Print each folder's figures. Returns how many are above their bound."""
    graph = grimp.build_graph("models", "workers", "api", exclude_type_checking_imports=True)
    above = 0
    for folder, (rooms, arrows) in BOUNDS.items():
        found_rooms, found_arrows = count(graph, folder)
        fits = found_rooms <= rooms and found_arrows <= arrows
        above += not fits
        print(f"{folder}: {found_rooms} rooms of {rooms}, {found_arrows} arrows of {arrows}{'' if fits else ': TOO MANY'}")
    return above


if __name__ == "__main__":
    sys.exit(main())
