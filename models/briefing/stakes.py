"""What is at stake: what a call can do, how often it runs, and whether it has secrets."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from models.database.rows import Db
from models.pure.naming import OURS
from models.pure.policy.destroying import destroys
from models.pure.shell import only_reads, read
from models.pure.text.relative_time import number_with_noun
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall
from models.workspace.toolset import Entry, entry_of, listings_at

Effect = Literal["reads", "writes", "destroys", "unknown"]
BUILT_IN_READERS = frozenset({"read", "glob", "grep"})
"""The built-in tools that only read. Every other one may write."""


@dataclass(frozen=True)
class Chip:
    """A fact in one to four words, with a sentence that explains it."""

    words: str
    sentence: str
    is_warning: bool = False
    is_grave: bool = False
    """True if also a row of a list warns of it."""


@dataclass(frozen=True)
class Stakes:
    """What a call can do: a command by its words, another call as its tool declares it."""

    tool: str
    """The tool's name for people."""
    effect: Effect
    """`unknown` for a tool of the client's, which declares nothing; `destroys` only for a command."""
    is_command: bool
    """True if the effect is read from the words of a command."""
    is_idempotent: bool
    """True if the call may run again under the same key: then no person is asked if a worker is lost."""
    at_client: bool
    """True if the client runs the call."""
    secrets: int
    """The number of masked values."""

    @classmethod
    def of(cls, db: Db, approval: Approval) -> "Stakes | None":
        """Return what is at stake with an approval's call; None without a call."""
        if approval.tool_call_id is None:
            return None
        call = approval.call(db)
        entry = entry_of(db, call.address, call.tool) if call.address and call.tool else None
        return cls(
            tool=_name(call, entry),
            effect=_effect(approval, call, entry),
            is_command=_is_command(call),
            is_idempotent=call.idempotent,
            at_client=call.kind in {"custom", "self_hosted"},
            secrets=len(approval.masked.paths),
        )

    @staticmethod
    def effects_of(db: Db, approvals: Iterable[Approval]) -> dict[str, Chip]:
        """Return the first chip of each approval's call, by the approval's id: what the call may do. Approvals without a call have
        none."""
        by_call = {approval.tool_call_id: approval for approval in approvals if approval.tool_call_id}
        calls = db.find(ToolCall, "WHERE id = ANY(%(ids)s)", ids=list(by_call)) if by_call else []
        listings = listings_at(db, {call.address for call in calls if call.address})
        entries = {call.id: listings[call.address].entry(call.tool) for call in calls if call.address in listings}
        effects = {call.id: _effect(by_call[call.id], call, entries.get(call.id)) for call in calls}
        return {by_call[call.id].id: _effect_chip(effects[call.id], is_command=_is_command(call)) for call in calls}

    @property
    def runs_at_most_once(self) -> bool:
        """True if the call does not run again by itself."""
        return not self.is_idempotent

    def chips(self, *, is_first: bool) -> list[Chip]:
        """Return the facts as chips, the gravest first. `is_first`: the agent never asked for such a call before."""
        chips = [_effect_chip(self.effect, is_command=self.is_command)]
        if self.runs_at_most_once:
            chips.append(_ONCE)
        if is_first:
            chips.append(_FIRST)
        if self.secrets:
            words = f"{number_with_noun(self.secrets, 'secret')} masked"
            chips.append(Chip(words, "The call runs with the real values. You see them masked."))
        if self.at_client:
            chips.append(_AT_CLIENT)
        return chips


def _effect(approval: Approval, call: ToolCall, entry: Entry | None) -> Effect:
    if _is_command(call):
        return _effect_of_line(json.loads(approval.decided_input or approval.input).get("command"))
    if call.kind in {"builtin", "self_hosted"}:
        return "reads" if call.name in BUILT_IN_READERS else "writes"
    if call.kind == "agent":
        return "writes"
    effect = entry.get("effect") if entry else None
    return "reads" if effect == "read" else "writes" if effect == "write" else "unknown"


def _is_command(call: ToolCall) -> bool:
    return call.kind in {"builtin", "self_hosted"} and call.name == "bash"


def _effect_of_line(command: object) -> Effect:
    """Return what a command line does by its words. If it is not certain which commands run, it does not count as reading."""
    if not isinstance(command, str):
        return "writes"
    line = read(command)
    changing = [words for words in line.commands if not only_reads(words)]
    if any(map(destroys, changing)):
        return "destroys"
    return "writes" if changing or line.doubt else "reads"


def _effect_chip(effect: Effect, *, is_command: bool) -> Chip:
    return (_EFFECTS_OF_COMMANDS if is_command else _EFFECTS)[effect]


def _name(call: ToolCall, entry: Entry | None) -> str:
    """Return the tool's name for people. The title that a foreign server gives to its tool stands behind the tool's own name."""
    if call.tool is None or call.server is None:
        return call.name
    title = entry.get("title") if entry else None
    own = call.tool.replace("_", " ")
    if title and (call.address or "").startswith(OURS):
        own = str(title)
    return f"{own} of {call.server}"


_EFFECTS: dict[Effect, Chip] = {
    "reads": Chip("reads only", "The tool changes nothing, by its own declaration."),
    "writes": Chip("may write", "The tool may change something, by its own declaration.", is_warning=True),
    "unknown": Chip("effect not declared", "The tool is the client's, which declares no effect.", is_warning=True),
}
_EFFECTS_OF_COMMANDS: dict[Effect, Chip] = {
    "reads": Chip("reads only", "The command changes nothing, by its words."),
    "writes": Chip("may write", "The command may change something.", is_warning=True),
    "destroys": Chip("may destroy", "The command may take away what nobody brings back.", is_warning=True, is_grave=True),
}
_ONCE = Chip("at most once", "If its worker is lost, the call does not run again by itself: a person says what became of it.")
_FIRST = Chip("first time for this agent", "This agent has never asked for such a call before.", is_warning=True)
_AT_CLIENT = Chip("runs at the client", "The client's own program runs the call.")
