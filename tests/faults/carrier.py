"""A carrier between the senders and the readers of queue messages, which can lose, copy, hold and reorder them.

Senders use the queues `turns`, `tools` and `sweeps` as ever. Workers read `carried.turns`, `carried.tools` and `carried.sweeps`.
"""

import base64
import json
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass

import redis

QUEUES = ("turns", "tools", "sweeps")
CARRIED = ",".join(f"carried.{queue}" for queue in QUEUES)


@dataclass(frozen=True)
class Message:
    """One queue message on its way."""

    queue: str
    raw: bytes

    @property
    def row_id(self) -> str:
        """The id of the message's turn or call. Empty for a sweep."""
        args = json.loads(base64.b64decode(json.loads(self.raw)["body"]))[0]
        return str(args[0]) if args else ""


Rule = Callable[[Message], int]
"""Returns how many copies of a message arrive."""


class Carrier:
    """Carries messages by a rule, or holds them until they are released."""

    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(url)
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self.held: list[Message] | None = None
        self.arrived: list[tuple[Message, int]] = []
        """Every message that was sent, with the number of copies that arrived."""
        self.rule: Rule = once
        self._thread = threading.Thread(target=self._carry, name="carrier", daemon=True)
        self._thread.start()

    def hold(self) -> None:
        """Hold all messages from now on."""
        with self._lock:
            self.held = []

    def release(self, order: Callable[[list[Message]], list[Message]]) -> int:
        """Deliver the held messages in this order, and hold none any more. Returns their number."""
        with self._lock:
            held, self.held = order(self.held or []), None
            for message in held:
                self._deliver(message)
            return len(held)

    def close(self) -> None:
        """Stop carrying."""
        self._ending.set()
        self._thread.join(5)
        self._redis.close()

    def _carry(self) -> None:
        while not self._ending.is_set():
            item = self._redis.brpop(list(QUEUES), timeout=0.2)
            if not item:
                continue
            message = Message(item[0].decode(), item[1])  # type: ignore[index]
            with self._lock:
                if self.held is None:
                    self._deliver(message)
                else:
                    self.held.append(message)

    def _deliver(self, message: Message) -> None:
        copies = self.rule(message)
        self.arrived.append((message, copies))
        for _ in range(copies):
            self._redis.lpush(f"carried.{message.queue}", message.raw)


def once(message: Message) -> int:
    """One copy of each message arrives."""
    return 1


def five_times(message: Message) -> int:
    """Five copies of each message arrive."""
    return 5


def three_of_ten_lost(seed: int) -> Rule:
    """Return a rule by which 30 % of the messages never arrive."""
    dice = random.Random(seed)
    return lambda _: int(dice.random() >= 0.3)
