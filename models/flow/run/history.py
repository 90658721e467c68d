"""The history of a thread as the model gets it."""

import logging
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from models.database.exchange import Statement
from models.database.rows import Db
from models.flow.run.archived import complete
from models.pure.folding import Messages, Part, cut
from models.pure.json.canonical import canonical_text, digest
from models.pure.text import words
from models.session.event.row import MESSAGE, UNREAD
from models.session.thread.row import Thread
from models.session.tool_call.result import text
from models.session.turn.fold import RESULTS, TURNS

log = logging.getLogger(__name__)

_CLAIMED = "SELECT thread_id FROM turn WHERE id = %(turn)s AND status = 'queued'"
_OF_THREAD = f"session_id = %(session)s AND thread_id = coalesce(%(thread)s, ({_CLAIMED}))"
_LAST_FOLD = f"SELECT through, seq FROM fold WHERE {_OF_THREAD} AND kind = 'turns' ORDER BY through DESC LIMIT 1"  # noqa: S608
_NOT_FOLDED = f"""
    {_OF_THREAD} AND number = ANY (ARRAY(SELECT generate_series(
        (SELECT coalesce(max(through), 0) + 1 FROM ({_LAST_FOLD}) fold),
        (SELECT max(number) FROM turn WHERE {_OF_THREAD})
    )))
"""  # noqa: S608 - text of our own
"""A list, not a range: for a range the planner expects many turns, and would read all turns of a long session."""
_TURNS = f"""
    SELECT id, number, (SELECT content FROM reply WHERE turn_id = turn.id), stop_reason, status = 'done' FROM turn
    WHERE {_NOT_FOLDED} ORDER BY number
"""  # noqa: S608 - text of our own
_PROMPTS = f"""
    SELECT coalesce(turn_id, %(turn)s), seq, body -> 'content', body ->> 'from_session_thread_id', body ->> 'from_agent_name'
    FROM event WHERE {_OF_THREAD} AND {MESSAGE} AND (turn_id IS NOT NULL OR ({UNREAD} AND %(turn)s IS NOT NULL))
    AND seq > (SELECT coalesce(max(seq), 0) FROM ({_LAST_FOLD}) fold) ORDER BY seq
"""  # noqa: S608 - text of our own
"""A turn that is being claimed reads the queued messages."""
_CALLS = f"""
    SELECT turn_id, position, (SELECT content FROM call_result WHERE tool_call_id = tool_call.id), is_error,
        (SELECT input FROM call_input WHERE tool_call_id = tool_call.id AND status = 'done' AND proposed_input IS NOT NULL),
        id, status = 'done', settled_at IS NOT NULL
    FROM tool_call WHERE {_OF_THREAD} AND status <> 'replaced'
    AND turn_id = ANY (ARRAY(SELECT id FROM turn WHERE {_NOT_FOLDED}))
    ORDER BY turn_id, position
"""  # noqa: S608 - text of our own
"""The fifth column is the input that ran, if a person changed it."""
_FOLDS = f"""
    (SELECT kind, through, seq, summary FROM fold WHERE {_OF_THREAD} AND kind = 'turns' ORDER BY through DESC LIMIT 1)
    UNION ALL
    (SELECT kind, through, seq, summary FROM fold WHERE {_OF_THREAD} AND kind = 'results' ORDER BY through DESC LIMIT 1)
"""  # noqa: S608 - text of our own
_EDITED_AS_SHOWN = (
    "SELECT decided_shown FROM approval WHERE tool_call_id = %(call)s AND decided_sha256 = decode(%(sha256)s, 'hex') LIMIT 1"
)
_EDIT_CHARACTERS = 2_000
"""Most characters of an edited input that the model gets."""


def history(db: Db, thread: Thread) -> Messages:
    """Return the messages for the model: prompts, replies and results in order, with alternating roles and without approvals.

    They are neutral: `models.session.turn.reply` describes the blocks, and each provider translates them. A summary replaces the
    turns that were folded, and neither they nor their results are read.

    A turn that the model refused or could not accept is left out with its prompt, because the model would refuse again.
    """
    return joined(parts(db, thread, db.read(*_reads(thread.session_id, thread=thread.id))))


def reads_for(session_id: str, turn_id: str) -> list[Statement]:
    """Return the statements that read the rows for `parts` with the lock of a claim. They return none unless the turn is queued."""
    return _reads(session_id, turn=turn_id)


def _reads(session_id: str, thread: str | None = None, turn: str | None = None) -> list[Statement]:
    values = {"session": session_id, "thread": thread, "turn": turn}
    return [Statement(sql, values) for sql in (_FOLDS, _TURNS, _PROMPTS, _CALLS)]


