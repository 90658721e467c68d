"""The path to an agent in words, as every page, message and terminal names who asks: `Coordinator › Researcher`."""

from collections.abc import Iterable

from models.pure.text.visible import visible

_APART = " › "
_MOST = 60
"""Most characters of a name in a path of several, so that a place with little room does not cut off who asks."""


def path_in_words(names: Iterable[str]) -> str:
    """Return the names of the agents from a session's own to the one at hand, in one line.

    Agents name their sub-agents, so that no name may look like two, or hide another.
    """
    lines = [visible(" ".join(name.replace("›", ">").split())) for name in names]
    return _APART.join(_shortened(line) for line in lines) if len(lines) > 1 else "".join(lines)


def _shortened(name: str) -> str:
    return name if len(name) <= _MOST else f"{name[: _MOST - 1]}…"
