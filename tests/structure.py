"""Measures how hard the code is to read: `python tests/structure.py` prints each count beside its bound, and fails above a bound.

A room is a module or package directly in a folder. An arrow is an import of one room by another, imports for annotations included.
An arrow is backward if it has to be left out for the rooms to stand on floors, each importing only from floors below.
"""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from itertools import permutations
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PRODUCT = ("models", "api", "workers", "deploy")

BOUNDS = {
    "models": (15, 82, 0, 13),
    "models.flow": (8, 15, 0, 6),
    "models.flow.begin": (4, 2, 0, 2),
    "models.flow.run": (8, 5, 0, 3),
    "models.flow.decide": (8, 9, 0, 4),
    "models.flow.decide.kinds": (5, 3, 0, 2),
    "models.flow.sub_agents": (4, 3, 0, 2),
    "models.flow.spend": (3, 2, 0, 3),
    "models.flow.judge": (6, 4, 0, 3),
    "models.flow.carry_on": (5, 4, 0, 3),
    "models.session": (12, 24, 0, 8),
    "models.session.approval": (17, 29, 0, 7),
    "models.session.approval.kinds": (5, 4, 0, 2),
    "models.session.tool_call": (10, 18, 0, 5),
    "models.session.turn": (5, 3, 0, 3),
    "models.session.spending": (4, 1, 0, 2),
    "models.notices": (15, 22, 0, 6),
    "models.operate": (19, 6, 0, 4),
    "models.pure": (18, 15, 0, 4),
    "models.pure.json": (7, 3, 0, 3),
    "models.pure.masking": (9, 14, 0, 7),
    "models.pure.policy": (14, 32, 0, 6),
    "models.pure.pricing": (4, 6, 0, 4),
    "models.pure.shell": (9, 16, 0, 5),
    "models.pure.text": (5, 2, 0, 2),
    "workers": (26, 50, 0, 5),
    "workers.leash": (5, 8, 0, 4),
    "workers.leash.programs": (7, 8, 0, 4),
    "workers.tools": (10, 23, 0, 6),
    "workers.tools.builtin": (13, 22, 0, 4),
    "workers.tools.mcp": (10, 27, 0, 6),
    "workers.tools.python": (5, 5, 0, 3),
    "workers.tools.sandbox": (4, 2, 0, 2),
    "api": (9, 13, 0, 5),
    "api.door": (15, 27, 0, 6),
    "api.v1": (20, 16, 0, 5),
    "api.v1.agents": (9, 13, 0, 5),
    "api.v1.approvals": (8, 11, 0, 4),
    "api.v1.events": (4, 3, 0, 2),
    "api.v1.people": (8, 8, 0, 2),
    "api.v1.policy": (5, 4, 0, 3),
    "api.v1.sessions": (5, 5, 0, 3),
    "api.chat": (11, 32, 0, 10),
    "api.desk": (16, 30, 0, 5),
    "api.desk.card": (7, 8, 0, 5),
    "api.desk.shell": (9, 11, 0, 5),
    "api.desk.settings": (9, 1, 0, 2),
}
"""The maximum of rooms, arrows, backward arrows and floors per folder. Lower them when the code allows."""

MOST_WITH_SIX_PARAMETERS = 19
"""The maximum of functions with six or more parameters, `self` and `cls` not counted."""

MOST_COMPARISONS_OF_KINDS = 0
"""The maximum of places outside of a folder `kinds` that compare an approval's kind, in Python, templates and SQL.

Migrations do not count: they repeat the conditions of the rows' indexes."""

PARTICIPLES = frozenset(
    {
        *(
            "accepted",
            "allowed",
            "announced",
            "answered",
            "asked",
            "begun",
            "bound",
            "built",
            "changed",
            "checked",
            "chosen",
            "claimed",
        ),
        *("closed", "committed", "compiled", "counted", "decided", "defined", "denied", "described", "done", "dropped", "ended"),
        *(
            "escaped",
            "expected",
            "filled",
            "folded",
            "formatted",
            "found",
            "given",
            "granted",
            "heard",
            "held",
            "hidden",
            "ignored",
        ),
        *(
            "joined",
            "judged",
            "kept",
            "known",
            "left",
            "listed",
            "loaded",
            "made",
            "marked",
            "masked",
            "matched",
            "measured",
            "missed",
        ),
        *("moved", "named", "noted", "offered", "opened", "parsed", "passed", "picked", "planned", "priced", "proposed", "queued"),
        *("quoted", "refused", "released", "removed", "required", "resolved", "said", "saved", "seen", "sent", "shown", "signed"),
        *("skipped", "sorted", "spelled", "spent", "started", "stored", "taken", "told", "touched", "tried", "used", "wanted"),
        *("withheld", "written"),
    }
)
"""Names that say what was done to a value, not what the value is: `found` instead of `rows`. No word is a verb as well."""
MOST_PARTICIPLES = 197
"""The maximum of variables, parameters, fields and functions that one of `PARTICIPLES` names."""
RIDDLES = frozenset({"asked", "found", "given", "made", "said", "told", "wanted"})
"""Those of them that the code has got rid of: none may come back."""

