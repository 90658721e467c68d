"""What came of calls that people decided about: a line for a list, and the beginning of the result for a card."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Literal, NamedTuple

from models.database.rows import Db
from models.pure.masking import Echoes
from models.pure.naming import OURS
from models.pure.state_words import StateWord, call_state
from models.pure.states import SETTLED
from models.pure.text.relative_time import span
from models.pure.text.visible import visible_lines
from models.session.archive.reading import readable_rows_at
from models.session.tool_call.echoes import echoes_of
from models.session.tool_call.input import CallInput
from models.session.tool_call.result import CallResult
from models.session.tool_call.row import ToolCall
from models.workspace.halt import Halt
from models.workspace.toolset import OF_SESSION

Tone = Literal["waits", "due", "good", "bad"]
"""How to show an outcome: it is still to come, or nobody knows it, or the call did what it should, or it did not."""
_MOST_READ = 6_000
"""Characters of a result that are read and masked. A secret that is cut there is behind what is shown."""
_MOST_SHOWN = 2_000
_MOST_LINE = 160
_EXIT = re.compile(r"^exit code: (\d+)$", re.MULTILINE)
_STREAM = re.compile(r"^(stdout|stderr):\n")
_FAILED = StateWord("failed", "cross", "bad")
_BAD = frozenset({"expired", "refused"})


@dataclass(frozen=True)
class CallOutcome:
    """What came of one call. Its texts have the secrets of the call's input masked, and hidden characters written out.

    A text is masked when it is read. That takes time, so read `words`, `exit_code`, `line` and `text` after the transaction.
    """

    status: str
    """The call's status, one of `models.pure.states.TOOL_CALL`."""
    is_error: bool
    seconds: float | None
    """How long the last attempt took; None if none has ended."""
    is_command: bool
    length: int
    """Characters of the result."""
    raw_texts: Sequence[str] = field(repr=False)
    """The beginnings of the result's texts, not masked."""
    echoes: Echoes = field(repr=False, compare=False)
    """Masks them."""
    is_halted: bool = False
    """True if the workspace is halted, so that no worker takes the call."""

    @cached_property
    def _blocks(self) -> list[str]:
        return [visible_lines(self.echoes.text(text)) for text in self.raw_texts]

    @property
    def exit_code(self) -> int | None:
        """Of a command that ended."""
        codes = (int(match[1]) for text in reversed(self._blocks) if (match := _EXIT.search(text)))
        return next(codes, None) if self.is_command else None

    @property
    def line(self) -> str:
        """The line of the result that tells most; empty without a result."""
        return _line(self._blocks, of_command=self.exit_code is not None, is_error=self.is_error)

    @property
    def text(self) -> str:
        """The beginning of the result."""
        return "\n".join(self._blocks)[:_MOST_SHOWN]

    @property
    def is_cut(self) -> bool:
        """True if the result is longer than `text`."""
        return len("\n".join(self._blocks)) > _MOST_SHOWN or self.length > _MOST_READ

    @property
    def tone(self) -> Tone:
        """How to show the outcome."""
        if self.status not in SETTLED:
            return "due" if self.status == "unknown" else "waits"
        return "bad" if self.is_error or self.status in _BAD else "good"

    @property
    def state(self) -> StateWord:
        """The call's state as people read it: that of `models.pure.state_words`, or `failed`."""
        return _FAILED if self.status == "done" and self.is_error else call_state(self.status, halted=self.is_halted)

    @property
    def words(self) -> str:
        """The outcome in words: `Running`, `Done in 1.2 s, exit code 0`, `Failed after 3 minutes`."""
        if self.status != "done":
            return self.state.word.capitalize()
        took = "" if self.seconds is None else f" {'after' if self.is_error else 'in'} {_took(self.seconds)}"
        code = "" if self.exit_code is None else f", exit code {self.exit_code}"
        return f"{'Failed' if self.is_error else 'Done'}{took}{code}"

    @property
    def sentence(self) -> str:
        """The outcome in one line, with the line of the result."""
        return f"{self.words}: {self.line}" if self.line else self.words


