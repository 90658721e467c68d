"""The effects of calls of `effects_toolset`, read from the toolset's own files and not from Assent's rows."""

import json
from dataclasses import dataclass
from pathlib import Path

from crashes.effects_toolset import effects
from crashes.processes import lives

from models.workspace import toolset
from workers.tools.python.runner.tools import tools_of

TOOLSET = "crashes.effects_toolset:effects"
SERVERS = {"till": "assent:effects"}
"""The servers of a session whose agent calls the toolset `till`."""


@dataclass(frozen=True)
class Noted:
    """A line of the ledger: a function began to run, or took effect."""

    what: str
    key: str
    attempt: int
    tool: str
    how: str
    pid: int

    @property
    def lives(self) -> bool:
        """True if the process that ran the function is there."""
        return lives(self.pid)


class Ledger:
    """The folder that the functions write into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def runs(self, session_id: str) -> list[Noted]:
        """Each start of a function."""
        return [noted for noted in self._read(session_id) if noted.what == "run"]

    def effects(self, session_id: str) -> int:
        """How often a function took effect."""
        return sum(noted.what == "effect" for noted in self._read(session_id))

    def open_gate(self, session_id: str) -> None:
        """Let waiting functions go on."""
        (self.folder / f"go-{session_id}").touch()

    def _read(self, session_id: str) -> list[Noted]:
        file = self.folder / session_id
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        return [Noted(**json.loads(line)) for line in lines if line.endswith("\n")]


def announce_effects() -> None:
    """Announce the toolset as its workers do, because the tables were emptied since."""
    name = effects.name
    toolset.announce({name: [{**tool.entry, "queue": f"tools.{name}"} for tool in tools_of(effects).values()]})


def call(tool: str, how: str = "well") -> str:
    """The line of a stand-in's script that makes this call."""
    return f"call mcp__till__{tool} {json.dumps({'how': how})}"
