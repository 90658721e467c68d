"""The kinds of approvals. One file per kind says which decisions fit, what silence and an interrupt do, and how people are asked.

`models.flow.decide.kinds` has what the decisions do, and `api/desk/card/kinds` how people decide on a card: also one file per
kind, of the same name. So a kind is added by its files alone.
"""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from models.session.approval.kinds.kind import Kind


def _kinds() -> Iterator[Kind]:
    """Yield the KIND of each file of this folder that has one."""
    for module in iter_modules(__path__):
        kind: Kind | None = getattr(import_module(f"{__name__}.{module.name}"), "KIND", None)
        if kind is not None:
            yield kind


KINDS: dict[str, Kind] = {kind.name: kind for kind in _kinds()}
"""By the column `Approval.kind`."""
