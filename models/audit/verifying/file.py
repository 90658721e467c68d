"""The audit as a file, one JSON object per line, to be kept and verified elsewhere.

    {"assent_audit": 1, "workspace_id": "wrkspc_...", "exported_at": "..."}                   the first line
    {"chain": ..., "seq": ..., ..., "hash": ..., "signature": {"key_id": ..., "value": ...}}  an act; seals have a signature
    {..., "details": {..., "texts": {NAME: DIGEST}}, "texts": {NAME: [SALT, TEXT]}}           an act with texts
    {"head": {"chain": ..., "seq": ..., "hash": ...}}                                         what the chain's own row says

An act's hash is the SHA-256 of the hash of the act before it (nothing, of the first) and the RFC 8785 bytes of the act without its
`hash`, `signature` and `texts`. What a signature is of: `models.audit.seal_key.signed_words`. A text's digest is the HMAC-SHA256
of the text under its salt, which is hex. An erased text is not in `texts`; without `texts` all were left out of the file.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from models.audit.acts import spelled
from models.audit.verifying.walk import COLUMNS, Act, Head, Item, walk

VERSION = 1


class NoExport(ValueError):
    """This is no export of an audit; the message names the line."""


def lines(workspace_id: str, at: datetime, *, texts: bool = True) -> Iterator[str]:
    """The whole export, line by line, as it is read; without `texts`, only their digests."""
    yield _line({"assent_audit": VERSION, "workspace_id": workspace_id, "exported_at": spelled(at)})
    for item in walk(workspace_id):
        yield _line(_said(item, texts=texts))


def read(given: Iterator[str]) -> tuple[str, Iterator[Item]]:
    """The workspace of an export, and its items, read as they are asked for. Raises NoExport."""
    first = _object(1, next(given, ""))
    if first.get("assent_audit") != VERSION or not isinstance(first.get("workspace_id"), str):
        raise NoExport('line 1: an export begins with {"assent_audit": 1, "workspace_id": ...}')
    return first["workspace_id"], (_item(number, line) for number, line in enumerate(given, 2) if line.strip())


def _said(item: Item, *, texts: bool) -> dict[str, Any]:
    if isinstance(item, Head):
        return {"head": {"chain": item.chain, "seq": item.seq, "hash": item.hash}}
    said = item.row | {"at": spelled(item.row["at"])}
    if item.signature:
        said["signature"] = {"key_id": item.signature[0], "value": item.signature[1]}
    if texts and item.texts is not None and "texts" in item.row["details"]:
        said["texts"] = item.texts
    return said


def _item(number: int, line: str) -> Item:
    said = _object(number, line)
    try:
        if head := said.get("head"):
            return Head(_text(head["chain"]), _integer(head["seq"]), _text(head["hash"]))
        row = {name: said[name] for name in COLUMNS}
        row["at"] = datetime.fromisoformat(_text(row["at"]))
        if row["at"].tzinfo is None:
            raise ValueError("at: a time without an offset")
        _text(row["chain"]), _integer(row["seq"]), _text(row["hash"])
        signature = said.get("signature")
        texts = said.get("texts")
        beside = {name: (_text(salt), _text(text)) for name, (salt, text) in texts.items()} if texts is not None else None
        return Act(row, (_text(signature["key_id"]), _text(signature["value"])) if signature else None, beside)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise NoExport(f"line {number} is neither an act nor a head: {type(error).__name__}: {error}") from None


def _object(number: int, line: str) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise NoExport(f"line {number} is no JSON object")
    return said


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no integer")
    return value


def _line(said: dict[str, Any]) -> str:
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")) + "\n"