def parts(db: Db, thread: Thread, rows: Sequence[Sequence[Any]]) -> list[Part]:
    """Return the history by turns, the oldest first: a summary, if there is one, and the turns that it does not cover.

    A turn with content that no code can read is left out, and a note for the model takes its place.
    """
    fold_rows, *read_rows = rows
    folds = {kind: (through, seq, summary) for kind, through, seq, summary in fold_rows}
    through, seq, summary = folds.get(TURNS, (0, 0, None))
    rows_of = complete(db, thread, seq, read_rows)
    turns, prompts_read, calls = rows_of.turns, rows_of.prompts, rows_of.calls
    unreadable = _unreadable(turns, prompts_read, calls) | rows_of.lost
    turns = [(turn_id, number, None if turn_id in unreadable else reply, stop) for turn_id, number, reply, stop in turns]
    start = [Part(through, seq, [{"role": "user", "content": [summary]}], is_summary=True)] if summary else []
    prompts: dict[str, list[dict[str, Any]]] = {}
    seqs: dict[str, int] = {}
    for turn_id, number, content, sender, name in prompts_read:
        header = text(words.message_from(name, sender)) if sender else []
        prompts.setdefault(turn_id, []).extend([] if turn_id in unreadable else header + content)
        seqs[turn_id] = number
    results = _results(db, turns, [call for call in calls if call[0] not in unreadable])
    cut_through = folds[RESULTS][0] if RESULTS in folds else 0
    read: list[Part] = []
    for turn_id, number, reply, stop_reason in turns:
        seq = seqs.get(turn_id, seq)
        messages: Messages = []
        if turn_id in unreadable:
            _append(messages, "user", text(words.unreadable_turn()))
        elif stop_reason not in {"refusal", "unacceptable"}:
            _append(messages, "user", prompts.get(turn_id, []))
            _append(messages, "assistant", [b for b in reply or [] if b["type"] != "text" or b["text"].strip()])
            _append(messages, "user", results.get(turn_id, []))
        part = Part(number, seq, messages)
        read.append(cut(part) if number <= cut_through else part)
    return start + read


def _unreadable(turns: Sequence[tuple[Any, ...]], prompts: Sequence[tuple[Any, ...]], calls: Sequence[tuple[Any, ...]]) -> set[str]:
    """Return the ids of the turns with a message, a reply or a result that is not a list of blocks."""
    contents = [(turn_id, content) for turn_id, _, content, *_ in prompts]
    contents += [(turn_id, reply or []) for turn_id, _, reply, _ in turns]
    contents += [(turn_id, result or []) for turn_id, _, result, _, _ in calls]
    turn_ids = {turn_id for turn_id, content in contents if not (isinstance(content, list) and all(map(_is_block, content)))}
    if turn_ids:
        log.error("turns %s: left out of the history, because they cannot be read", ", ".join(sorted(turn_ids)))
    return turn_ids


def _is_block(block: Any) -> bool:
    """True if the history can tell the block's kind, and has the text or the id that it needs."""
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        return False
    needed = {"text": "text", "tool_use": "id"}.get(block["type"])
    return needed is None or isinstance(block.get(needed), str)


def joined(history_parts: Sequence[Part]) -> Messages:
    """Return the messages of these parts."""
    messages: Messages = []
    for part in history_parts:
        for message in part.messages:
            _append(messages, message["role"], message["content"])
    return messages


def _results(db: Db, turns: Sequence[tuple[Any, ...]], calls: Sequence[tuple[Any, ...]]) -> dict[str, list[dict[str, Any]]]:
    """Return the result blocks by turn."""
    # A turn may have failed over a result of the calls before it.
    spoiled = {before for (before, *_), (*_, after) in pairwise(turns) if after == "unacceptable"}
    call_ids = {turn_id: [b["id"] for b in reply or [] if b["type"] == "tool_use"] for turn_id, _, reply, _ in turns}
    results: dict[str, list[dict[str, Any]]] = {}
    for turn_id, position, result, is_error, edited in calls:
        content = _acceptable(result or [], spoiled=turn_id in spoiled or bool(is_error))
        if edited is not None:
            content = text(words.edited(edited_input(db, call_ids[turn_id][position], edited))) + content
        if is_error and not content:
            content = text(words.failed_silently())
        block = {"type": "tool_result", "tool_use_id": call_ids[turn_id][position], "content": content, "is_error": bool(is_error)}
        results.setdefault(turn_id, []).append(block)
    return results


def edited_input(db: Db, call_id: str, edited: dict[str, Any]) -> str:
    """Return an edited input for the model: with the secrets that a person typed masked, and cut to `_EDIT_CHARACTERS`."""
    shown = db.value(_EDITED_AS_SHOWN, call=call_id, sha256=digest(edited))
    whole = canonical_text(shown or {})
    cut_off = len(whole) - _EDIT_CHARACTERS
    return f"{whole[:_EDIT_CHARACTERS]}... ({cut_off} more characters)" if cut_off > 0 else whole


def _acceptable(content: list[dict[str, Any]], *, spoiled: bool) -> list[dict[str, Any]]:
    """Return a result without blocks that the model's API refuses: blank texts and, if `spoiled`, everything but text."""
    kept = []
    for block in content:
        if block["type"] == "text":
            kept += [block] if block["text"].strip() else []
        else:
            kept += text(words.left_out(block["type"])) if spoiled else [block]
    return kept


def _append(messages: Messages, role: str, content: list[dict[str, Any]]) -> None:
    if not content:
        return
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"] = messages[-1]["content"] + content
    else:
        messages.append({"role": role, "content": content})
