"""Counts a request's tokens, with a memory of cached prefixes."""

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

LIFETIME = {"5m": 300.0, "1h": 3600.0}
LOOK_BACK = 20
"""Blocks before a breakpoint within which an older prefix is recognised, as in the real API."""
MAX_PREFIXES = 20_000


class PrefixMemory:
    """Cached prefixes by hash. Drops the least recently used prefix first."""

    def __init__(self) -> None:
        self._expiry: OrderedDict[bytes, float] = OrderedDict()

    def usage(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the input tokens as the Messages API reports them: uncached, written by lifetime, read."""
        digest, ends, points = hashlib.sha256(), [(b"", 0)], []
        for number, (text, lifetime) in enumerate(_blocks(body), 1):
            digest.update(text.encode())
            ends.append((digest.copy().digest(), ends[-1][1] + max(1, len(text) // 4)))
            if lifetime:
                points.append((number, lifetime))
        now = time.monotonic()
        read_to = self._longest_known(ends, points, now)
        cache_writes = dict.fromkeys(LIFETIME, 0)
        start = read_to
        for number, lifetime in points:
            if number > start:
                cache_writes[lifetime] += ends[number][1] - ends[start][1]
                start = number
            self._remember(ends[number][0], now + LIFETIME[lifetime])
        return {
            "input_tokens": ends[-1][1] - ends[start][1],
            "cache_creation_input_tokens": sum(cache_writes.values()),
            "cache_read_input_tokens": ends[read_to][1],
            "cache_creation": {f"ephemeral_{lifetime}_input_tokens": count for lifetime, count in cache_writes.items()},
        }

    def _longest_known(self, ends: list[tuple[bytes, int]], points: list[tuple[int, str]], now: float) -> int:
        for point, _ in reversed(points):
            for number in range(point, max(0, point - LOOK_BACK), -1):
                if self._expiry.get(ends[number][0], 0) > now:
                    return number
        return 0

    def _remember(self, prefix: bytes, expiry: float) -> None:
        self._expiry[prefix] = max(expiry, self._expiry.get(prefix, 0))
        self._expiry.move_to_end(prefix)
        while len(self._expiry) > MAX_PREFIXES:
            self._expiry.popitem(last=False)


def tokens_of(body: dict[str, Any]) -> int:
    """Return the tokens of a request's input."""
    return sum(max(1, len(text) // 4) for text, _ in _blocks(body))


def _blocks(body: dict[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Yield text and cache lifetime of every block, in the order of the cache: tools, system, messages."""
    parts: list[tuple[str, Any]] = [("tool", tool) for tool in body.get("tools") or []]
    parts += [("system", block) for block in _as_list(body.get("system"))]
    for message in body["messages"]:
        parts += [(message["role"], block) for block in _as_list(message["content"])]
    whole = body.get("cache_control")
    for number, (place, block) in enumerate(parts, 1):
        mark = block.get("cache_control") or (whole if number == len(parts) else None)
        bare = {key: value for key, value in block.items() if key != "cache_control"}
        yield place + json.dumps(bare, sort_keys=True), (mark.get("ttl", "5m") if mark else None)


def _as_list(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content or []
