"""The audit as a file of JSON lines, to be kept and verified elsewhere.

    {"assent_audit": 1, "workspace_id": "wrkspc_...", "exported_at": "..."}                   the first line
    {"chain": ..., "seq": ..., ..., "hash": ..., "signature": {"key_id": ..., "value": ...}}  an act; seals have a signature
    {..., "details": {..., "texts": {NAME: DIGEST}}, "texts": {NAME: [SALT, TEXT]}}           an act with texts
    {"head": {"chain": ..., "seq": ..., "hash": ...}}                                         the head on the chain's row

An act's hash is the SHA-256 of the previous act's hash (empty for the first act) and the RFC 8785 bytes of the act without its
`hash`, `signature` and `texts`. `models.audit.seal_key.signed_words` defines the content that a signature covers. A text's digest
is the HMAC-SHA256 of the text under its salt, in hex. `texts` lacks erased texts; a file without any `texts` left all of them out.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from models.audit.acts import COLUMNS, time_text
from models.audit.verifying.walk import Act, Head, Item, walk

VERSION = 1


class NoExport(ValueError):
    """The file is not an export of an audit. The message names the line."""


def lines(workspace_id: str, at: datetime, *, texts: bool = True) -> Iterator[str]:
    """Yield the export line by line. Without `texts`, only the digests of the texts."""
    yield _line({"assent_audit": VERSION, "workspace_id": workspace_id, "exported_at": time_text(at)})
    for item in walk(workspace_id):
        yield _line(_exported(item, texts=texts))


def read(file: Iterator[str]) -> tuple[str, Iterator[Item]]:
    """Return the workspace of an export and an iterator that reads its items. Raises NoExport."""
    first = _object(1, next(file, ""))
    if first.get("assent_audit") != VERSION or not isinstance(first.get("workspace_id"), str):
        raise NoExport('line 1: an export begins with {"assent_audit": 1, "workspace_id": ...}')
    return first["workspace_id"], (_item(number, line) for number, line in enumerate(file, 2) if line.strip())


def _exported(item: Item, *, texts: bool) -> dict[str, Any]:
    if isinstance(item, Head):
        return {"head": {"chain": item.chain, "seq": item.seq, "hash": item.hash}}
    exported = item.row | {"at": time_text(item.row["at"])}
    if item.signature:
        exported["signature"] = {"key_id": item.signature[0], "value": item.signature[1]}
    if texts and item.texts is not None and "texts" in item.row["details"]:
        exported["texts"] = item.texts
    return exported


def _item(number: int, line: str) -> Item:
    content = _object(number, line)
    try:
        if head := content.get("head"):
            return Head(_text(head["chain"]), _integer(head["seq"]), _text(head["hash"]))
        row = {name: content[name] for name in COLUMNS}
        row["at"] = datetime.fromisoformat(_text(row["at"]))
        if row["at"].tzinfo is None:
            raise ValueError("at: a time without an offset")
        _text(row["chain"]), _integer(row["seq"]), _text(row["hash"])
        signature = content.get("signature")
        texts = content.get("texts")
        beside = {name: (_text(salt), _text(text)) for name, (salt, text) in texts.items()} if texts is not None else None
        return Act(row, (_text(signature["key_id"]), _text(signature["value"])) if signature else None, beside)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise NoExport(f"line {number} is neither an act nor a head: {type(error).__name__}: {error}") from None


def _object(number: int, line: str) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise NoExport(f"line {number} is not a JSON object")
    return content


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is not an integer")
    return value


def _line(content: dict[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"
