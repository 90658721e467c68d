"""The carrier between who sends queue messages and who reads them: it may lose, double, hold and reorder them.

Workers read `carried.turns`, `carried.tools` and `carried.sweeps`; everybody else sends to `turns`, `tools` and `sweeps` as ever.
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
        """The turn or call that it is about; empty for a sweep's."""
        args = json.loads(base64.b64decode(json.loads(self.raw)["body"]))[0]
        return str(args[0]) if args else ""


Rule = Callable[[Message], int]
"""How many copies of a message arrive."""


class Carrier:
    """Carries messages by a rule, or holds them until told."""

    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(url)
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self.held: list[Message] | None = None
        self.arrived: list[tuple[Message, int]] = []
        """Every message that was sent, with how many copies of it came through."""
        self.rule: Rule = once
        self._thread = threading.Thread(target=self._carry, name="carrier", daemon=True)
        self._thread.start()

    def hold(self) -> None:
        """Keep everything back from now on."""
        with self._lock:
            self.held = []

    def release(self, order: Callable[[list[Message]], list[Message]]) -> int:
        """Let what was held arrive in this order, and hold nothing any more. Returns how many they were."""
        with self._lock:
            held, self.held = order(self.held or []), None
            for message in held:
                self._deliver(message)
            return len(held)

    def close(self) -> None:
        """End."""
        self._ending.set()
        self._thread.join(5)
        self._redis.close()

    def _carry(self) -> None:
        while not self._ending.is_set():
            found = self._redis.brpop(list(QUEUES), timeout=0.2)
            if not found:
                continue
            message = Message(found[0].decode(), found[1])  # type: ignore[index]
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
    """As it should be."""
    return 1


def five_times(message: Message) -> int:
    """All of them doubled, and more."""
    return 5


def three_of_ten_lost(seed: int) -> Rule:
    """30 % never arrive."""
    dice = random.Random(seed)
    return lambda _: int(dice.random() >= 0.3)