KINDS = frozenset({"tool_call", "question", "unknown_outcome", "budget"})
_IN_TEXT = re.compile(rf"kind\s*(?:=|==|!=|<>|in|not in)\s*\(?[\"'](?:{'|'.join(sorted(KINDS))})\b", re.IGNORECASE)

Arrow = tuple[str, str]


def rooms_and_arrows(graph: grimp.ImportGraph, folder: str) -> tuple[list[str], set[Arrow]]:
    """Return the rooms of a folder, and the arrows between them."""
    rooms = sorted(graph.find_children(folder))

    def room(module: str) -> str | None:
        return next((room for room in rooms if module == room or module.startswith(f"{room}.")), None)

    pairs = (
        (room(module), room(imported))
        for module in graph.find_descendants(folder)
        for imported in graph.find_modules_directly_imported_by(module)
    )
    return rooms, {(start, end) for start, end in pairs if start and end and start != end}


def backward(rooms: list[str], arrows: set[Arrow]) -> set[Arrow]:
    """Return a set of arrows without which no circle is left: a smallest one for circles of up to seven rooms, else a small one."""
    arrows_against: set[Arrow] = set()
    for circle in _circles(rooms, arrows):
        inside = {(start, end) for start, end in arrows if start in circle and end in circle}
        orders = permutations(circle) if len(circle) <= 7 else [tuple(_by_imports(circle, inside))]
        against = (
            {(start, end) for start, end in inside if place[start] > place[end]}
            for place in ({room: number for number, room in enumerate(order)} for order in orders)
        )
        arrows_against |= min(against, key=len)
    return arrows_against


def _circles(rooms: list[str], arrows: set[Arrow]) -> list[list[str]]:
    """Return the sets of two and more rooms of which each reaches each other one."""
    reach = {room: {end for start, end in arrows if start == room} for room in rooms}
    for middle in rooms:
        for ends in reach.values():
            if middle in ends:
                ends.update(reach[middle])
    circles = {tuple(other for other in rooms if other in reach[room] and room in reach[other]) for room in rooms}
    return [list(circle) for circle in sorted(circles) if circle]


def _by_imports(circle: list[str], arrows: set[Arrow]) -> list[str]:
    """Return the rooms of a circle, those first that import much and are imported little (Eades, Lin and Smyth)."""
    left, order = set(circle), []
    while left:
        inside = [(start, end) for start, end in arrows if start in left and end in left]
        weight = {room: sum((start == room) - (end == room) for start, end in inside) for room in sorted(left)}
        first = max(weight, key=lambda room: weight[room])
        order.append(first)
        left.remove(first)
    return order


def floors(rooms: list[str], arrows: set[Arrow]) -> int:
    """Return the number of floors that the rooms need, where each arrow points to a lower floor."""
    below = {room: [end for start, end in arrows if start == room] for room in rooms}

    @cache
    def floor(room: str) -> int:
        return 1 + max((floor(end) for end in below[room]), default=0)

    return max((floor(room) for room in rooms), default=0)


def functions_with_six_parameters(tree: ast.Module) -> int:
    """Return how many functions of a file have six or more parameters, `self` and `cls` not counted."""
    functions = (node.args for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    parameters = ([*args.posonlyargs, *args.args, *args.kwonlyargs] for args in functions)
    return sum(len([each for each in names if each.arg not in {"self", "cls"}]) >= 6 for names in parameters)


def comparisons_of_kinds(text: str, tree: ast.Module | None) -> int:
    """Return how often a file compares an approval's kind, in Python and in the texts of SQL and templates."""
    if tree is None:
        return len(_IN_TEXT.findall(text))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    count = 0
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                count += _reads_kind(left) and any(_names_kind(other) for other in others)
            case ast.Match(subject=subject, cases=cases) if _reads_kind(subject):
                count += sum(any(_names_kind(part) for part in ast.walk(case.pattern)) for case in cases)
            case ast.Constant(value=str(sql)) if id(node) not in docstrings:
                count += len(_IN_TEXT.findall(sql))
    return count


def _reads_kind(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute | ast.Name) and (node.attr if isinstance(node, ast.Attribute) else node.id) == "kind"


def _names_kind(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Constant) and part.value in KINDS for part in ast.walk(node))