class _Row(NamedTuple):
    id: str
    status: str
    name: str
    address: str | None
    is_error: bool | None
    started_at: datetime | None
    ended_at: datetime | None
    texts: Sequence[str] | None
    length: int | None
    secrets: Sequence[str] | None


def outcomes_of(db: Db, call_ids: Iterable[str | None]) -> dict[str, CallOutcome]:
    """Return what came of these calls, by id. Reads the beginning of each result, of a single call also from the archive."""
    ids = sorted({call_id for call_id in call_ids if call_id})
    rows = [_Row(*row) for row in db.rows(_OUTCOMES, ids=ids, most=_MOST_READ)] if ids else []
    if len(rows) == 1 and rows[0].texts is None and rows[0].status in SETTLED:
        rows = [_archived(db, rows[0])]
    halted = any(row.status == "queued" for row in rows) and Halt.current(db) is not None
    return {row.id: replace(_outcome(row, _echoes(db, row)), is_halted=halted) for row in rows}


def _archived(db: Db, row: _Row) -> _Row:
    """Return the row with its result, if that is in the archive and can be read."""
    call = db.get_one(ToolCall, row.id)
    place = (call.session_id, call.settled_at)
    inputs = [each for each in readable_rows_at(db, CallInput, *place) if each.tool_call_id == call.id]
    results = [each for each in readable_rows_at(db, CallResult, *place) if each.tool_call_id == call.id]
    if not inputs or not results:
        return row
    texts = [block["text"] for block in results[0].content if block["type"] == "text"]
    cut = [text[:_MOST_READ] for text in texts[:10]]
    return row._replace(texts=cut, length=sum(map(len, texts)), secrets=inputs[0].secrets)


def _echoes(db: Db, row: _Row) -> Echoes:
    """Return the masked values that the call's result may repeat, as `echoes_of` does."""
    return echoes_of(db, db.get_one(ToolCall, row.id)) if row.address == OURS + OF_SESSION else Echoes(row.secrets or ())


def _outcome(row: _Row, echoes: Echoes) -> CallOutcome:
    ran = row.started_at is not None and row.ended_at is not None
    return CallOutcome(
        status=row.status,
        is_error=bool(row.is_error),
        seconds=(row.ended_at - row.started_at).total_seconds() if ran and row.ended_at and row.started_at else None,
        is_command=row.name == "bash",
        length=row.length or 0,
        raw_texts=(row.texts or ()) if row.status in SETTLED else (),
        echoes=echoes,
    )


def _line(blocks: Sequence[str], *, of_command: bool, is_error: bool) -> str:
    """Return the first line of a result; of a command the last line that it printed, of one that failed on standard error."""
    if of_command:
        streams = {match[1]: text[match.end() :] for text in blocks if (match := _STREAM.match(text))}
        texts = [streams.get(name, "") for name in (("stderr", "stdout") if is_error else ("stdout", "stderr"))]
        lines = [line for line in next(filter(str.strip, texts), "").splitlines() if line.strip()][-1:]
    else:
        lines = [line for text in blocks for line in text.splitlines() if line.strip()][:1]
    line = "".join(lines).strip()
    return line if len(line) <= _MOST_LINE else f"{line[:_MOST_LINE]}…"


def _took(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else span(seconds)


_OUTCOMES = """
    SELECT call.id, call.status, name, address, is_error, started_at, ended_at,
        (SELECT array_agg(left(block ->> 'text', %(most)s) ORDER BY place) FROM jsonb_array_elements(content)
            WITH ORDINALITY blocks(block, place) WHERE block ->> 'type' = 'text' AND place <= 10),
        (SELECT sum(length(block ->> 'text')) FROM jsonb_array_elements(content) block WHERE block ->> 'type' = 'text'),
        secrets
    FROM tool_call call
    LEFT JOIN attempt ON attempt.tool_call_id = call.id AND number = call.attempt
    LEFT JOIN call_result ON call_result.tool_call_id = call.id
    LEFT JOIN call_input ON call_input.tool_call_id = call.id
    WHERE call.id = ANY(%(ids)s)
"""
