"""What the decisions on an approval do, one file per kind: each closes the approval, and settles or releases its call."""

from collections.abc import Callable
from importlib import import_module

from models.session.approval.decision import Decision
from models.session.approval.kinds import KINDS
from models.session.approval.row import Approval
from models.session.locked import Locked

Verb = Callable[[Locked, Approval, Decision], str]
CARRY_OUT: dict[str, Verb] = {name: import_module(f"{__name__}.{name}").carry_out for name in KINDS}
"""By the column `Approval.kind`: the verb that carries a decision out and returns the id of its event."""