def named(tree: ast.Module, words: frozenset[str]) -> int:
    """Return how many variables, parameters, fields and functions of a file have one of the words as name, without underscores."""
    return sum(name.strip("_") in words for name in _bindings(tree))


def _bindings(tree: ast.Module) -> Iterator[str]:
    """Yield the name of each binding of a variable, parameter, field or function."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name


def migrations_of_one_number() -> int:
    """Return how many migrations have the number of another one. Alembic then knows no newest revision."""
    numbers = [file.name[:4] for file in (ROOT / "models/migrations/versions").glob("[0-9]*.py")]
    return len(numbers) - len(set(numbers))


def classes_of_two_nouns() -> list[str]:
    """Return the CSS classes that two nouns style, since all styles are one sheet.

    The folder that styles a class by itself defines it. Another one may style it only within a class of its own, and the parts of
    all pages, which `shell` and `rendering` define, within anything.
    """
    sheets = [(sheet, sheet.parent.name) for sheet in sorted((ROOT / "api/desk").glob("*/*.css"))]
    shared_homes = {"shell", "rendering"}
    selectors = [("" if home in shared_homes else home, selector) for sheet, home in sheets for selector in _selectors(sheet)]
    homes: dict[str, set[str]] = {}
    for folder, selector in selectors:
        if alone := _CLASS_ALONE.fullmatch(selector):
            homes.setdefault(alone[1], set()).add(folder)
    strays = {name for name, folders in homes.items() if len(folders) > 1}
    for folder, selector in selectors:
        *_, subject = _BETWEEN_COMPOUNDS.split(selector)
        if not any(folder in homes.get(name, ()) for name in _CLASS.findall(selector)):
            strays |= {name for name in _CLASS.findall(subject) if "" not in homes.get(name, {""})}
    return sorted(strays)


def _selectors(file: Path) -> Iterator[str]:
    """Yield the selectors of a style sheet, without what they only look at (`:has`, `:not`)."""
    for heads in _HEADS.findall(_NO_HEADS.sub("", file.read_text("utf-8"))):
        yield from map(str.strip, re.split(r",(?![^(]*\))", _LOOKED_AT.sub("", heads)))


_NO_HEADS = re.compile(r"/\*.*?\*/|@[^{]*\{", re.DOTALL)
_HEADS = re.compile(r"([^{}]+)\{")
_LOOKED_AT = re.compile(r":(?:has|not)\((?:[^()]|\([^()]*\))*\)")
_CLASS, _CLASS_ALONE = re.compile(r"\.([\w-]+)"), re.compile(r"[a-z]*\.([\w-]+)(?:::?[\w-]+)*")
_BETWEEN_COMPOUNDS = re.compile(r"\s*[ >+~]\s*")


def main() -> int:
    """Print each count beside its bound. Return the number of counts above their bound."""
    graph = grimp.build_graph("models", "workers", "api")
    counts: list[tuple[str, int, int]] = []
    for folder, bounds in BOUNDS.items():
        rooms, arrows = rooms_and_arrows(graph, folder)
        against = backward(rooms, arrows)
        numbers = (len(rooms), len(arrows), len(against), floors(rooms, arrows - against))
        names = ("rooms", "arrows", "backward arrows", "floors")
        counts += ((f"{folder}, {name}", number, most) for name, number, most in zip(names, numbers, bounds, strict=True))

    files = [file for folder in PRODUCT for file in sorted((ROOT / folder).rglob("*")) if file.suffix in {".py", ".html", ".sql"}]
    texts = {file: file.read_text("utf-8") for file in files}
    trees = {file: ast.parse(text) if file.suffix == ".py" else None for file, text in texts.items()}
    modules = [tree for tree in trees.values() if tree]
    by_kind = sum(
        comparisons_of_kinds(texts[file], tree)
        for file, tree in trees.items()
        if not {"kinds", "migrations"}.intersection(file.relative_to(ROOT).parts)
    )
    classes = classes_of_two_nouns()
    counts += [
        ("functions with six and more parameters", sum(map(functions_with_six_parameters, modules)), MOST_WITH_SIX_PARAMETERS),
        ("comparisons of an approval's kind", by_kind, MOST_COMPARISONS_OF_KINDS),
        ("participles as names", sum(named(tree, PARTICIPLES) for tree in modules), MOST_PARTICIPLES),
        ("riddles as names", sum(named(tree, RIDDLES) for tree in modules), 0),
        ("migrations with the number of another one", migrations_of_one_number(), 0),
        (" ".join(["CSS classes of two nouns", *classes]), len(classes), 0),
    ]
    for name, number, most in counts:
        print(f"{name}: {number} of {most}{' TOO MANY' if number > most else ''}")
    return sum(number > most for _, number, most in counts)


if __name__ == "__main__":
    sys.exit(main())
